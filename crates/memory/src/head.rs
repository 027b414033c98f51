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
/// What the version counts in.
const STEP: u64 = 8;

/// A bit of the head that belongs to whoever uses it, and is guarded like the words.
#[derive(Clone, Copy)]
pub(crate) struct Flag(u64);

impl Flag {
    pub(crate) const FIRST: Self = Self(2);
    pub(crate) const SECOND: Self = Self(4);
}

/// The guard of a group of words.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a>(pub(crate) &'a AtomicU64);

/// The version of a head that was not locked.
#[derive(Clone, Copy)]
pub(crate) struct Version(u64);

impl Version {
    #[inline]
    pub(crate) fn has(self, flag: Flag) -> bool {
        self.0 & flag.0 != 0
    }
}

impl<'a> Head<'a> {
    /// The version under which the words can be read.
    #[inline]
    pub(crate) fn read(self) -> Version {
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
    pub(crate) fn still(self, version: Version) -> bool {
        fence(Ordering::Acquire);
        may_switch();
        self.0.load(Ordering::Relaxed) == version.0
    }

    /// The right to write, if nothing has changed since `version`.
    #[inline]
    pub(crate) fn lock_from(self, version: Version) -> Option<Lock<'a>> {
        let locked = version.0 | LOCKED;
        may_switch();
        self.0.compare_exchange(version.0, locked, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // The stores that follow must not be seen before the lock.
        fence(Ordering::Release);
        Some(Lock { word: self.0, version })
    }

    /// The right to write, as soon as nobody else has it.
    pub(crate) fn lock(self) -> Lock<'a> {
        let mut backoff = Backoff::default();
        loop {
            let version = Version(self.0.load(Ordering::Relaxed) & !LOCKED);
            if let Some(lock) = self.lock_from(version) {
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
    /// The version that was locked.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.version.has(flag)
    }

    /// Raises a flag from when the lock is given back.
    pub(crate) fn raise(&mut self, flag: Flag) {
        self.version.0 |= flag.0;
    }

    /// Lowers a flag from when the lock is given back.
    pub(crate) fn lower(&mut self, flag: Flag) {
        self.version.0 &= !flag.0;
    }
}

impl Drop for Lock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(self.version.0.wrapping_add(STEP), Ordering::Release);
    }
}
