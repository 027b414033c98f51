//! The keyed table: a flat array of slots, a few cache lines per call, no sweeper.
//!
//! A key's fingerprint chooses its home, a group of five slots. Nearly every key sits there, and is decided on without
//! a lock (`head`): find the slot, decide, swap the version, store. A key that is new takes a slot that was never used
//! or whose bucket is full again; the two cannot be told apart by anyone. Only when the home has neither does a key
//! go to one of the next groups, and everything that involves more than one group takes locks (`seats`).

use std::fmt;
use std::hash::Hash;

use tidegate_core::{
    AtBound, CHARGES_MAX, Charge, Cost, Decision, LimitId, Quota, State, Time, Verdict, carry_over, decide, full_at,
    grant,
};

use crate::fingerprint::{Fingerprint, Fingerprints};
use crate::groups::{Group, Groups, SLOTS, Slot};
use crate::head::Version;
use crate::pools::Pools;
use crate::quotas::{KnownQuota, Quotas, TooManyQuotas};
use crate::seats::Ask;
use crate::sync::{AtomicU64, Backoff, Ordering};
use crate::watermarks::Watermarks;

/// Keys that a table has room for unless told otherwise: 2^20.
pub const KEYS_DEFAULT: usize = 1 << 20;
/// The most keys that a table can be given room for: 2^32.
pub const KEYS_MAX: usize = 1 << 32;
/// The most keys in one call of [`Table::check_each_at`].
pub const BATCH_MAX: usize = 16;

/// Groups in which a key can sit: its home and those that follow.
pub(crate) const PROBES: usize = 8;

/// How large a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOptions {
    /// Room for so many keys, rounded up to a multiple of five; at least one, at most [`KEYS_MAX`].
    pub keys: usize,
    /// The seed of the hash, for simulations that must be repeatable. `None`, the default, draws one.
    pub seed: Option<u64>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { keys: KEYS_DEFAULT, seed: None }
    }
}

impl TableOptions {
    /// Room for `keys` keys.
    #[must_use]
    pub fn with_keys(keys: usize) -> Self {
        Self { keys, ..Self::default() }
    }
}

/// A limit as one table knows it; made by [`Table::know`].
#[derive(Clone, Copy, Debug)]
pub struct TableLimit {
    pub(crate) id: LimitId,
    pub(crate) quota: KnownQuota,
    pub(crate) at_bound: AtBound,
    pub(crate) since: Time,
}

impl TableLimit {
    /// The quota.
    #[must_use]
    pub fn quota(&self) -> &KnownQuota {
        &self.quota
    }

    /// The same limit, whose quota is in force since `time`: what a key owed under another quota is carried over as it
    /// stood then. Otherwise it is carried over as it stands when the key is next seen.
    #[must_use]
    pub fn in_force_since(self, time: Time) -> Self {
        Self { since: time, ..self }
    }
}

/// What has happened at the memory bound since the table was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Buckets that were displaced before they were full: each an exception to the limit.
    pub displaced: u64,
    /// Newcomers that were denied for want of room.
    pub refused: u64,
    /// Newcomers that were charged to a pool.
    pub pooled: u64,
}

/// Buckets by key. Threads share it by reference; time is an argument; each call is one atomic step.
///
/// ```
/// use tidegate_memory::{Table, TableOptions};
/// use tidegate_core::{AtBound, Cost, Limit, LimitId, Time};
///
/// let table = Table::new(TableOptions::with_keys(1_000));
/// let quota = "3/min".parse::<Limit>().unwrap().quota().unwrap();
/// let limit = table.know(LimitId::of("api", "per-user"), &quota, AtBound::Displace).unwrap();
/// for left in [2, 1, 0] {
///     assert_eq!(table.check_at(&limit, "alice", Cost::ONE, Time::ZERO).remaining(), left);
/// }
/// assert!(!table.check_at(&limit, "alice", Cost::ONE, Time::ZERO).is_allowed());
/// assert!(table.check_at(&limit, "bob", Cost::ONE, Time::ZERO).is_allowed());
/// ```
pub struct Table {
    pub(crate) groups: Groups,
    /// Groups that can be a home; behind them are only those that the last homes overflow to.
    homes: usize,
    fingerprints: Fingerprints,
    pub(crate) quotas: Quotas,
    pub(crate) pools: Pools,
    pub(crate) watermarks: Watermarks,
    pub(crate) counts: Counts,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) displaced: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) pooled: AtomicU64,
}

