//! What outlives the process.

use std::path::PathBuf;

use clap::Args;

use super::Group;
use super::field::{Field, Given};
use crate::state_file::StateFile;

/// What outlives the process.
#[derive(Args, Clone, Default)]
pub(crate) struct StateFlags {
    /// Where the buckets of this process are written when it is told to stop, and read when it starts, so that nobody's
    /// limit is full again because of a restart.
    #[arg(long, value_name = "FILE")]
    save_state: Option<Given<PathBuf>>,
}

impl Group for StateFlags {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![("save_state", &mut self.save_state)]
    }
}

impl StateFlags {
    /// The file of the buckets, if they are to be kept.
    pub(crate) fn file(&self) -> Option<StateFile> {
        self.save_state.as_deref().map(|path| StateFile::new(path))
    }
}
