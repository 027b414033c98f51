//! The file in which buckets outlive the process: written at a graceful stop, read at the start.
//!
//! It is written under another name and renamed, so it is whole or as it was; a process that is killed leaves the file of
//! the stop before. It holds the seeds of the table, by which guesses at keys can be checked, so it is its owner's alone.
//! What cannot be used is kept aside and told, and the process starts with full buckets: no state is a reason not to
//! serve.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tidegate::{Memory, RestoreError, Saved, SystemClock, TableOptions};

use crate::say;

/// Readable and writable by its owner.
const MODE: u32 = 0o600;

/// Where buckets are kept from one process to the next.
#[derive(Clone, Debug)]
pub(crate) struct StateFile(PathBuf);

impl StateFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// A store with the buckets that the file holds; `None` if there are none that can be used. Says what happened, if
    /// there is a file.
    pub(crate) fn restore(&self, options: TableOptions, clock: SystemClock) -> Option<Memory> {
        let name = self.0.display();
        match self.read(options, clock) {
            Ok((memory, Saved { buckets, without_room })) => {
                say::line(&format!("{buckets} buckets go on as {name} says"));
                if without_room > 0 {
                    say::warning(&format!(
                        "there was no room for {without_room} of them: --max-keys is less than it was"
                    ));
                }
                Some(memory)
            }
            Err(RestoreError::Read(error)) if error.kind() == ErrorKind::NotFound => {
                if !self.folder().is_dir() {
                    say::warning(&format!("buckets will not be saved to {name}: there is no such folder"));
                }
                None
            }
            Err(RestoreError::Read(error)) => {
                say::warning(&format!("buckets start full, and will not be saved: {name}: {error}"));
                None
            }
            Err(why) => {
                let kept = match self.put_aside() {
                    Ok(aside) => format!("it is kept as {}", aside.display()),
                    Err(error) => format!("it could not be kept aside: {error}"),
                };
                say::warning(&format!("buckets start full: {name} cannot be used, since {why}; {kept}"));
                None
            }
        }
    }

    fn read(&self, options: TableOptions, clock: SystemClock) -> Result<(Memory, Saved), RestoreError> {
        // A pipe would be waited for.
        if !fs::metadata(&self.0)?.is_file() {
            return Err(RestoreError::Read(io::Error::other("it is no file")));
        }
        Memory::restored(options, clock, BufReader::new(File::open(&self.0)?))
    }

    fn put_aside(&self) -> io::Result<PathBuf> {
        let aside = self.beside(".damaged");
        fs::rename(&self.0, &aside).map(|()| aside)
    }

    /// Writes all buckets that are not full, and says whether that was done.
    pub(crate) fn save(&self, memory: &Memory) {
        let name = self.0.display();
        match self.write(memory) {
            Ok(Saved { buckets, .. }) => say::line(&format!("{buckets} buckets are saved in {name}")),
            Err(error) => say::warning(&format!("the buckets could not be saved in {name}: {error}")),
        }
    }

    fn write(&self, memory: &Memory) -> io::Result<Saved> {
        let new = self.beside(".new");
        // One that was left behind, or put there by another, is not written into.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
        let saved = memory.save(BufWriter::new(&file)).and_then(|saved| file.sync_all().map(|()| saved));
        let renamed = saved.and_then(|saved| fs::rename(&new, &self.0).map(|()| saved));
        if renamed.is_err() {
            // What is wrong is told; that it cannot be tidied up is not worth more words.
            let _ = fs::remove_file(&new);
        }
        let saved = renamed?;
        // The new name must outlive a loss of power too.
        File::open(self.folder())?.sync_all()?;
        Ok(saved)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    fn folder(&self) -> &Path {
        let parent = self.0.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }
}
