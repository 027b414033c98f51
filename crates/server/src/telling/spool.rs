//! Lines between those who tell them and the one who writes or sends them.

use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait to be written at most. A line that does not fit is dropped.
pub(crate) const SPOOL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// So many bytes are written at once, without waiting for the second to pass.
const HURRY_BYTES: usize = 256 * 1024;

/// The longest that a line waits to be written.
const EVERY: Duration = Duration::from_secs(1);

/// A bounded buffer of whole lines. Its lock is held for as long as it takes to copy a line.
#[derive(Debug)]
pub(crate) struct Spool {
    held: Mutex<Held>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    is_closed: bool,
    reopens: bool,
}

/// What the writer is to do beside writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// Nothing comes any more.
    pub(crate) is_closed: bool,
    /// The file is to be opened anew.
    pub(crate) reopens: bool,
}

impl Spool {
    pub(crate) fn new() -> Self {
        Self { held: Mutex::default(), wake: Condvar::new() }
    }

    /// Adds a line; `false` if there is no room for it.
    pub(crate) fn push(&self, line: &[u8]) -> bool {
        let mut held = self.lock();
        let before = held.bytes.len();
        if before + line.len() > SPOOL_BYTES_MAX {
            return false;
        }
        held.bytes.extend_from_slice(line);
        let is_urgent = before < HURRY_BYTES && held.bytes.len() >= HURRY_BYTES;
        drop(held);
        if is_urgent {
            self.wake.notify_one();
        }
        true
    }

    /// Has the file opened anew.
    pub(crate) fn reopen(&self) {
        self.lock().reopens = true;
        self.wake.notify_one();
    }

    /// Says that nothing comes any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Waits until there is something to do, for a second at most, and moves the lines that came into `batch`, which is
    /// empty.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> Told {
        let held = self.lock();
        let idle = |held: &mut Held| !held.is_closed && !held.reopens && held.bytes.len() < HURRY_BYTES;
        let (mut held, _) = self.wake.wait_timeout_while(held, EVERY, idle).unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut held.bytes, batch);
        Told { is_closed: held.is_closed, reopens: mem::take(&mut held.reopens) }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_was_taken_makes_room() {
        let (spool, line) = (Spool::new(), vec![b'a'; SPOOL_BYTES_MAX / 4]);
        assert_eq!([0; 5].map(|_| spool.push(&line)), [true, true, true, true, false]);
        let mut batch = Vec::new();
        assert_eq!(spool.take(&mut batch), Told { is_closed: false, reopens: false });
        assert_eq!(batch.len(), SPOOL_BYTES_MAX);
        assert!(spool.push(&line));
    }

    #[test]
    fn being_closed_and_being_told_to_reopen_are_heard_at_once() {
        let (spool, mut batch) = (Spool::new(), Vec::new());
        spool.reopen();
        assert_eq!(spool.take(&mut batch), Told { is_closed: false, reopens: true });
        spool.push(b"last\n");
        spool.close();
        assert_eq!(spool.take(&mut batch), Told { is_closed: true, reopens: false });
        assert_eq!(batch, b"last\n");
    }
}
