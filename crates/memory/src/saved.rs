//! A table as plain data: what one process leaves behind, and the next one takes up.
//!
//! A bucket is told by its fingerprint, so whoever takes it up needs the seeds of the table that it comes from. It brings
//! the quota that it was written under, since numbers of quotas mean something in one table only; a limit that has
//! changed meanwhile then carries over what is owed, as ever. Buckets that are full are not told: they are no buckets.
//!
//! The other table may have another size. Fingerprints choose homes in any of them.

use tidegate_core::{LimitId, Quota, State, Time, full_at};

use crate::fingerprint::{Fingerprint, Seeds, home_of};
use crate::groups::{KEYS_AWAY, KEYS_POOLED, SLOTS, Slot};
use crate::pools::Pool;
use crate::quotas::TooManyQuotas;
use crate::sync::Backoff;
use crate::table::{Table, count};

/// A bucket that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedBucket {
    /// The key, as a table of the same seeds knows it.
    pub fingerprint: Fingerprint,
    /// The quota that it was written under.
    pub quota: Quota,
    /// What was missing, and when.
    pub state: State,
}

/// The bucket that newcomers to a limit share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPool {
    /// The limit.
    pub limit: LimitId,
    /// The quota that it was written under.
    pub quota: Quota,
    /// What was missing, and when.
    pub state: State,
}

/// Keys that may have been charged to a pool: those with fingerprints from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PooledKeys {
    /// The first fingerprint.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl Table {
    /// The seeds of the hash function.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        self.fingerprints.seeds()
    }

    /// The buckets that are not full at `now`, each as it stood at one moment. Reads the whole table, and writes nothing.
    pub fn buckets_at(&self, now: Time) -> impl Iterator<Item = SavedBucket> {
        (0..self.groups.count()).flat_map(|group| self.slots(group)).filter_map(move |slot| {
            let (fingerprint, quota) =
                (Fingerprint::from_u64(slot.fingerprint)?, *self.quotas.quota(slot.quota_number)?);
            let bucket = SavedBucket { fingerprint, quota, state: slot.state };
            (full_at(&quota, slot.state) > now).then_some(bucket)
        })
    }

    /// The pools that are not full at `now`.
    #[must_use]
    pub fn pools_at(&self, now: Time) -> Vec<SavedPool> {
        let saved = |(limit, Pool { quota_number, state })| {
            let quota = *self.quotas.quota(quota_number)?;
            (full_at(&quota, state) > now).then_some(SavedPool { limit, quota, state })
        };
        self.pools.lock().all().into_iter().filter_map(saved).collect()
    }

    /// The keys that may have been charged to a pool.
    pub fn pooled_keys(&self) -> impl Iterator<Item = PooledKeys> {
        let pooled = (0..self.homes).filter(|home| self.groups.group(*home).head().read().has(KEYS_POOLED));
        pooled.map(|home| PooledKeys {
            first: first_of(home, self.homes),
            last: first_of(home + 1, self.homes).wrapping_sub(1),
        })
    }

    /// Takes up a bucket of another table, as it was; `false` if there is no room for it. One that is full at `now` needs
    /// none.
    ///
    /// # Errors
    /// Its quota is new to the table, and it knows too many already.
    pub fn take_up_at(&mut self, bucket: &SavedBucket, now: Time) -> Result<bool, TooManyQuotas> {
        if full_at(&bucket.quota, bucket.state) <= now {
            return Ok(true);
        }
        let fingerprint = bucket.fingerprint.as_u64();
        // No decision leaves a deficit that does not fit; who writes one down by hand owes less.
        let deficit = bucket.state.deficit().min(State::DEFICIT_END - 1);
        let state = State::from_parts(deficit, bucket.state.stamp());
        let slot = Slot { fingerprint, quota_number: self.quotas.know(&bucket.quota)?.number, state };
        let home = self.home(bucket.fingerprint);
        let seat = |group: usize| {
            let fits = |i: &usize| [0, fingerprint].contains(&self.groups.group(group).slot(*i).fingerprint);
            (0..SLOTS).find(fits).map(|i| (group, i))
        };
        let Some((group, i)) = self.chain(home, true).find_map(seat) else {
            count(&self.counts.displaced);
            return Ok(false);
        };
        let lock = self.groups.group(group).head().lock();
        self.groups.group(group).write(i, slot);
        drop(lock);
        if group != home {
            self.groups.group(home).head().lock().raise(KEYS_AWAY);
        }
        Ok(true)
    }

    /// Takes up a pool of another table; `false` if there are too many.
    ///
    /// # Errors
    /// As [`Table::take_up_at`].
    pub fn take_up_pool(&mut self, pool: &SavedPool) -> Result<bool, TooManyQuotas> {
        let quota_number = self.quotas.know(&pool.quota)?.number;
        let mut pools = self.pools.lock();
        let has_room = pools.has_room_for(pool.limit);
        if has_room {
            pools.write(pool.limit, Pool { quota_number, state: pool.state });
        }
        Ok(has_room)
    }

    /// Takes up that these keys may have been charged to a pool.
    pub fn take_up_pooled(&mut self, keys: PooledKeys) {
        let [first, last] = [keys.first, keys.last].map(|fingerprint| home_of(fingerprint, self.homes));
        (first..=last).for_each(|home| self.groups.group(home).head().lock().raise(KEYS_POOLED));
    }

    /// The slots of a group, as they all were at one moment.
    fn slots(&self, group: usize) -> [Slot; SLOTS] {
        let (group, mut backoff) = (self.groups.group(group), Backoff::default());
        loop {
            let version = group.head().read();
            let slots = std::array::from_fn(|i| group.slot(i));
            if group.head().still(version) {
                return slots;
            }
            backoff.wait();
        }
    }
}

/// The first fingerprint whose home is this one of so many: the least `f` for which `f * homes / 2^64` is `home`. Behind
/// the last home it is 2^64, of which only the lower bits are left.
fn first_of(home: usize, homes: usize) -> u64 {
    (((home as u128) << 64).div_ceil(homes as u128)) as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_homes_of_a_table_divide_all_fingerprints() {
        for homes in [1, 2, 3, 7, 1_000_003] {
            for home in [0, homes / 2, homes - 1] {
                let (first, last) = (first_of(home, homes), first_of(home + 1, homes).wrapping_sub(1));
                assert_eq!([first, last].map(|fingerprint| home_of(fingerprint, homes)), [home; 2]);
                assert!(first == 0 || home_of(first - 1, homes) == home - 1);
                assert!(last == u64::MAX || home_of(last + 1, homes) == home + 1);
            }
        }
    }
}
