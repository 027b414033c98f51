//! Who writes: one thread, which alone waits for the disk.

use std::io::{self, Write};

use super::LogTarget;
use crate::telling::spool::Spool;
use crate::{LogLines, Notice};

/// Room for lines that is kept from one batch to the next, in bytes.
const BATCH_BYTES_KEPT: usize = 512 * 1024;

/// Writes the lines of a spool to their target.
pub(crate) struct Writer {
    target: LogTarget,
    lines: LogLines,
    notice: Notice,
    /// Did the last attempt fail? Then whoever operates the program knows.
    is_failing: bool,
    has_told_of_drops: bool,
    /// The last line that was written is not complete.
    is_torn: bool,
}

impl Writer {
    pub(crate) fn new(target: LogTarget, lines: LogLines, notice: Notice) -> Self {
        Self { target, lines, notice, is_failing: false, has_told_of_drops: false, is_torn: false }
    }

    /// Writes what comes, until the spool is closed.
    pub(crate) fn run(&mut self, spool: &Spool) {
        let mut batch = Vec::new();
        loop {
            let told = spool.take(&mut batch);
            let followed = self.target.follow(told.reopens);
            let written = self.write(&batch);
            self.report(followed.and(written));
            if told.is_closed {
                return;
            }
            batch.clear();
            batch.shrink_to(BATCH_BYTES_KEPT);
        }
    }

    /// Writes whole lines; those that could not be written are counted.
    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.is_torn && !batch.is_empty() {
            self.target.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = batch;
        let result = self.write_all(&mut rest).and_then(|()| self.target.flush());
        let (lost, all) = (count(rest), count(batch));
        self.lines.written(all - lost);
        self.lines.failed(lost);
        self.is_torn |= !rest.is_empty() && batch[..batch.len() - rest.len()].last().is_some_and(|last| *last != b'\n');
        result
    }

    fn write_all(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.target.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => *rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells once that something is wrong, and again after it had been right.
    fn report(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => self.is_failing = false,
            Err(_) if self.is_failing => {}
            Err(error) => {
                self.is_failing = true;
                (self.notice)(&format!("the access log cannot be written: {error}; lines are lost until it can"));
            }
        }
        if !self.has_told_of_drops && self.lines.have_dropped() {
            self.has_told_of_drops = true;
            (self.notice)(
                "lines of the access log come faster than they can be written; some are dropped, and counted",
            );
        }
    }
}

fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
