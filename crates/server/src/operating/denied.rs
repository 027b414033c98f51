//! The keys denied most, as an operator has chosen to count them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tidegate::{Charge, Decision, DeniedKeys, LimitId, Time};

use crate::Clock;

/// Limits that calls bring whose names are known; the keys of others are listed without.
const BROUGHT_MAX: usize = 256;

/// The keys denied most.
pub(crate) struct Denied {
    pub(crate) keys: DeniedKeys,
    /// Are they shown by their hashes only?
    pub(crate) are_hashed: bool,
    since_s: AtomicU64,
    clock: Clock,
    /// What the limits are called that calls bring: by the face that they came to, and by a name.
    brought: Mutex<HashMap<LimitId, (&'static str, String)>>,
}

impl Denied {
    pub(crate) fn new(keys_max: usize, are_hashed: bool, clock: Clock) -> Self {
        let (since_s, brought) = (AtomicU64::new(0), Mutex::default());
        let denied = Self { keys: DeniedKeys::new(keys_max), are_hashed, since_s, clock, brought };
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
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Counts what a key's own bucket denied: that the store is away, or full, is nobody's doing.
    #[inline]
    pub(crate) fn count(&self, charge: &Charge<'_>, decision: &Decision) {
        if is_denied(decision) {
            self.keys.count(charge.limit, charge.key, || (self.clock)());
        }
    }

    /// The same under a limit that a call brought, and the name of it.
    #[inline]
    pub(crate) fn count_brought(&self, charge: &Charge<'_>, decision: &Decision, (face, name): (&'static str, &str)) {
        self.count(charge, decision);
        if is_denied(decision) {
            self.learn(charge.limit, face, name);
        }
    }

    fn learn(&self, limit: LimitId, face: &'static str, name: &str) {
        // Nobody waits for it: who is denied once more tells it then.
        let Ok(mut brought) = self.brought.try_lock() else { return };
        if brought.len() < BROUGHT_MAX && !brought.contains_key(&limit) {
            brought.insert(limit, (face, name.to_owned()));
        }
    }

    /// The face that a limit was brought to, and its name.
    pub(crate) fn brought(&self, limit: LimitId) -> Option<(&'static str, String)> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner).get(&limit).cloned()
    }
}

/// Did the key's own bucket deny?
fn is_denied(decision: &Decision) -> bool {
    !decision.is_allowed() && decision.held_by().is_none()
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied").field("keys", &self.keys).field("are_hashed", &self.are_hashed).finish_non_exhaustive()
    }
}
