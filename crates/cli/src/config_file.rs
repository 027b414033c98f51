//! The configuration file of a command: where it is, and what is in it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tidegate::policy::file::{self, Complaint, Config, FILE_BYTES_MAX, Format, Setting};

use crate::flags::Wrong;
use crate::trust_files;

/// A file that `--config` names.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile(PathBuf);

impl ConfigFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        self.0.display().to_string()
    }

    /// What is in it now.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub(crate) fn contents(&self) -> Result<String, Wrong> {
        let mut bytes = Vec::new();
        // One byte more than is allowed, so that what is too long is seen to be.
        let read = File::open(&self.0).and_then(|file| file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        read.map_err(|error| Wrong::new(format_args!("cannot read {}: {error}", self.name())))?;
        String::from_utf8(bytes).map_err(|_| Wrong::new(format_args!("{} is not a text in UTF-8", self.name())))
    }

    /// What its contents mean.
    ///
    /// # Errors
    /// Everything that is wrong with them, or with a file of networks that they name.
    pub(crate) fn meaning(&self, contents: &str) -> Result<Config, Wrong> {
        let config = file::read(&self.name(), contents, Format::of(&self.0)).map_err(Wrong::new)?;
        Ok(Config { policies: trust_files::read(config.policies)?, ..config })
    }

    /// The error that its policies say what cannot be done here.
    pub(crate) fn complain(&self, contents: &str, complaints: &[Complaint]) -> Wrong {
        Wrong::new(file::complain(&self.name(), contents, Format::of(&self.0), complaints))
    }

    /// The error that a setting is not what is taken.
    pub(crate) fn wrong_setting(&self, contents: &str, setting: &Setting, message: &str) -> Wrong {
        Wrong::new(setting.error(&self.name(), contents, message))
    }
}
