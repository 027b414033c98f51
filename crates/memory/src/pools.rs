//! The buckets that newcomers share when there is no room for one each: one per limit.

use std::collections::HashMap;
use std::sync::PoisonError;

use tidegate_core::{LimitId, State};

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The most limits of one table that can have a pool. Newcomers of further ones are denied for want of room.
pub const POOLS_MAX: usize = 1 << 12;

/// Taken after the locks of groups, and for the length of a decision only.
pub(crate) struct Pools {
    used: AtomicBool,
    pools: Mutex<HashMap<LimitId, Pool>>,
}

/// A pool's bucket, and the number of the quota that it was written under.
#[derive(Clone, Copy)]
pub(crate) struct Pool {
    pub(crate) quota_number: u32,
    pub(crate) state: State,
}

impl Pools {
    pub(crate) fn new() -> Self {
        Self { used: AtomicBool::new(false), pools: Mutex::new(HashMap::new()) }
    }

    /// Was anyone ever charged to a pool? Read it after the head of the newcomer's home: whoever was charged to a pool
    /// before that head was released is seen.
    pub(crate) fn are_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn lock(&self) -> PoolsLock<'_> {
        PoolsLock { used: &self.used, pools: self.pools.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

pub(crate) struct PoolsLock<'a> {
    used: &'a AtomicBool,
    pools: MutexGuard<'a, HashMap<LimitId, Pool>>,
}

impl PoolsLock<'_> {
    pub(crate) fn pool(&self, limit: LimitId) -> Option<Pool> {
        self.pools.get(&limit).copied()
    }

    /// Is there a pool for the limit, or room for one?
    pub(crate) fn has_room_for(&self, limit: LimitId) -> bool {
        self.pools.len() < POOLS_MAX || self.pools.contains_key(&limit)
    }

    pub(crate) fn write(&mut self, limit: LimitId, pool: Pool) {
        self.pools.insert(limit, pool);
        self.used.store(true, Ordering::Relaxed);
    }
}
