//! One word that guards a few others: a sequence lock whose version is also the ticket to write.
//!
//! A reader takes the version, reads what the head guards, decides, and then either checks that the version still
//! stands (a denial: nothing to write), or swaps the version for a locked one in the same step (an admission). If the
//! swap succeeds, nothing has changed since the version was read, so what was decided is still right; what remains
//! while the lock is held are a few stores. A thread that loses starts again from fresh words.
//!
//! The words that a head guards are atomics read and written relaxed: a torn read is possible, is thrown away with its
//! version, and is never undefined.

use crate::sync::{AtomicU64, Backoff, Ordering, fence, may_switch};

const LOCKED: u64 = 1;
const FLAG: u64 = 2;
/// What the version counts in.
const STEP: u64 = 4;

/// The guard of a group of words. Its flag belongs to whoever uses it, and is guarded as well.
pub(crate) struct Head<'a>(pub(crate) &'a AtomicU64);

/// The version of a head that was not locked.
#[derive(Clone, Copy)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) fn flag(self) -> bool {
        self.0 & FLAG != 0
    }
}

impl<'a> Head<'a> {
    /// The version under which the words can be read.
    #[inline]
    pub(crate) fn read(&self) -> Version {
        let mut backoff = Backoff::default();
        loop {
            may_switch();
            let word = self.0.load(Ordering::Acquire);
            if word & LOCKED == 0 {
                may_switch();
                return Version(word);
            }
            backoff.wait();
        }
    }

    /// Have the words that were read since `version` all been true at once?
    #[inline]
    pub(crate) fn still(&self, version: Version) -> bool {
        fence(Ordering::Acquire);
        may_switch();
        self.0.load(Ordering::Relaxed) == version.0
    }

    /// The right to write, if nothing has changed since `version`.
    #[inline]
    pub(crate) fn lock_from(&self, version: Version) -> Option<Lock<'a>> {
        let locked = version.0 | LOCKED;
        may_switch();
        self.0.compare_exchange(version.0, locked, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // The stores that follow must not be seen before the lock.
        fence(Ordering::Release);
        Some(Lock { word: self.0, version })
    }

    /// The right to write, as soon as nobody else has it.
    pub(crate) fn lock(&self) -> Lock<'a> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(lock) = self.lock_from(self.read()) {
                return lock;
            }
            backoff.wait();
        }
    }
}

/// The right to write what a head guards, given back when dropped.
pub(crate) struct Lock<'a> {
    word: &'a AtomicU64,
    version: Version,
}

impl Lock<'_> {
    pub(crate) fn flag(&self) -> bool {
        self.version.flag()
    }

    /// Sets the flag to what it shall be after the lock.
    pub(crate) fn set_flag(&mut self, flag: bool) {
        self.version.0 = if flag { self.version.0 | FLAG } else { self.version.0 & !FLAG };
    }
}

impl Drop for Lock<'_> {
    #[inline]
    fn drop(&mut self) {
        may_switch();
        self.word.store(self.version.0.wrapping_add(STEP), Ordering::Release);
    }
}