/// What came of looking at a key's home without a lock.
enum Attempt {
    Decided(Decision),
    /// Another thread wrote meanwhile.
    Torn,
    /// More than the home is involved.
    NeedsLocks,
}

impl Table {
    /// A table in which all buckets are full. Its memory, [`Table::bytes`], is reserved now and touched as it is used.
    #[must_use]
    pub fn new(options: TableOptions) -> Self {
        let count = options.keys.clamp(1, KEYS_MAX).div_ceil(SLOTS);
        Self {
            groups: Groups::new(count),
            homes: count.saturating_sub(PROBES - 1).max(1),
            fingerprints: options.seed.map_or_else(Fingerprints::random, Fingerprints::seeded),
            quotas: Quotas::new(),
            pools: Pools::new(),
            watermarks: Watermarks::new(),
            counts: Counts::default(),
        }
    }

    /// Makes a limit known to the table. Cheap; a changed quota is made known in the same way.
    ///
    /// # Errors
    /// The table knows too many quotas already.
    pub fn know(&self, id: LimitId, quota: &Quota, at_bound: AtBound) -> Result<TableLimit, TooManyQuotas> {
        Ok(TableLimit { id, quota: self.quotas.know(quota)?, at_bound, since: Time::MAX })
    }

    /// The limit whose quota has this [`KnownQuota::number`]; `None` if the table gave no such number.
    #[must_use]
    #[inline]
    pub fn recall(&self, id: LimitId, number: u32, at_bound: AtBound) -> Option<TableLimit> {
        let quota = KnownQuota { quota: self.quotas.quota(number)?, number };
        Some(TableLimit { id, quota, at_bound, since: Time::MAX })
    }

    /// May `key` take `cost` tokens at `now`? Takes them if so.
    #[inline]
    pub fn check_at<K: Hash + ?Sized>(&self, limit: &TableLimit, key: &K, cost: Cost, now: Time) -> Decision {
        self.check_fingerprint_at(limit, self.fingerprint(limit.id, key), cost, now)
    }

    /// Looks and changes nothing.
    pub fn peek_at<K: Hash + ?Sized>(&self, limit: &TableLimit, key: &K, now: Time) -> Decision {
        self.check_at(limit, key, Cost::ZERO, now)
    }

    /// Decides for up to [`BATCH_MAX`] keys, each by itself, in order, in less time than one after the other: their
    /// memory is asked for all at once. `decisions[i]` becomes the answer to `keys[i]`.
    ///
    /// # Panics
    /// There are more keys than that, or not one decision for each.
    pub fn check_each_at<K: Hash>(
        &self,
        limit: &TableLimit,
        keys: &[K],
        cost: Cost,
        now: Time,
        decisions: &mut [Decision],
    ) {
        assert!(
            keys.len() <= BATCH_MAX && keys.len() == decisions.len(),
            "at most {BATCH_MAX} keys, one decision each"
        );
        let mut fingerprints = [Fingerprint::NONE; BATCH_MAX];
        let mut touched = 0;
        for (fingerprint, key) in fingerprints.iter_mut().zip(keys) {
            *fingerprint = self.fingerprint(limit.id, key);
            touched ^= self.groups.group(self.home(*fingerprint)).touch();
        }
        std::hint::black_box(touched);
        for (fingerprint, decision) in fingerprints.into_iter().zip(decisions) {
            *decision = self.check_fingerprint_at(limit, fingerprint, cost, now);
        }
    }

