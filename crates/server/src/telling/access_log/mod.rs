//! The access log: one line per request, written when its answer has ended.
//!
//! A line is put together where the request was served, and handed over in one piece ([`Spool`]); a thread of its own
//! writes ([`Writer`]). So no request waits for a disk: where lines come faster than they can be written, some are
//! dropped, and counted.

mod escape;
mod format;
mod json;
mod target;
mod writer;

use std::time::Duration;

pub use format::{LogFormat, UnknownFormat};
pub use target::LogTarget;

pub(crate) use writer::Writer;

use crate::LogLines;
use crate::telling::record::Record;
use crate::telling::spool::Spool;

/// Room for a line, so that most of them need it made once.
const LINE_BYTES: usize = 512;

/// Where lines are told.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LogFormat,
    spool: Spool,
    lines: LogLines,
}

impl AccessLog {
    pub(crate) fn new(format: LogFormat, lines: LogLines) -> Self {
        Self { format, spool: Spool::new(), lines }
    }

    /// Tells of a request that took so long, or counts that it could not be told.
    pub(crate) fn tell(&self, record: &Record, took: Duration) {
        let mut line = Vec::with_capacity(LINE_BYTES);
        self.format.write(&mut line, record, took);
        if !self.spool.push(&line) {
            self.lines.dropped();
        }
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }
}
