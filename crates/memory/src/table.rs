//! The keyed table: a flat array of slots, a few cache lines per call, no sweeper.
//!
//! A key's fingerprint chooses its home, a group of five slots. Nearly every key sits there, and is decided on without
//! a lock (`attempt`): find the slot, decide, swap the version, store. A key that is new takes a slot that was never used
//! or whose bucket is full again; the two cannot be told apart by anyone. Only when the home has neither does a key
//! go to one of the next groups; whatever changes more than one group takes locks (`seats`).

use std::fmt;
use std::hash::Hash;

use tidegate_core::{
    AtBound, CHARGES_MAX, Charge, Cost, Decision, Handling, Kept, LimitId, Mode, Quota, State, Time, Verdict, grant,
};

use crate::attempt::{Attempt, Request};
use crate::fingerprint::{Fingerprint, Fingerprints, Seeds};
use crate::groups::{Group, Groups, SLOTS, Slot};
use crate::log_seats::is_log;
use crate::logs::{LOG_BYTES_DEFAULT, Logs, Under};
use crate::pools::Pools;
use crate::quotas::{KnownQuota, Quotas, TooManyQuotas};
use crate::seats::{Ask, Deed};
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
    /// Sliding logs, which are kept beside the slots, take at most so many bytes; at least [`LOG_BYTES_MIN`].
    ///
    /// [`LOG_BYTES_MIN`]: crate::LOG_BYTES_MIN
    pub log_bytes: usize,
    /// The seed of the hash, for simulations that must be repeatable. `None`, the default, draws one.
    pub seed: Option<u64>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { keys: KEYS_DEFAULT, log_bytes: LOG_BYTES_DEFAULT, seed: None }
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
    pub(crate) homes: usize,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) quotas: Quotas,
    pub(crate) pools: Pools,
    pub(crate) logs: Logs,
    pub(crate) watermarks: Watermarks,
    pub(crate) counts: Counts,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) displaced: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) pooled: AtomicU64,
}

impl Table {
    /// A table in which all buckets are full. Its memory, [`Table::bytes`], is reserved now and touched as it is used.
    #[must_use]
    pub fn new(options: TableOptions) -> Self {
        Self::with_fingerprints(options, options.seed.map_or_else(Fingerprints::random, Fingerprints::seeded))
    }

    /// The same, with the hash function of another table, whose keys are to be known here.
    #[must_use]
    pub fn with_seeds(options: TableOptions, seeds: Seeds) -> Self {
        Self::with_fingerprints(options, Fingerprints::of_seeds(seeds))
    }

