//! The keys denied most, as an operator has chosen to count them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::{Charge, Decision, DeniedKeys, Time};

use crate::Clock;

/// The keys denied most.
pub(crate) struct Denied {
    pub(crate) keys: DeniedKeys,
    /// Are they shown by their hashes only?
    pub(crate) are_hashed: bool,
    since_s: AtomicU64,
    clock: Clock,
}

impl Denied {
    pub(crate) fn new(keys_max: usize, are_hashed: bool, clock: Clock) -> Self {
        let denied = Self { keys: DeniedKeys::new(keys_max), are_hashed, since_s: AtomicU64::new(0), clock };
        denied.clear();
        denied
    }

    /// Since when they are counted, in seconds since the epoch of Unix.
    pub(crate) fn since_s(&self) -> u64 {
        self.since_s.load(Ordering::Relaxed)
    }

    /// Starts anew.
    pub(crate) fn clear(&self) {
        self.since_s.store((self.clock)().since(Time::ZERO).as_secs(), Ordering::Relaxed);
        self.keys.clear();
    }

    /// Counts what a key's own bucket denied: that the store is away, or full, is nobody's doing.
    #[inline]
    pub(crate) fn count(&self, charge: &Charge<'_>, decision: &Decision) {
        if !decision.is_allowed() && decision.held_by().is_none() {
            self.keys.count(charge.limit, charge.key, || (self.clock)());
        }
    }
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied").field("keys", &self.keys).field("are_hashed", &self.are_hashed).finish_non_exhaustive()
    }
}
