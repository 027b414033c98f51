//! One key, decided on without locks.
//!
//! What is needed is read under the versions of the groups that it stands in, and what follows is written only if those
//! versions still stand; otherwise the next attempt starts from fresh words. Most keys sit in their home and need no
//! other group. Whoever needs a seat that the home does not have goes on to `seats`.

use tidegate_core::{AtBound, Cost, Decision, Quota, State, Time, carry_over, decide, full_at};

use crate::fingerprint::Fingerprint;
use crate::groups::{Group, KEYS_AWAY, KEYS_POOLED, SLOTS, Slot};
use crate::head::{Head, Version};
use crate::table::{PROBES, Table, TableLimit, count};

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) limit: &'a TableLimit,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) home: usize,
    pub(crate) cost: Cost,
    pub(crate) now: Time,
}

/// What came of it.
pub(crate) enum Attempt {
    Decided(Decision),
    /// Another thread wrote meanwhile.
    Torn,
    /// A seat must be found under locks: of the home alone, or of all groups in which the key can sit.
    NeedsLocks {
        probing: bool,
    },
}

/// A group, and the version under which it is read.
#[derive(Clone, Copy)]
struct Seen<'a> {
    group: Group<'a>,
    version: Version,
}

impl<'a> Seen<'a> {
    #[inline]
    fn of(group: Group<'a>) -> Self {
        Self { group, version: group.head().read() }
    }

    fn head(&self) -> Head<'a> {
        self.group.head()
    }

    #[inline]
    fn still(&self) -> bool {
        self.head().still(self.version)
    }
}

/// A slot, and when its bucket is full.
#[derive(Clone, Copy)]
pub(crate) struct Full {
    pub(crate) slot: Slot,
    pub(crate) at: Time,
}

impl Full {
    /// Is the other slot's bucket certainly not full before this one? Saves most divisions where many are compared.
    #[inline]
    pub(crate) fn is_no_later_than(&self, other: &Slot) -> bool {
        let (this, other_state) = (self.slot.state, other.state);
        self.slot.quota_number == other.quota_number
            && this.deficit() <= other_state.deficit()
            && this.stamp() <= other_state.stamp()
            && this.deficit() > 0
    }
}

impl Table {
    #[inline]
    pub(crate) fn attempt(&self, request: Request<'_>) -> Attempt {
        let group = self.groups.group(request.home);
        // The state is most likely in the other cache line: both are asked for before either is waited for.
        group.touch();
        let home = Seen::of(group);
        match home.group.position(request.fingerprint.as_u64()) {
            Some(i) => self.attempt_known(home, i, None, request),
            None if home.version.has(KEYS_AWAY) => self.attempt_away(home, request),
            None => self.attempt_new(home, request),
        }
    }

    /// The key has slot `i`. If that is away from its home, the home's version must still stand when it is decided:
    /// the key can have got a new seat there, and this one is what it left behind.
    #[inline]
    fn attempt_known(&self, seat: Seen<'_>, i: usize, home: Option<Seen<'_>>, request: Request<'_>) -> Attempt {
        let Request { limit, cost, now, .. } = request;
        let slot = seat.group.slot(i);
        let Some(before) = self.state_under(&slot, limit.quota.number, &limit.quota.quota, limit.since, now) else {
            return Attempt::Torn;
        };
        let (decision, state) = decide(&limit.quota.quota, before, cost, now);
        let next = Slot { quota_number: limit.quota.number, state, ..slot };
        let is_home_still = || home.is_none_or(|home| home.still());
        if next == slot || cost == Cost::ZERO {
            return if seat.still() && is_home_still() { Attempt::Decided(decision) } else { Attempt::Torn };
        }
        let Some(_lock) = seat.head().lock_from(seat.version) else { return Attempt::Torn };
        // Whoever seats the key elsewhere first needs the lock that is held here.
        if !is_home_still() {
            return Attempt::Torn;
        }
        seat.group.write(i, next);
        Attempt::Decided(decision)
    }

