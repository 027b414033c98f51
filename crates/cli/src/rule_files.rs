//! Files of rules that were written for another service: one file, or a folder of them. Have they changed? Asked every
//! second or so.
//!
//! As for the configuration file (`file_watch.rs`), what counts is what is at the paths. So a symbolic link that leads
//! elsewhere is a change, which is how Kubernetes replaces the files of a mounted ConfigMap.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::config_file::ConfigFile;
use crate::flags::Wrong;

/// The most files in a folder.
const FILES_MAX: usize = 1_000;
/// What is found must still be there after this long: several files are written one after the other.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// The names of files and what is in them, or why that is not known.
pub(crate) type FoundFiles = Result<Vec<(String, String)>, String>;

/// A file, or a folder of `*.yaml` and `*.yml`.
#[derive(Clone, Debug)]
pub(crate) struct RuleFiles(PathBuf);

impl RuleFiles {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        self.0.display().to_string()
    }

    /// Each file with its contents, in the order of their names.
    ///
    /// # Errors
    /// One cannot be read, or there is none.
    pub(crate) fn contents(&self) -> Result<Vec<(String, String)>, Wrong> {
        let read = |path: PathBuf| {
            let file = ConfigFile::new(&path);
            Ok((file.name(), file.contents()?))
        };
        self.paths()?.into_iter().map(read).collect()
    }

    fn paths(&self) -> Result<Vec<PathBuf>, Wrong> {
        if !self.0.is_dir() {
            return Ok(vec![self.0.clone()]);
        }
        let unreadable = |error| Wrong::new(format_args!("cannot read {}: {error}", self.name()));
        let entries = fs::read_dir(&self.0).map_err(unreadable)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = entries.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        paths.retain(|path| is_of_rules(path));
        paths.sort_unstable();
        match paths.len() {
            0 => Err(Wrong::new(format_args!("there is no *.yaml or *.yml in {}", self.name()))),
            1..=FILES_MAX => Ok(paths),
            _ => Err(Wrong::new(format_args!("there are more than {FILES_MAX} files in {}", self.name()))),
        }
    }
}

/// Hidden ones belong to whoever mounts the folder.
fn is_of_rules(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    !is_hidden && extension.is_some_and(|extension| extension == "yaml" || extension == "yml") && !path.is_dir()
}

/// Files, and what was found in them last.
pub(crate) struct RuleWatch {
    files: RuleFiles,
    found: FoundFiles,
}

impl RuleWatch {
    /// A watch over files with these contents.
    pub(crate) fn new(files: RuleFiles, contents: Vec<(String, String)>) -> Self {
        Self { files, found: Ok(contents) }
    }

    /// What is there now.
    pub(crate) fn look(&mut self) -> &FoundFiles {
        self.found = self.read();
        &self.found
    }

    /// What is there, if that has changed since the last look.
    pub(crate) fn changed(&mut self) -> Option<&FoundFiles> {
        let found = self.read();
        if found == self.found {
            return None;
        }
        thread::sleep(SETTLED_AFTER);
        // Otherwise somebody is writing, and the next look finds more.
        (self.read() == found).then(|| {
            self.found = found;
            &self.found
        })
    }

    fn read(&self) -> FoundFiles {
        self.files.contents().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_folder_is_its_files_by_name_and_hidden_ones_are_not() {
        let folder = TempDir::new().unwrap();
        let files = RuleFiles::new(folder.path());
        assert!(files.contents().unwrap_err().to_string().starts_with("there is no *.yaml or *.yml in "));
        for name in ["b.yaml", "a.YML", ".c.yaml", "d.txt"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        fs::create_dir(folder.path().join("e.yaml")).unwrap();
        let contents: Vec<_> = files.contents().unwrap().into_iter().map(|(_, contents)| contents).collect();
        assert_eq!(contents, ["a.YML", "b.yaml"]);
        let one = RuleFiles::new(&folder.path().join("d.txt"));
        assert_eq!(one.contents().unwrap()[0].1, "d.txt");
    }

    /// As Kubernetes does it: the names lead through a link that is replaced as a whole.
    #[test]
    fn a_link_that_leads_elsewhere_is_one_change() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (version, text) in [("..v1", "one"), ("..v2", "two")] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("a.yaml"), text).unwrap();
        }
        symlink("..v1", at("..data")).unwrap();
        symlink("..data/a.yaml", at("a.yaml")).unwrap();
        let files = RuleFiles::new(folder.path());
        let mut watch = RuleWatch::new(files.clone(), files.contents().unwrap());
        assert_eq!(watch.changed(), None);
        symlink("..v2", at("..next")).unwrap();
        fs::rename(at("..next"), at("..data")).unwrap();
        assert_eq!(watch.changed().unwrap().as_ref().unwrap()[0].1, "two");
        assert_eq!(watch.changed(), None);
        fs::remove_file(at("a.yaml")).unwrap();
        assert!(watch.changed().unwrap().is_err());
        assert_eq!(watch.changed(), None);
    }
}