    /// Decides several charges in one step: all are charged, or none. `decisions[i]` answers `charges[i]`.
    ///
    /// # Errors
    /// A quota is new to the table, and it knows too many already; then nothing is charged.
    ///
    /// # Panics
    /// There are more than [`CHARGES_MAX`] charges, or not one decision for each.
    pub fn decide_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Result<Verdict, TooManyQuotas> {
        assert!(charges.len() <= CHARGES_MAX, "at most {CHARGES_MAX} charges in one decision");
        if let ([charge], [decision]) = (charges, &mut *decisions) {
            let limit = self.know(charge.limit, &charge.quota, charge.at_bound)?;
            *decision = self.check_at(&limit, charge.key, charge.cost, now);
            return Ok(Verdict::over(charges, decisions));
        }
        if charges.is_empty() {
            return Ok(Verdict::over(charges, decisions));
        }
        let mut asks = [Ask::NONE; CHARGES_MAX];
        for (ask, charge) in asks.iter_mut().zip(charges) {
            let fingerprint = self.fingerprint(charge.limit, charge.key);
            let quota = self.quotas.know(&charge.quota)?;
            *ask = Ask { fingerprint, home: self.home(fingerprint), number: quota.number, since: Time::MAX };
        }
        Ok(self.decide_seated(&asks[..charges.len()], charges, decisions, now))
    }

    /// Forgets the bucket of `key`: it is full.
    pub fn reset<K: Hash + ?Sized>(&self, limit: LimitId, key: &K) {
        self.rewrite(self.fingerprint(limit, key), |_| Some(State::FULL));
    }

    /// Gives `tokens` back to `key`, at most to full.
    pub fn grant_at<K: Hash + ?Sized>(&self, limit: LimitId, key: &K, tokens: u64, now: Time) {
        self.rewrite(self.fingerprint(limit, key), |slot| {
            Some(grant(&self.quotas.quota(slot.quota_number)?, slot.state, tokens, now))
        });
    }

    /// Keys that owe something at `now`. Reads the whole table: for a metric, not for a request.
    #[must_use]
    pub fn live_keys_at(&self, now: Time) -> usize {
        let live = |group: Group<'_>| (0..SLOTS).filter(|&i| !self.is_free(&group.slot(i), now)).count();
        (0..self.groups.count()).map(|place| live(self.groups.group(place))).sum()
    }

