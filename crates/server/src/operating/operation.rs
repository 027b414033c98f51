//! What an operator of a gateway can do, and what that takes of its store.

use std::fmt;

use tidegate::redis::RedisStore;
use tidegate::{AtBound, Clock, LimitId, Memory, Quota, Shared, Store};

use crate::AdminToken;

/// What an operator of a gateway can do.
pub struct OperationSetup<S> {
    /// Does the store answer? While it does not, a gateway with a limit that then denies is not ready.
    pub is_up: fn(&S) -> bool,
    /// Can the store keep a limit of this quota? Else what is said behind the limit.
    pub takes: fn(&S, &Quota) -> Result<(), String>,
    /// How many of the keys denied most are known; none by default. At most [`DENIED_KEYS_MAX`](tidegate::DENIED_KEYS_MAX).
    pub denied_keys: usize,
    /// Are they shown by their hashes only?
    pub are_denied_hashed: bool,
    /// What an operator shows to be let in; without one, the admin face must be on the loopback.
    pub token: Option<AdminToken>,
}

impl<S: Store> OperationSetup<S> {
    /// Of any store, by what it says of itself.
    #[must_use]
    pub fn new(is_up: fn(&S) -> bool, takes: fn(&S, &Quota) -> Result<(), String>) -> Self {
        Self { is_up, takes, denied_keys: 0, are_denied_hashed: false, token: None }
    }
}

impl<C: Clock> OperationSetup<Memory<C>> {
    /// Of buckets in this process.
    #[must_use]
    pub fn of_memory() -> Self {
        Self::new(
            |_| true,
            |store, quota| {
                let known = store.table().know(LimitId::of("", ""), quota, AtBound::default());
                known.map(|_| ()).map_err(|why| format!("cannot be kept: {why}"))
            },
        )
    }
}

impl<C: Clock> OperationSetup<Shared<C>> {
    /// Of buckets elsewhere.
    #[must_use]
    pub fn of_shared() -> Self {
        Self::new(
            |store| store.redis().is_up(),
            |_, quota| {
                RedisStore::takes(quota).map_err(|why| format!("cannot be kept exactly in a shared store: {why}"))
            },
        )
    }
}

impl<S> fmt::Debug for OperationSetup<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationSetup")
            .field("denied_keys", &self.denied_keys)
            .field("are_denied_hashed", &self.are_denied_hashed)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