    fn with_fingerprints(options: TableOptions, fingerprints: Fingerprints) -> Self {
        let count = options.keys.clamp(1, KEYS_MAX).div_ceil(SLOTS);
        Self {
            groups: Groups::new(count),
            homes: count.saturating_sub(PROBES - 1).max(1),
            fingerprints,
            quotas: Quotas::new(),
            pools: Pools::new(),
            logs: Logs::new(options.log_bytes),
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
        let quota = KnownQuota { quota: *self.quotas.quota(number)?, number };
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
    #[inline]
    pub fn decide_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Result<Verdict, TooManyQuotas> {
        match (charges, &mut *decisions) {
            ([charge], [decision]) => {
                *decision = self.decide_one_at(charge, now)?;
                Ok(Verdict::over(charges, decisions))
            }
            _ => self.decide_several_at(charges, decisions, now),
        }
    }

    /// Decides one charge.
    ///
    /// # Errors
    /// As [`Table::decide_at`].
    #[inline]
    pub fn decide_one_at(&self, charge: &Charge<'_>, now: Time) -> Result<Decision, TooManyQuotas> {
        if charge.mode == Mode::Guard {
            return self.guard_at(charge, now);
        }
        let limit = self.know(charge.limit, &charge.quota, charge.handling.at_bound)?;
        Ok(self.check_at(&limit.in_force_since(since(charge)), charge.key, charge.cost, now))
    }

    #[cold]
    fn guard_at(&self, charge: &Charge<'_>, now: Time) -> Result<Decision, TooManyQuotas> {
        let mut decision = Decision::unmade(&charge.quota);
        let charges = std::slice::from_ref(charge);
        self.decide_several_at(charges, std::slice::from_mut(&mut decision), now).map(|_| decision)
    }

    /// Apart, since it needs much room on the stack.
    #[inline(never)]
    fn decide_several_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Result<Verdict, TooManyQuotas> {
        assert!(charges.len() <= CHARGES_MAX, "at most {CHARGES_MAX} charges in one decision");
        if charges.is_empty() {
            return Ok(Verdict::over(charges, decisions));
        }
        let mut asks = [Ask::NONE; CHARGES_MAX];
        for (ask, charge) in asks.iter_mut().zip(charges) {
            let fingerprint = self.fingerprint(charge.limit, charge.key);
            let quota = self.quotas.know(&charge.quota)?;
            *ask = Ask { fingerprint, home: self.home(fingerprint), number: quota.number, since: since(charge) };
        }
        Ok(self.decide_seated(&asks[..charges.len()], charges, false, decisions, now))
    }

    /// Forgets the bucket of `key`: it is full.
    pub fn reset<K: Hash + ?Sized>(&self, limit: LimitId, key: &K) {
        let fingerprint = self.fingerprint(limit, key);
        self.rewrite(fingerprint, |_| Some(State::FULL));
        self.logs.lock(self.logs.shard_of(fingerprint)).reset(fingerprint);
    }

    /// Gives `tokens` back to `key`, at most to full.
    pub fn grant_at<K: Hash + ?Sized>(&self, limit: LimitId, key: &K, tokens: u64, now: Time) {
        let fingerprint = self.fingerprint(limit, key);
        self.rewrite(fingerprint, |slot| Some(grant(self.quotas.quota(slot.quota_number)?, slot.state, tokens, now)));
        let mut logs = self.logs.lock(self.logs.shard_of(fingerprint));
        let number = logs.written(fingerprint);
        if let Some((number, quota)) = number.and_then(|number| Some((number, self.quotas.quota(number)?))) {
            logs.change(fingerprint, Under { number, quota }, |log| log.grant(quota, tokens, now));
        }
    }

    /// Settles a charge that was made at `reserved_at` and truly cost `actual`: gives back what was too much, owes what
    /// was too little. The debt of a key that has lost its bucket meanwhile takes a seat as a newcomer does; at the
    /// bound of a limit that denies newcomers it is forgotten with the key.
    ///
    /// # Errors
    /// The charge's quota is new to the table, and it knows too many already; then nothing is changed.
    pub fn settle_at(
        &self,
        charge: &Charge<'_>,
        reserved_at: Time,
        actual: Cost,
        now: Time,
    ) -> Result<(), TooManyQuotas> {
        let (fingerprint, number) =
            (self.fingerprint(charge.limit, charge.key), self.quotas.know(&charge.quota)?.number);
        let ask = Ask { fingerprint, home: self.home(fingerprint), number, since: Time::MAX };
        let mut unmade = [Decision::unmade(&charge.quota)];
        let _ = self.do_seated(Deed::Settle { reserved_at, actual }, &[ask], &[*charge], false, &mut unmade, now);
        Ok(())
    }

    /// Forgets the bucket of `key`, and says what it was; `None` if it was full.
    pub(crate) fn take_away_at<K: Hash + ?Sized>(&self, limit: LimitId, key: &K, now: Time) -> Option<State> {
        let mut taken = None;
        self.rewrite(self.fingerprint(limit, key), |slot| {
            taken = (!self.is_free(slot, now)).then_some(slot.state);
            taken.map(|_| State::FULL)
        });
        taken
    }

    /// The bucket of `key` as it is kept; `None` if it is full.
    #[must_use]
    pub fn inspect_at<K: Hash + ?Sized>(&self, limit: LimitId, key: &K, now: Time) -> Option<Kept> {
        let mut kept = None;
        let fingerprint = self.fingerprint(limit, key);
        self.rewrite(fingerprint, |slot| {
            let (quota, full) = (*self.quotas.quota(slot.quota_number)?, self.full_at(slot)?);
            kept = (full > now).then(|| Kept { state: slot.state, quota, expires_in: Some(full.since(now)) });
            None
        });
        kept.or_else(|| {
            let mut logs = self.logs.lock(self.logs.shard_of(fingerprint));
            let quota = *self.quotas.quota(logs.written(fingerprint)?)?;
            let (state, end) = logs.inspect(fingerprint, &quota, now)?;
            Some(Kept { state, quota, expires_in: Some(end.since(now)) })
        })
    }

    /// Keys that owe something at `now`. Reads the whole table: for a metric, not for a request.
    #[must_use]
    pub fn live_keys_at(&self, now: Time) -> usize {
        let live = |group: Group<'_>| (0..SLOTS).filter(|&i| !self.is_free(&group.slot(i), now)).count();
        (0..self.groups.count()).map(|place| live(self.groups.group(place))).sum::<usize>() + self.logs.live_at(now)
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

    /// The most memory that all sliding logs take, in bytes. It is taken as keys of such limits come.
    #[must_use]
    pub fn log_bytes_max(&self) -> usize {
        self.logs.bytes()
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
        let request = Request { limit, fingerprint, home: self.home(fingerprint), cost, now };
        if is_log(&limit.quota.quota) {
            return self.check_with_locks(request, false);
        }
        let mut backoff = Backoff::default();
        loop {
            match self.attempt(request) {
                Attempt::Decided(decision) => return decision,
                Attempt::Torn => backoff.wait(),
                Attempt::NeedsLocks { probing } => return self.check_with_locks(request, probing),
            }
        }
    }

    #[cold]
    fn check_with_locks(&self, request: Request<'_>, probing: bool) -> Decision {
        let Request { limit, fingerprint, home, cost, now } = request;
        let TableLimit { id, quota: KnownQuota { quota, number }, at_bound, since } = *limit;
        let ask = Ask { fingerprint, home, number, since };
        let handling = Handling::default().with_at_bound(at_bound);
        let charge = Charge { limit: id, quota, key: &[], cost, mode: Mode::Enforce, handling };
        let mut decision = Decision::unmade(&quota);
        let _ = self.decide_seated(&[ask], &[charge], probing, std::slice::from_mut(&mut decision), now);
        decision
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

/// Since when the charge's quota is in force; without a word on it, what a key owes is carried over at present.
#[inline]
fn since(charge: &Charge<'_>) -> Time {
    charge.handling.in_force_since.unwrap_or(Time::MAX)
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
