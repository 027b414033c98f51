//! The buckets that newcomers share when there is no room for one each: one per limit.

use std::collections::HashMap;
use std::sync::PoisonError;

use tidegate_core::{LimitId, State};

use crate::sync::{Mutex, MutexGuard};

/// The most limits of one table that can have a pool. Newcomers of further ones are denied for want of room.
pub const POOLS_MAX: usize = 1 << 12;

/// Taken after the locks of groups, and for the length of a decision only.
pub(crate) struct Pools(Mutex<HashMap<LimitId, Pool>>);

/// A pool's bucket, and the number of the quota that it was written under.
#[derive(Clone, Copy)]
pub(crate) struct Pool {
    pub(crate) quota_number: u32,
    pub(crate) state: State,
}

impl Pools {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    pub(crate) fn lock(&self) -> PoolsLock<'_> {
        PoolsLock(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) struct PoolsLock<'a>(MutexGuard<'a, HashMap<LimitId, Pool>>);

impl PoolsLock<'_> {
    pub(crate) fn pool(&self, limit: LimitId) -> Option<Pool> {
        self.0.get(&limit).copied()
    }

    /// Is there a pool for the limit, or room for one?
    pub(crate) fn has_room_for(&self, limit: LimitId) -> bool {
        self.0.len() < POOLS_MAX || self.0.contains_key(&limit)
    }

    pub(crate) fn all(&self) -> Vec<(LimitId, Pool)> {
        self.0.iter().map(|(limit, pool)| (*limit, *pool)).collect()
    }

    pub(crate) fn write(&mut self, limit: LimitId, pool: Pool) {
        self.0.insert(limit, pool);
    }
}
