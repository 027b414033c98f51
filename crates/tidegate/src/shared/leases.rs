//! Tokens that this process has taken ahead, and spends by itself.
//!
//! A lease is paid for before it is spent: the tokens have left the shared bucket. So over time the limit holds exactly,
//! over all processes; in any one window the tokens out on lease come on top of what the law permits, at most
//! [`most_ahead`](tidegate_core::Sharing::most_ahead) for each key and process.
//!
//! A lease follows the demand on its key. A key gets one when it is asked about a second time within [`IDLE`]; the next
//! batch is twice as large if the last one was used up within [`BUSY`], and half as large if it lasted. What is not
//! asked for during [`IDLE`] is given back. What a process holds when it dies stays spent.
//!
//! The decisions that are told are estimates: the bucket as the store last saw it, with what is left of the lease still
//! in it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{CHARGES_MAX, Charge, Cost, Decision, LimitId, Quota, Source, Time, Verdict};
use tidegate_memory::Fingerprints;
use tokio::sync::Notify;

use super::elsewhere;
use super::seen::{Answered, Seen};

/// Keys that can have a lease at once; the others are decided exactly.
const LEASES_MAX: usize = 65_536;
const SHARDS: usize = 64;
/// Without a request for this long, a lease is given back.
const IDLE: Duration = Duration::from_millis(250);
/// A batch that is used up within this time is followed by a larger one.
const BUSY: Duration = IDLE;
/// The first batch.
const BATCH_FIRST: u64 = 4;

pub(super) struct Leases {
    shards: Box<[Shard]>,
    fingerprints: Fingerprints,
    /// Tokens held, over all keys.
    out: AtomicU64,
}

#[derive(Default)]
struct Shard {
    leases: Mutex<HashMap<u64, Lease, BuildHasherDefault<AsItIs>>>,
    /// Wakes whoever waits for a batch of one of them.
    refilled: Notify,
}

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

/// A fingerprint is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
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

/// The most tokens of its key that this process may hold; zero if the charge is decided exactly.
fn most_of(charge: &Charge<'_>) -> u64 {
    charge.handling.sharing.most_ahead(&charge.quota)
}

/// Can all of these be paid for by leases?
pub(super) fn are_leased(charges: &[Charge<'_>]) -> bool {
    charges.iter().all(|charge| charge.cost > Cost::ZERO && most_of(charge) > 0)
}

impl Leases {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, fingerprints: Fingerprints::random(), out: AtomicU64::new(0) }
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
        let mut shard = self.leases(fingerprint);
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
        if let Some(lease) = self.leases(fingerprint).get_mut(&fingerprint) {
            lease.left += charge.cost.tokens();
            self.out.fetch_add(charge.cost.tokens(), Ordering::Relaxed);
        }
    }

    /// Notes that the key was asked about. Says what to take ahead, if it is worth it and nobody is at it; then
    /// [`Leases::filled`] or [`Leases::not_filled`] is to follow.
    pub(super) fn refill_at(&self, charge: &Charge<'_>, now: Time) -> Option<Batch> {
        let most = most_of(charge);
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let mut shard = self.leases(fingerprint);
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

    /// Waits while a batch for this key is on its way.
    pub(super) async fn until_refilled(&self, charge: &Charge<'_>) {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let is_refilling = || self.leases(fingerprint).get(&fingerprint).is_some_and(|lease| lease.is_refilling);
        loop {
            let mut refilled = pin!(self.shard(fingerprint).refilled.notified());
            // Before it is looked, so that no batch comes unnoticed in between.
            refilled.as_mut().enable();
            if !is_refilling() {
                return;
            }
            refilled.await;
        }
    }

    /// So many tokens were taken. Tokens for a key that was forgotten meanwhile are returned, to be given back.
    pub(super) fn filled(&self, charge: &Charge<'_>, tokens: u64, decision: &Decision, answered: &Answered) -> u64 {
        let is_taken = self.end_refill(charge, |lease| {
            lease.left += tokens;
            lease.seen = Some(Seen::new(decision, answered));
            self.out.fetch_add(tokens, Ordering::Relaxed);
        });
        if is_taken { 0 } else { tokens }
    }

    /// Nothing was taken: there was nothing, or no answer.
    pub(super) fn not_filled(&self, charge: &Charge<'_>) {
        self.end_refill(charge, |lease| lease.batch = (lease.batch / 2).max(1));
    }

    /// Ends the refill of this charge's lease, if there still is one, and wakes whoever waits for it.
    fn end_refill(&self, charge: &Charge<'_>, with: impl FnOnce(&mut Lease)) -> bool {
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let is_there = match self.leases(fingerprint).get_mut(&fingerprint) {
            Some(lease) if lease.quota == charge.quota => {
                lease.is_refilling = false;
                with(lease);
                true
            }
            Some(_) | None => false,
        };
        self.shard(fingerprint).refilled.notify_waiters();
        is_there
    }

    /// Takes away the leases that nobody asked for during [`IDLE`]; with `None` all of them.
    pub(super) fn unneeded_at(&self, now: Option<Time>) -> Vec<Unneeded> {
        let mut unneeded = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.leases.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = shard.extract_if(|_, lease| now.is_none_or(|now| now.since(lease.asked_at) >= IDLE));
            unneeded.extend(ended.map(|(_, lease)| lease.into_unneeded()).filter(|one| one.tokens > 0));
        }
        self.out.fetch_sub(unneeded.iter().map(|one| one.tokens).sum(), Ordering::Relaxed);
        unneeded
    }

    /// Drops the lease of this key. Its tokens stay spent.
    pub(super) fn forget(&self, limit: LimitId, key: &[u8]) {
        let fingerprint = self.fingerprint(limit, key);
        if let Some(lease) = self.leases(fingerprint).remove(&fingerprint) {
            self.out.fetch_sub(lease.left, Ordering::Relaxed);
        }
    }

    fn fingerprint(&self, limit: LimitId, key: &[u8]) -> u64 {
        self.fingerprints.of(limit, key).as_u64()
    }

    fn shard(&self, fingerprint: u64) -> &Shard {
        // Below the number of shards.
        &self.shards[(fingerprint % SHARDS as u64) as usize]
    }

    fn leases(&self, fingerprint: u64) -> MutexGuard<'_, HashMap<u64, Lease, BuildHasherDefault<AsItIs>>> {
        // Whoever panicked while holding the lock has left whole leases.
        self.shard(fingerprint).leases.lock().unwrap_or_else(PoisonError::into_inner)
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
mod tests;
