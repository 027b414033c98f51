//! The keys that are denied most: what an operator wants to know during an attack, in memory that an attacker cannot grow.
//!
//! Denials are counted where they are decided, so counting must not hold them up. There are a few shards, each a sketch of
//! its own (`most_frequent`) behind a lock that nobody waits for: a denial that meets another one there is not counted,
//! and that is counted. A key belongs to one shard, and each shard has as many counters as are asked for in all, so what
//! is known of a key is as exact as if there were one sketch of the denials that share its shard.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use tidegate_core::{LimitId, Time};
use tidegate_memory::Fingerprints;

use crate::most_frequent::{Counter, MostFrequent};

/// The most keys that can be asked for.
pub const DENIED_KEYS_MAX: usize = 1_000;
/// Bytes of a key that are kept; as many as a key of policies has at most.
const KEY_BYTES_MAX: usize = 1_040;
const SHARDS: usize = 4;

/// The keys that are denied most, up to a number that is chosen. Threads share it by reference.
///
/// At most four times as many keys as are asked for are held, of 1,040 bytes at most each.
///
/// ```
/// use tidegate::{DeniedKeys, LimitId, Time};
///
/// let (denied, limit) = (DeniedKeys::new(10), LimitId::of("api", "per-user"));
/// for key in ["ann", "bob", "ann"] {
///     denied.count(limit, key.as_bytes(), || Time::ZERO);
/// }
/// let most = denied.most();
/// assert_eq!((&*most[0].key, most[0].count, most[0].error), (&b"ann"[..], 2, 0));
/// ```
pub struct DeniedKeys {
    shards: [Shard; SHARDS],
    fingerprints: Fingerprints,
    keys_max: usize,
}

/// On cache lines of its own, so that shards do not hold each other up.
#[repr(align(128))]
struct Shard {
    counters: Mutex<MostFrequent<Name>>,
    missed: AtomicU64,
}

#[derive(Debug)]
struct Name {
    limit: LimitId,
    key: Vec<u8>,
    since: Time,
}

impl Default for Name {
    fn default() -> Self {
        Self { limit: LimitId::from_u64(0), key: Vec::new(), since: Time::ZERO }
    }
}

/// A key that was denied often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedKey {
    /// The limit that denied it.
    pub limit: LimitId,
    /// The key.
    pub key: Vec<u8>,
    /// How often it was denied, at most; at least [`DeniedKey::error`] less.
    pub count: u64,
    /// How many of these may have been others'.
    pub error: u64,
    /// Since when it has a counter.
    pub since: Time,
}

impl DeniedKeys {
    /// The most denied keys, so many of them: at least 1 and at most [`DENIED_KEYS_MAX`].
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        let keys_max = keys_max.clamp(1, DENIED_KEYS_MAX);
        let shard = |_| Shard { counters: Mutex::new(MostFrequent::new(keys_max)), missed: AtomicU64::new(0) };
        Self { shards: std::array::from_fn(shard), fingerprints: Fingerprints::random(), keys_max }
    }

    /// Counts one denial of `key` by `limit`. `now` is asked only if the key had no counter.
    #[inline]
    pub fn count(&self, limit: LimitId, key: &[u8], now: impl FnOnce() -> Time) {
        let identity = self.fingerprints.of(limit, key).as_u64();
        // Neither the upper nor the lower bits: those the map of a shard tells keys apart by.
        let shard = &self.shards[(identity >> 32) as usize % SHARDS];
        let mut counters = match shard.counters.try_lock() {
            Ok(counters) => counters,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                shard.missed.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        counters.see(identity, |name| {
            (name.limit, name.since) = (limit, now());
            name.key.clear();
            name.key.extend_from_slice(&key[..key.len().min(KEY_BYTES_MAX)]);
        });
    }

    /// The keys denied most, the most denied first.
    #[must_use]
    pub fn most(&self) -> Vec<DeniedKey> {
        let mut all: Vec<_> = self.shards.iter().flat_map(|shard| shard.denied()).collect();
        all.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.key.cmp(&other.key)));
        all.truncate(self.keys_max);
        all
    }

    /// Denials that were not counted since they met another one.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.shards.iter().map(|shard| shard.missed.load(Ordering::Relaxed)).sum()
    }

    /// Starts anew.
    pub fn clear(&self) {
        for shard in &self.shards {
            shard.lock().clear();
            shard.missed.store(0, Ordering::Relaxed);
        }
    }
}

impl Shard {
    fn denied(&self) -> Vec<DeniedKey> {
        let denied = |counter: &Counter<Name>| {
            let Counter { count, error, name: Name { limit, key, since }, .. } = counter;
            DeniedKey { limit: *limit, key: key.clone(), count: *count, error: *error, since: *since }
        };
        self.lock().counters().iter().map(denied).collect()
    }

    fn lock(&self) -> MutexGuard<'_, MostFrequent<Name>> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DeniedKeys {
    /// Keys can be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeniedKeys").field("keys_max", &self.keys_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LIMIT: LimitId = LimitId::of("p", "limit-1");

    #[test]
    fn a_key_counts_by_limit_and_is_listed_by_its_count() {
        let denied = DeniedKeys::new(3);
        let other = LimitId::of("p", "limit-2");
        for (limit, key, times) in [(LIMIT, "ann", 5), (other, "ann", 9), (LIMIT, "bob", 2), (LIMIT, "eve", 1)] {
            (0..times).for_each(|i| denied.count(limit, key.as_bytes(), || Time::from_secs(i)));
        }
        let most: Vec<_> = denied.most().into_iter().map(|one| (one.limit, one.key, one.count, one.since)).collect();
        let key = |limit, key: &str, count| (limit, key.as_bytes().to_vec(), count, Time::ZERO);
        assert_eq!(most, [key(other, "ann", 9), key(LIMIT, "ann", 5), key(LIMIT, "bob", 2)]);
        denied.clear();
        assert_eq!((denied.most(), denied.missed()), (Vec::new(), 0));
    }

    #[test]
    fn invented_keys_neither_grow_it_nor_hide_who_is_denied_most() {
        let denied = DeniedKeys::new(10);
        for i in 0..100_000_u64 {
            denied.count(LIMIT, &[&i.to_le_bytes()[..], &[7; 4_000]].concat(), || Time::ZERO);
            if i % 4 == 0 {
                denied.count(LIMIT, b"flood", || Time::ZERO);
            }
        }
        let most = denied.most();
        assert_eq!((most.len(), &*most[0].key), (10, &b"flood"[..]));
        assert!(most[0].count - most[0].error <= 25_000 && most[0].count >= 25_000, "{:?}", most[0]);
        assert!(denied.shards.iter().all(|shard| shard.lock().counters().len() <= 10));
        assert!(most.iter().all(|one| one.key.len() <= KEY_BYTES_MAX));
    }

    #[test]
    fn every_denial_is_counted_or_missed() {
        let denied = DeniedKeys::new(10);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50_000).for_each(|_| denied.count(LIMIT, b"flood", || Time::ZERO)));
            }
        });
        assert_eq!(denied.most()[0].count + denied.missed(), 200_000);
    }
}
