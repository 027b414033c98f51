//! Has a file changed? Asked every second or so.
//!
//! What counts is what is at the path: a file that was written anew, another one in its place, a symbolic link that
//! leads elsewhere (which is how mounted configurations are replaced). A file of usual size is read each time, since two
//! writes within one tick of the file system's clock leave the same stamp.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::Duration;

use crate::config_file::ConfigFile;

/// A file up to this size is read at each look.
const READ_ALWAYS_BYTES_MAX: u64 = 1 << 20;
/// What is found must still be there after this long: whoever writes a file in place writes it bit by bit.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// What is in a file, or why that is not known.
pub(crate) type Found = Result<String, String>;

/// A file, and what was found in it last.
pub(crate) struct FileWatch {
    file: ConfigFile,
    identity: Option<Identity>,
    found: Found,
}

/// What is another after each change of a file: where it is, its size, when it was written and renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity([i128; 5]);

impl FileWatch {
    /// A watch over a file with these contents.
    pub(crate) fn new(file: ConfigFile, contents: String) -> Self {
        Self { identity: None, file, found: Ok(contents) }
    }

    /// What is in the file now.
    pub(crate) fn look(&mut self) -> &Found {
        self.identity = identity(&self.file);
        self.found = found(&self.file);
        &self.found
    }

    /// What is in the file, if that has changed since the last look.
    pub(crate) fn changed(&mut self) -> Option<&Found> {
        let identity = identity(&self.file);
        let is_small = identity.is_none_or(|Identity([_, _, bytes, ..])| bytes <= i128::from(READ_ALWAYS_BYTES_MAX));
        if identity == self.identity && !is_small {
            return None;
        }
        let found = found(&self.file);
        if found == self.found {
            self.identity = identity;
            return None;
        }
        thread::sleep(SETTLED_AFTER);
        // Otherwise it is being written, and the next look finds more.
        (self::found(&self.file) == found).then(|| {
            (self.identity, self.found) = (identity, found);
            &self.found
        })
    }
}

fn found(file: &ConfigFile) -> Found {
    file.contents().map_err(|error| error.to_string())
}

fn identity(file: &ConfigFile) -> Option<Identity> {
    let data = fs::metadata(file.path()).ok()?;
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let (written, changed) = (ns(data.mtime(), data.mtime_nsec()), ns(data.ctime(), data.ctime_nsec()));
    Some(Identity([data.dev().into(), data.ino().into(), data.len().into(), written, changed]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn watch(folder: &TempDir, name: &str) -> FileWatch {
        FileWatch::new(ConfigFile::new(&folder.path().join(name)), "one".to_owned())
    }

    #[test]
    fn whatever_comes_to_be_at_the_path_is_found_once() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "one").unwrap();
        let mut watch = watch(&folder, "file");
        assert_eq!(watch.changed(), None);
        let mut check = |change: &dyn Fn(), expect: Option<&str>| {
            change();
            assert_eq!(watch.changed().map(|found| found.clone().unwrap()).as_deref(), expect);
            assert_eq!(watch.changed(), None);
        };
        check(&|| fs::write(at("file"), "two").unwrap(), Some("two"));
        check(&|| fs::write(at("file"), "two").unwrap(), None);
        check(
            &|| {
                fs::write(at("other"), "six").unwrap();
                fs::rename(at("other"), at("file")).unwrap();
            },
            Some("six"),
        );
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_a_change() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, contents) in [("v1", "one"), ("v2", "two")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), contents).unwrap();
        }
        symlink("v1", at("now")).unwrap();
        let mut watch = watch(&folder, "now/file");
        assert_eq!(watch.changed(), None);
        symlink("v2", at("next")).unwrap();
        fs::rename(at("next"), at("now")).unwrap();
        assert_eq!(watch.changed(), Some(&Ok("two".to_owned())));
    }

    #[test]
    fn a_file_that_is_gone_is_told_once_and_found_again() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("file");
        let mut watch = watch(&folder, "file");
        assert!(watch.changed().unwrap().as_ref().unwrap_err().starts_with("cannot read "));
        assert_eq!(watch.changed(), None);
        fs::write(&path, "one").unwrap();
        assert_eq!(watch.changed(), Some(&Ok("one".to_owned())));
    }
}
