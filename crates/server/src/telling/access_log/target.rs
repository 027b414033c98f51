//! Where lines are written to.
//!
//! A file is opened anew when it is no longer the one at its path: whoever rotates logs renames it, and needs to tell
//! nobody.

use std::fs::{File, Metadata, OpenOptions, metadata};
use std::io::{self, Stdout, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file, or standard output.
#[derive(Debug)]
pub struct LogTarget(Kind);

#[derive(Debug)]
enum Kind {
    File { path: PathBuf, file: File, identity: Identity },
    Stdout(Stdout),
}

/// Which file it is, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl LogTarget {
    /// The file at `path`, at whose end lines are added; it is made if it is not there.
    ///
    /// # Errors
    /// It cannot be opened for writing.
    pub fn file(path: &Path) -> io::Result<Self> {
        let (file, identity) = open(path)?;
        Ok(Self(Kind::File { path: path.to_owned(), file, identity }))
    }

    /// Standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self(Kind::Stdout(io::stdout()))
    }

    /// Opens the file anew if another one is at its path, or none, or if it `must` be.
    ///
    /// # Errors
    /// It cannot be opened. The file that was open stays so.
    pub(crate) fn follow(&mut self, must: bool) -> io::Result<()> {
        let Kind::File { path, file, identity } = &mut self.0 else { return Ok(()) };
        let is_there = metadata(&path).is_ok_and(|found| Identity::of(&found) == *identity);
        if must || !is_there {
            (*file, *identity) = open(path)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, Identity)> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let identity = Identity::of(&file.metadata()?);
    Ok((file, identity))
}

impl Write for LogTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::File { file, .. } => file.write(bytes),
            Kind::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::File { file, .. } => file.flush(),
            Kind::Stdout(stdout) => stdout.flush(),
        }
    }
}
