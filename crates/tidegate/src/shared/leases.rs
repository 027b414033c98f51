//! Tokens that this process has taken ahead, and spends by itself.
//!
//! A lease is paid for before it is spent: the tokens have left the shared bucket. So over time the limit holds exactly,
//! over all processes; in any one window the tokens out on lease come on top of what the law permits, at most
//! [`most_of`] for each key and process.
//!
//! A lease follows the demand on its key. A key gets one when it is asked about a second time within [`IDLE`]; the next
//! batch is twice as large if the last one was used up within [`BUSY`], and half as large if it lasted. What is not
//! asked for during [`IDLE`] is given back. What a process holds when it dies stays spent.
//!
//! The decisions that are told are estimates: the bucket as the store last saw it, with what is left of the lease still
//! in it.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{CHARGES_MAX, Charge, Cost, Decision, LimitId, Quota, Sharing, Source, Time, Verdict};

use super::elsewhere;
use super::seen::{Answered, Seen};

/// Keys that can have a lease at once; the others are decided exactly.
const LEASES_MAX: usize = 65_536;
const SHARDS: usize = 64;
/// Without a request for this long, a lease is given back.
const IDLE: Duration = Duration::from_millis(250);
/// A batch that is used up within this time is followed by a larger one.
const BUSY: Duration = Duration::from_millis(100);
/// The first batch.
const BATCH_FIRST: u64 = 4;

pub(super) struct Leases {
    shards: Box<[Mutex<Shard>]>,
    hash: RandomState,
    /// Tokens held, over all keys.
    out: AtomicU64,
}

type Shard = HashMap<u64, Lease>;

struct Lease {
    limit: LimitId,
    key: Box<[u8]>,
    quota: Quota,
    left: u64,
    /// The bucket after the last batch was taken; `None` before the first.
    seen: Option<Seen>,
    /// How much to take next.
    batch: u64,
    asked_at: Time,
    refilled_at: Time,
    is_refilling: bool,
}

/// A batch to be taken: at most so many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch(pub(super) u64);

/// Tokens to be given back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unneeded {
    pub(super) limit: LimitId,
    pub(super) key: Box<[u8]>,
    pub(super) quota: Quota,
    pub(super) tokens: u64,
}

/// The verdict on a request that leases paid for, and which of its charges should be refilled.
pub(super) struct Spent {
    pub(super) verdict: Verdict,
    low: [bool; CHARGES_MAX],
}

impl Spent {
    /// The charges whose lease runs low.
    pub(super) fn low<'a, 'k>(&self, charges: &'a [Charge<'k>]) -> impl Iterator<Item = &'a Charge<'k>> {
        charges.iter().zip(self.low).filter_map(|(charge, low)| low.then_some(charge))
    }
}

/// The most tokens of one key that this process may hold: what the limit says, and no more than a quarter of the burst,
/// so that others find some. Zero if that leaves less than two: then the limit is decided exactly.
pub(super) fn most_of(charge: &Charge<'_>) -> u64 {
    match charge.handling.sharing {
        Sharing::Exact => 0,
        Sharing::Leased { most } => match u64::from(most.get()).min(charge.quota.burst() / 4) {
            most @ 2.. => most,
            _ => 0,
        },
    }
}