    /// None of the home's keys sits elsewhere, so the key is new.
    fn attempt_new(&self, home: Seen<'_>, request: Request<'_>) -> Attempt {
        let Request { limit, fingerprint, cost, .. } = request;
        if limit.at_bound == AtBound::Pool && home.version.has(KEYS_POOLED) {
            return Attempt::NeedsLocks { probing: false };
        }
        let now = self.watermarks.start(request.home, request.now);
        let Some(i) = (0..SLOTS).find(|&i| self.is_free(&home.group.slot(i), now)) else {
            return self.attempt_away(home, request);
        };
        let (decision, state) = decide(&limit.quota.quota, State::FULL, cost, now);
        if state == State::FULL {
            return if home.still() { Attempt::Decided(decision) } else { Attempt::Torn };
        }
        let Some(_lock) = home.head().lock_from(home.version) else { return Attempt::Torn };
        if home.group.slot(i).fingerprint != 0 {
            self.watermarks.raise(request.home, now);
        }
        home.group.write(i, Slot { fingerprint: fingerprint.as_u64(), quota_number: limit.quota.number, state });
        Attempt::Decided(decision)
    }

    /// The key is not in its home; it is in one of the groups behind it, or new without room in its home.
    #[inline(never)]
    fn attempt_away(&self, home: Seen<'_>, request: Request<'_>) -> Attempt {
        let mut seen = [home; PROBES];
        let chain = self.chain(request.home, true);
        let length = chain.len();
        for (seen, place) in seen.iter_mut().zip(chain).skip(1) {
            *seen = Seen::of(self.groups.group(place));
            if let Some(i) = seen.group.position(request.fingerprint.as_u64()) {
                if !home.version.has(KEYS_AWAY) {
                    // Left behind: it can be taken again, but the flag must be raised.
                    return Attempt::NeedsLocks { probing: true };
                }
                // What is found can be an old seat, left behind full, and a later one forgotten since.
                let now = self.watermarks.start_among(self.chain(request.home, true), request.now);
                return self.attempt_known(*seen, i, Some(home), Request { now, ..request });
            }
        }
        match request.limit.at_bound {
            AtBound::Deny => self.attempt_denial(&seen[..length], request),
            AtBound::Displace | AtBound::Pool => Attempt::NeedsLocks { probing: true },
        }
    }

    /// The key is new. If there is no room for it, nothing is written: a flood of new keys holds nobody up.
    fn attempt_denial(&self, chain: &[Seen<'_>], request: Request<'_>) -> Attempt {
        let now = self.watermarks.start_among(self.chain(request.home, true), request.now);
        let mut nearest: Option<Full> = None;
        for slot in chain.iter().flat_map(|seen| (0..SLOTS).map(|i| seen.group.slot(i))) {
            if nearest.is_some_and(|nearest| nearest.is_no_later_than(&slot)) {
                continue;
            }
            let Some(at) = self.full_at(&slot).filter(|full| *full > now) else {
                return Attempt::NeedsLocks { probing: true };
            };
            if nearest.is_none_or(|nearest| at < nearest.at) {
                nearest = Some(Full { slot, at });
            }
        }
        if !chain.iter().all(Seen::still) {
            return Attempt::Torn;
        }
        let decision = Decision::held(
            &request.limit.quota.quota,
            request.cost,
            now,
            nearest.map_or(now, |nearest| nearest.at).since(now),
        );
        if !decision.is_allowed() {
            count(&self.counts.refused);
        }
        Attempt::Decided(decision)
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
        Some(carry_over(old, quota, slot.state, changed))
    }

    /// Was the slot never used, or is its bucket full again? A torn slot is not free.
    #[inline]
    pub(crate) fn is_free(&self, slot: &Slot, now: Time) -> bool {
        self.full_at(slot).is_some_and(|full| full <= now)
    }

    /// From when on the slot is free; `None` if it is torn.
    #[inline]
    pub(crate) fn full_at(&self, slot: &Slot) -> Option<Time> {
        if slot.fingerprint == 0 {
            return Some(Time::ZERO);
        }
        Some(full_at(self.quotas.quota(slot.quota_number)?, slot.state))
    }
}