    /// The most keys that can owe something at once.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.groups.count() * SLOTS
    }

    /// The memory of all buckets, in bytes: 25.6 for each key, and a little. It never changes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
    }

    /// What has happened at the memory bound.
    #[must_use]
    pub fn stats(&self) -> TableStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { displaced, refused, pooled } = &self.counts;
        TableStats { displaced: read(displaced), refused: read(refused), pooled: read(pooled) }
    }

    #[inline]
    fn fingerprint<K: Hash + ?Sized>(&self, limit: LimitId, key: &K) -> Fingerprint {
        self.fingerprints.of(limit, key)
    }

    #[inline]
    pub(crate) fn home(&self, fingerprint: Fingerprint) -> usize {
        fingerprint.scaled_to(self.homes)
    }

    /// The home of the key that a slot belongs to.
    pub(crate) fn home_of_slot(&self, slot: &Slot) -> usize {
        crate::fingerprint::home_of(slot.fingerprint, self.homes)
    }

    #[inline]
    fn check_fingerprint_at(&self, limit: &TableLimit, fingerprint: Fingerprint, cost: Cost, now: Time) -> Decision {
        let home = self.home(fingerprint);
        let mut backoff = Backoff::default();
        loop {
            match self.attempt(home, limit, fingerprint, cost, now) {
                Attempt::Decided(decision) => return decision,
                Attempt::Torn => backoff.wait(),
                Attempt::NeedsLocks => return self.check_with_locks(limit, fingerprint, cost, now),
            }
        }
    }

    #[inline]
    fn attempt(&self, home: usize, limit: &TableLimit, fingerprint: Fingerprint, cost: Cost, now: Time) -> Attempt {
        let group = self.groups.group(home);
        let version = group.head().read();
        match group.position(fingerprint.as_u64()) {
            Some(i) => self.attempt_known(group, version, i, limit, cost, now),
            None if version.flag() => Attempt::NeedsLocks,
            None => self.attempt_new(group, version, home, limit, fingerprint, cost, now),
        }
    }

    #[inline]
    fn attempt_known(
        &self,
        group: Group<'_>,
        version: Version,
        i: usize,
        limit: &TableLimit,
        cost: Cost,
        now: Time,
    ) -> Attempt {
        let slot = group.slot(i);
        let Some(before) = self.state_under(&slot, limit.quota.number, &limit.quota.quota, limit.since, now) else {
            return Attempt::Torn;
        };
        let (decision, state) = decide(&limit.quota.quota, before, cost, now);
        let next = Slot { quota_number: limit.quota.number, state, ..slot };
        if next == slot || cost == Cost::ZERO {
            return if group.head().still(version) { Attempt::Decided(decision) } else { Attempt::Torn };
        }
        let Some(_lock) = group.head().lock_from(version) else { return Attempt::Torn };
        group.write(i, next);
        Attempt::Decided(decision)
    }

    #[expect(clippy::too_many_arguments, reason = "the words of one attempt, passed on as they are")]
    fn attempt_new(
        &self,
        group: Group<'_>,
        version: Version,
        home: usize,
        limit: &TableLimit,
        fingerprint: Fingerprint,
        cost: Cost,
        now: Time,
    ) -> Attempt {
        if limit.at_bound == AtBound::Pool && self.pools.are_used() {
            return Attempt::NeedsLocks;
        }
        let now = self.watermarks.start(home, now);
        let Some(i) = (0..SLOTS).find(|&i| self.is_free(&group.slot(i), now)) else { return Attempt::NeedsLocks };
        let (decision, state) = decide(&limit.quota.quota, State::FULL, cost, now);
        if state == State::FULL {
            return if group.head().still(version) { Attempt::Decided(decision) } else { Attempt::Torn };
        }
        let Some(_lock) = group.head().lock_from(version) else { return Attempt::Torn };
        if group.slot(i).fingerprint != 0 {
            self.watermarks.raise(home, now);
        }
        group.write(i, Slot { fingerprint: fingerprint.as_u64(), quota_number: limit.quota.number, state });
        Attempt::Decided(decision)
    }

    #[cold]
    fn check_with_locks(&self, limit: &TableLimit, fingerprint: Fingerprint, cost: Cost, now: Time) -> Decision {
        let TableLimit { id, quota: KnownQuota { quota, number }, at_bound, since } = *limit;
        let ask = Ask { fingerprint, home: self.home(fingerprint), number, since };
        let charge = Charge { limit: id, quota, key: &[], cost, mode: Default::default(), at_bound };
        let mut decision = Decision::unmade(&quota);
        let _ = self.decide_seated(&[ask], &[charge], std::slice::from_mut(&mut decision), now);
        decision
    }

    /// The slot's state under quota `number`, carried over if it was written under another; `None` if torn.
    #[inline]
    pub(crate) fn state_under(&self, slot: &Slot, number: u32, quota: &Quota, since: Time, now: Time) -> Option<State> {
        if slot.quota_number == number {
            return Some(slot.state);
        }
        let old = self.quotas.quota(slot.quota_number)?;
        // As it stood when the quota changed; but not before it was last written, nor in the future.
        let changed = since.max(slot.state.stamp()).min(now);
        Some(carry_over(&old, quota, slot.state, changed))
    }

    /// Was the slot never used, or is its bucket full again? A torn slot is not free.
    #[inline]
    pub(crate) fn is_free(&self, slot: &Slot, now: Time) -> bool {
        slot.fingerprint == 0 || self.full_at(slot).is_some_and(|full| full <= now)
    }

    #[inline]
    pub(crate) fn full_at(&self, slot: &Slot) -> Option<Time> {
        Some(full_at(&self.quotas.quota(slot.quota_number)?, slot.state))
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new(TableOptions::default())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("capacity", &self.capacity())
            .field("bytes", &self.bytes())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