/// Can all of these be paid for by leases?
pub(super) fn are_leased(charges: &[Charge<'_>]) -> bool {
    charges.iter().all(|charge| charge.cost > Cost::ZERO && most_of(charge) > 0)
}

impl Leases {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect();
        Self { shards, hash: RandomState::new(), out: AtomicU64::new(0) }
    }

    /// Tokens that this process holds, over all keys.
    pub(super) fn tokens(&self) -> u64 {
        self.out.load(Ordering::Relaxed)
    }

    /// Pays for all charges, or for none; `None` if one of the leases does not suffice.
    pub(super) fn spend_at(&self, charges: &[Charge<'_>], decisions: &mut [Decision], now: Time) -> Option<Spent> {
        let mut low = [false; CHARGES_MAX];
        for (i, charge) in charges.iter().enumerate() {
            match self.spend_one_at(charge, now) {
                Some((decision, is_low)) => (decisions[i], low[i]) = (decision, is_low),
                None => {
                    charges[..i].iter().for_each(|paid| self.put_back(paid));
                    return None;
                }
            }
        }
        Some(Spent { verdict: elsewhere(charges, decisions, Source::Lease), low })
    }

    fn spend_one_at(&self, charge: &Charge<'_>, now: Time) -> Option<(Decision, bool)> {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let mut shard = self.shard(fingerprint);
        let lease = shard.get_mut(&fingerprint).filter(|lease| lease.quota == charge.quota)?;
        lease.asked_at = now;
        let left = lease.left.checked_sub(charge.cost.tokens())?;
        let decision = lease.seen?.spending_at(charge, lease.left, now)?;
        lease.left = left;
        self.out.fetch_sub(charge.cost.tokens(), Ordering::Relaxed);
        Some((decision, left < lease.batch / 2 && !lease.is_refilling))
    }

    fn put_back(&self, charge: &Charge<'_>) {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        if let Some(lease) = self.shard(fingerprint).get_mut(&fingerprint) {
            lease.left += charge.cost.tokens();
            self.out.fetch_add(charge.cost.tokens(), Ordering::Relaxed);
        }
    }

    /// Notes that the key was asked about. Says what to take ahead, if it is worth it and nobody is at it; then
    /// [`Leases::filled`] or [`Leases::not_filled`] is to follow.
    pub(super) fn refill_at(&self, charge: &Charge<'_>, now: Time) -> Option<Batch> {
        let most = most_of(charge);
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let mut shard = self.shard(fingerprint);
        let has_room = shard.len() < LEASES_MAX / SHARDS;
        match shard.get_mut(&fingerprint) {
            Some(lease) if lease.quota == charge.quota => lease.next_batch_at(most, now),
            // A changed quota is another limit: what was taken under the old one stays spent.
            Some(lease) => {
                self.out.fetch_sub(lease.left, Ordering::Relaxed);
                *lease = Lease::new(charge, now);
                None
            }
            None => {
                if has_room && most > 0 {
                    shard.insert(fingerprint, Lease::new(charge, now));
                }
                None
            }
        }
    }

    /// So many tokens were taken. Tokens for a key that was forgotten meanwhile are returned, to be given back.
    pub(super) fn filled(&self, charge: &Charge<'_>, tokens: u64, decision: &Decision, answered: &Answered) -> u64 {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        match self.shard(fingerprint).get_mut(&fingerprint).filter(|lease| lease.quota == charge.quota) {
            Some(lease) => {
                lease.is_refilling = false;
                lease.left += tokens;
                lease.seen = Some(Seen::new(decision, answered));
                self.out.fetch_add(tokens, Ordering::Relaxed);
                0
            }
            None => tokens,
        }
    }

    /// Nothing was taken: there was nothing, or no answer.
    pub(super) fn not_filled(&self, charge: &Charge<'_>) {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        if let Some(lease) = self.shard(fingerprint).get_mut(&fingerprint) {
            lease.is_refilling = false;
            lease.batch = (lease.batch / 2).max(1);
        }
    }

    /// Takes away the leases that nobody asked for during [`IDLE`]; with `None` all of them.
    pub(super) fn unneeded_at(&self, now: Option<Time>) -> Vec<Unneeded> {
        let mut unneeded = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = shard.extract_if(|_, lease| now.is_none_or(|now| now.since(lease.asked_at) >= IDLE));
            unneeded.extend(ended.map(|(_, lease)| lease.into_unneeded()).filter(|one| one.tokens > 0));
        }
        self.out.fetch_sub(unneeded.iter().map(|one| one.tokens).sum(), Ordering::Relaxed);
        unneeded
    }

    /// Drops the lease of this key. Its tokens stay spent.
    pub(super) fn forget(&self, limit: LimitId, key: &[u8]) {
        let fingerprint = self.fingerprint(limit, key);
        if let Some(lease) = self.shard(fingerprint).remove(&fingerprint) {
            self.out.fetch_sub(lease.left, Ordering::Relaxed);
        }
    }

    fn fingerprint(&self, limit: LimitId, key: &[u8]) -> u64 {
        self.hash.hash_one((limit, key))
    }

    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Shard> {
        // Below the number of shards. Whoever panicked while holding the lock has left whole leases.
        self.shards[(fingerprint % SHARDS as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn new(charge: &Charge<'_>, now: Time) -> Self {
        Self {
            limit: charge.limit,
            key: charge.key.into(),
            quota: charge.quota,
            left: 0,
            seen: None,
            batch: BATCH_FIRST,
            asked_at: now,
            refilled_at: Time::ZERO,
            is_refilling: false,
        }
    }

    fn next_batch_at(&mut self, most: u64, now: Time) -> Option<Batch> {
        self.asked_at = now;
        if self.is_refilling {
            return None;
        }
        let lasted = now.since(self.refilled_at);
        let next = if lasted < BUSY { self.batch.saturating_mul(2) } else { self.batch };
        let next = if lasted > 4 * BUSY { (next / 2).max(BATCH_FIRST) } else { next };
        self.batch = next.min(most);
        let tokens = self.batch.min(most.saturating_sub(self.left));
        if tokens == 0 {
            return None;
        }
        (self.is_refilling, self.refilled_at) = (true, now);
        Some(Batch(tokens))
    }

    fn into_unneeded(self) -> Unneeded {
        let Self { limit, key, quota, left: tokens, .. } = self;
        Unneeded { limit, key, quota, tokens }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tidegate_core::{Handling, Limit, State, decide};

    use super::*;
    use crate::shared::seen::Asking;

    fn leased<'a>(key: &'a [u8], limit: &str, most: u32) -> Charge<'a> {
        let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
        let sharing = Sharing::Leased { most: NonZeroU32::new(most).unwrap() };
        let handling = Handling::default().with_sharing(sharing);
        Charge::new(LimitId::of("p", "l"), quota, key).with_handling(handling)
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Takes the batch, from a full bucket.
    fn fill(leases: &Leases, charge: &Charge<'_>, Batch(tokens): Batch, now: Time) {
        let (decision, _) = decide(&charge.quota, State::FULL, Cost::new(tokens), now);
        let answered = Asking { at: now, forgotten: 0 }.answered_at(now);
        assert_eq!(leases.filled(charge, tokens, &decision, &answered), 0);
    }

    fn spend(leases: &Leases, charges: &[Charge<'_>], now: Time) -> Option<Decision> {
        let mut decisions = vec![Decision::unmade(&charges[0].quota); charges.len()];
        let spent = leases.spend_at(charges, &mut decisions, now)?;
        assert_eq!((spent.verdict.allowed, spent.verdict.source), (true, Source::Lease));
        Some(decisions[0])
    }

    /// A lease of four, as a key has after it was asked about twice.
    fn lease_of_four<'a>(charge: &Charge<'a>) -> Leases {
        let leases = Leases::new();
        assert_eq!(leases.refill_at(charge, at(1_000)), None, "one request is no demand");
        assert_eq!(leases.refill_at(charge, at(1_001)), Some(Batch(BATCH_FIRST)));
        assert_eq!(leases.refill_at(charge, at(1_001)), None, "one at a time");
        fill(&leases, charge, Batch(4), at(1_002));
        leases
    }

    #[test]
    fn what_was_taken_is_spent_and_no_more() {
        let charge = leased(b"k", "100/s", 50);
        let leases = lease_of_four(&charge);
        assert_eq!(leases.tokens(), 4);
        let remaining: Vec<_> = (0..4).map(|_| spend(&leases, &[charge], at(1_002)).unwrap().remaining()).collect();
        assert_eq!(remaining, [99, 98, 97, 96], "as if each had been taken from the bucket");
        assert!(spend(&leases, &[charge], at(1_002)).is_none());
        assert_eq!(leases.tokens(), 0);
    }

    #[test]
    fn several_charges_are_paid_all_or_none() {
        let (a, b) = (leased(b"a", "100/s", 50), leased(b"b", "100/s", 50));
        let leases = lease_of_four(&a);
        assert!(spend(&leases, &[a, b], at(1_002)).is_none());
        assert_eq!(leases.tokens(), 4, "b had nothing, so a keeps its own");
    }

    #[test]
    fn the_batch_follows_the_demand_up_to_the_most() {
        let charge = leased(b"k", "1000/s", 20);
        let leases = lease_of_four(&charge);
        let mut batches = Vec::new();
        let mut next = |ms: u64| {
            while spend(&leases, &[charge], at(ms)).is_some() {}
            let batch = leases.refill_at(&charge, at(ms)).unwrap();
            fill(&leases, &charge, batch, at(ms));
            batches.push(batch.0);
        };
        [1_010, 1_020, 1_030, 1_040].into_iter().for_each(&mut next);
        [1_200, 1_650, 2_100, 2_550].into_iter().for_each(&mut next);
        assert_eq!(batches, [8, 16, 20, 20, 20, 10, 5, 4]);
    }

    #[test]
    fn a_process_never_holds_more_than_the_most() {
        let charge = leased(b"k", "1000/s", 20);
        let leases = lease_of_four(&charge);
        for ms in 1_003..1_100 {
            if let Some(batch) = leases.refill_at(&charge, at(ms)) {
                fill(&leases, &charge, batch, at(ms));
            }
            assert!(leases.tokens() <= 20);
        }
        assert_eq!(leases.tokens(), 20);
    }

    #[test]
    fn a_small_limit_is_not_leased_and_a_lease_leaves_three_quarters_to_others() {
        assert_eq!(most_of(&leased(b"k", "3/min", 100)), 0);
        assert_eq!(most_of(&leased(b"k", "7/min", 100)), 0);
        assert_eq!(most_of(&leased(b"k", "100/s", 1_000)), 25);
        assert_eq!(most_of(&leased(b"k", "100/s", 10)), 10);
        assert!(!are_leased(&[leased(b"k", "100/s", 10).with_cost(Cost::ZERO)]), "a look is exact");
        let leases = Leases::new();
        for ms in 0..10 {
            assert_eq!(leases.refill_at(&leased(b"k", "3/min", 100), at(ms)), None);
        }
    }

    #[test]
    fn what_nobody_asks_for_is_given_back() {
        let charge = leased(b"k", "100/s", 50);
        let leases = lease_of_four(&charge);
        assert!(spend(&leases, &[charge], at(1_100)).is_some());
        assert_eq!(leases.unneeded_at(Some(at(1_349))), []);
        let given_back = leases.unneeded_at(Some(at(1_350)));
        assert_eq!(given_back.iter().map(|one| (&*one.key, one.tokens)).collect::<Vec<_>>(), [(&b"k"[..], 3)]);
        assert_eq!(leases.tokens(), 0);
        assert!(spend(&leases, &[charge], at(1_350)).is_none());
    }

    #[test]
    fn a_batch_that_comes_after_its_key_was_forgotten_is_given_back() {
        let charge = leased(b"k", "100/s", 50);
        let leases = lease_of_four(&charge);
        leases.forget(charge.limit, charge.key);
        assert_eq!(leases.tokens(), 0);
        let (decision, _) = decide(&charge.quota, State::FULL, Cost::new(4), at(1_003));
        let answered = Asking { at: at(1_002), forgotten: 0 }.answered_at(at(1_003));
        assert_eq!(leases.filled(&charge, 4, &decision, &answered), 4);
    }

    #[test]
    fn a_changed_quota_spends_nothing_of_the_old_one() {
        let charge = leased(b"k", "100/s", 50);
        let leases = lease_of_four(&charge);
        let changed = leased(b"k", "200/s", 50);
        assert!(spend(&leases, &[changed], at(1_003)).is_none());
        assert_eq!(leases.refill_at(&changed, at(1_003)), None);
        assert_eq!(leases.tokens(), 0);
    }

    #[test]
    fn invented_keys_do_not_grow_the_memory() {
        let leases = Leases::new();
        let keys: Vec<_> = (0..2 * LEASES_MAX as u64).map(u64::to_be_bytes).collect();
        keys.iter().for_each(|key| assert_eq!(leases.refill_at(&leased(key, "100/s", 50), at(1_000)), None));
        let held: usize = leases.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(held <= LEASES_MAX, "{held}");
        leases.unneeded_at(Some(at(1_250)));
        let held: usize = leases.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert_eq!(held, 0);
    }
}
