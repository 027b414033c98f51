//! The sliding log: whatever passed is remembered for a period, so at most N tokens pass in any period, exactly.
//!
//! An entry says how many tokens passed at one instant. It counts until a period later, and not at that instant any
//! more. So at instant t the tokens used are those of the entries in (t - p, t], and a request of cost n may pass if
//! used + n <= N. The wait for n ends when enough of the oldest entries have left; nothing is ever rounded.
//!
//! The state is a ring that the store lends, and never more than N entries: what passes at one instant shares one, and
//! each holds a token at least. Only debts could need more of them; then the newest entry takes them in, and is dated
//! to now, which is in the limit's favour. N is at most [`LOG_MAX`].
//!
//! Entries stand in the order of their instants. A clock that stepped back does not change that: what passes then is
//! dated like the newest entry, unless that stands further ahead than a period, when all that is ahead becomes now.
//!
//! [`State`] has no room for a log. Where one is shown, it is a log of one entry: all tokens, dated like the newest.

use crate::step::{Ruling, Step};
use crate::{Cost, Quota, State, Time};

/// The most tokens, and so the most entries, that a sliding log keeps.
pub const LOG_MAX: u64 = 10_000;

/// Tokens that passed at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEntry {
    at: Time,
    tokens: u64,
}

/// Which part of a ring a log fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    first: usize,
    length: usize,
    /// The tokens of all its entries.
    tokens: u64,
}

/// A log: the ring that holds it, lent by a store. Its length is the room for entries.
#[derive(Debug)]
pub struct Log<'a> {
    ring: &'a mut [LogEntry],
    place: &'a mut LogPlace,
}

/// What a decision on one cost needs to know of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogView {
    /// Tokens that count now.
    pub used: u64,
    /// The entry that must leave for one more token than now to be there, by its instant.
    pub next: Time,
    /// The entry that must leave for the cost to pass, by its instant.
    pub enough: Time,
    /// The newest entry's instant.
    pub newest: Time,
}

impl<'a> Log<'a> {
    /// The log that fills `place` of `ring`.
    pub fn new(ring: &'a mut [LogEntry], place: &'a mut LogPlace) -> Self {
        Self { ring, place }
    }

    /// Entries that are kept, also those that have left meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.length
    }

    /// Is nothing kept?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.length == 0
    }

    /// Is there no room for another entry before some have left?
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.place.length >= self.ring.len()
    }

    /// What a decision on `cost` needs to know.
    #[must_use]
    pub fn view(&self, quota: &Quota, cost: Cost, now: Time) -> LogView {
        let period_ns = quota.rate().period_ns().get();
        let dated = self.dated(period_ns, now);
        let left = (0..self.len()).take_while(|i| has_left(dated(*i).at, period_ns, now)).count();
        let gone: u64 = (0..left).map(|i| self.entry(i).tokens).sum();
        let used = self.place.tokens - gone;
        if used == 0 {
            return LogView::empty(now);
        }
        // As many tokens have to leave for the next one, and for the cost.
        let for_next = used.saturating_add(1).saturating_sub(quota.burst()).max(1);
        let for_cost = used.saturating_add(cost.tokens().max(1)).saturating_sub(quota.burst()).max(1);
        let newest = self.len().checked_sub(1).map_or(now, |last| dated(last).at);
        let mut view = LogView { used, next: newest, enough: newest, newest };
        let (mut leaving, mut has_next) = (0, false);
        for entry in (left..self.len()).map(&dated) {
            leaving += entry.tokens;
            if leaving >= for_next && !has_next {
                (view.next, has_next) = (entry.at, true);
            }
            if leaving >= for_cost {
                view.enough = entry.at;
                break;
            }
        }
        view
    }

    /// Remembers that `cost` passed at `now`. There must be room for an entry, once those that have left are gone.
    pub fn charge(&mut self, quota: &Quota, cost: Cost, now: Time) {
        if cost > Cost::ZERO {
            self.settle_time(quota, now);
            self.push(quota, cost.tokens(), now);
        }
    }

    /// After a denial: where the clock has stepped back by more than a period before the newest entry, what is ahead
    /// becomes now. Otherwise nothing changes.
    pub fn repair(&mut self, quota: &Quota, now: Time) {
        if self.is_ahead(quota.rate().period_ns().get(), now) {
            self.settle_time(quota, now);
        }
    }

    /// Is there room for what passes at `now`, once that which has left is gone?
    #[must_use]
    pub fn has_room(&self, quota: &Quota, now: Time) -> bool {
        let has_left = |i| has_left(self.entry(i).at, quota.rate().period_ns().get(), now);
        !self.is_filled() || (!self.is_empty() && has_left(0))
    }

    /// Gives back `tokens`, at most to full: those that passed last.
    pub fn grant(&mut self, quota: &Quota, tokens: u64, now: Time) {
        self.settle_time(quota, now);
        self.take_off(tokens, Time::MAX);
    }

    /// Gives back `tokens` that passed at `taken_at`, as if they had not; if they have left, there is nothing to give.
    pub fn give_back(&mut self, quota: &Quota, tokens: u64, taken_at: Time, now: Time) {
        if has_left(taken_at, quota.rate().period_ns().get(), now) {
            return;
        }
        self.settle_time(quota, now);
        self.take_off(tokens, taken_at);
    }

    /// Owes `tokens` more, whether they are there or not; no more than two bursts are ever missing.
    pub fn owe(&mut self, quota: &Quota, tokens: u64, now: Time) {
        if tokens == 0 {
            return;
        }
        self.settle_time(quota, now);
        let most = (2 * quota.burst()).saturating_sub(self.place.tokens);
        if tokens.min(most) > 0 {
            self.push(quota, tokens.min(most), now);
        }
    }

    /// Goes over to another quota: what counts is kept, the newest of it if it is more than the new burst.
    pub fn carry_over(&mut self, old: &Quota, new: &Quota, now: Time) {
        self.settle_time(old, now);
        while self.place.tokens > new.burst() && !self.is_empty() {
            let over = self.place.tokens - new.burst();
            let oldest = self.entry(0);
            match oldest.tokens > over {
                true => {
                    self.set(0, LogEntry { tokens: oldest.tokens - over, ..oldest });
                    self.place.tokens -= over;
                }
                false => self.drop_first(),
            }
        }
    }

    /// From when on nothing counts any more.
    #[must_use]
    pub fn full_at(&self, quota: &Quota) -> Time {
        let newest = self.len().checked_sub(1).map(|last| self.entry(last).at);
        newest.map_or(Time::ZERO, |at| at.saturating_add(quota.rate().period()))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self.place = LogPlace::default();
    }

    /// Moves to another ring, which has room for all entries.
    pub fn copy_to(&self, ring: &mut [LogEntry]) -> LogPlace {
        for (i, entry) in ring.iter_mut().enumerate().take(self.len()) {
            *entry = self.entry(i);
        }
        LogPlace { first: 0, ..*self.place }
    }

    /// Removes what has left, and repairs what stands further ahead than a period.
    fn settle_time(&mut self, quota: &Quota, now: Time) {
        let period_ns = quota.rate().period_ns().get();
        if self.is_ahead(period_ns, now) {
            for i in 0..self.len() {
                let LogEntry { at, tokens } = self.entry(i);
                self.set(i, LogEntry { at: at.min(now), tokens });
            }
        }
        while !self.is_empty() && has_left(self.entry(0).at, period_ns, now) {
            self.drop_first();
        }
    }

    /// The entries as they count at `now`.
    fn dated(&self, period_ns: u64, now: Time) -> impl Fn(usize) -> LogEntry + '_ {
        let is_repaired = self.is_ahead(period_ns, now);
        move |i| {
            let entry = self.entry(i);
            if is_repaired { LogEntry { at: entry.at.min(now), ..entry } } else { entry }
        }
    }

    /// Does the newest entry stand further ahead than a period?
    fn is_ahead(&self, period_ns: u64, now: Time) -> bool {
        let newest = self.len().checked_sub(1).map_or(now, |last| self.entry(last).at);
        newest.as_nanos().saturating_sub(now.as_nanos()) > period_ns
    }

    fn push(&mut self, quota: &Quota, tokens: u64, now: Time) {
        let last = self.len().checked_sub(1);
        let at = last.map_or(now, |last| self.entry(last).at.max(now));
        self.place.tokens += tokens;
        match last {
            Some(last) if self.entry(last).at == at || self.is_filled() || last as u64 + 1 >= quota.burst() => {
                let tokens = self.entry(last).tokens + tokens;
                self.set(last, LogEntry { at, tokens });
            }
            _ => {
                self.place.length += 1;
                self.set(self.place.length - 1, LogEntry { at, tokens });
            }
        }
    }

    /// Takes tokens off entries that are not newer than `from`, the newest first.
    fn take_off(&mut self, mut tokens: u64, from: Time) {
        let mut i = (0..self.len()).take_while(|i| self.entry(*i).at <= from).count();
        while let (Some(place), 1..) = (i.checked_sub(1), tokens) {
            let entry = self.entry(place);
            let off = entry.tokens.min(tokens);
            self.set(place, LogEntry { tokens: entry.tokens - off, ..entry });
            (self.place.tokens, tokens, i) = (self.place.tokens - off, tokens - off, place);
        }
        self.close_gaps(i);
    }

    /// Removes entries that hold nothing, from place `i` on.
    fn close_gaps(&mut self, i: usize) {
        let mut kept = i;
        for from in i..self.len() {
            let entry = self.entry(from);
            if entry.tokens > 0 {
                self.set(kept, entry);
                kept += 1;
            }
        }
        self.place.length = kept;
    }

    fn drop_first(&mut self) {
        self.place.tokens -= self.entry(0).tokens;
        self.place.first = (self.place.first + 1) % self.ring.len();
        self.place.length -= 1;
    }

    fn entry(&self, i: usize) -> LogEntry {
        self.ring[(self.place.first + i) % self.ring.len()]
    }

    fn set(&mut self, i: usize, entry: LogEntry) {
        let at = (self.place.first + i) % self.ring.len();
        self.ring[at] = entry;
    }
}

fn has_left(at: Time, period_ns: u64, now: Time) -> bool {
    now.as_nanos().checked_sub(at.as_nanos()).is_some_and(|age_ns| age_ns >= period_ns)
}

impl LogView {
    /// Nothing is remembered.
    #[must_use]
    pub const fn empty(now: Time) -> Self {
        Self { used: 0, next: now, enough: now, newest: now }
    }

    /// Would this cost pass, and be remembered?
    #[must_use]
    pub fn takes(self, quota: &Quota, cost: Cost) -> bool {
        cost > Cost::ZERO && self.ruling(quota, cost) == Ruling::Allowed
    }

    /// The view of a log that has one entry.
    fn of_state(quota: &Quota, state: State, now: Time) -> Self {
        let mut ring = [LogEntry { at: state.stamp, tokens: state.deficit }];
        let mut place = LogPlace { first: 0, length: usize::from(state.deficit > 0), tokens: state.deficit };
        Log::new(&mut ring, &mut place).view(quota, Cost::ZERO, now)
    }

    /// What is shown of the log as it stands.
    pub(crate) fn state(self) -> State {
        State { deficit: self.used, stamp: self.newest }
    }

    /// What is shown of the log after `n` more tokens have passed at `now`.
    pub(crate) fn charged(self, n: u64, now: Time) -> Self {
        let newest = if self.used == 0 { now } else { self.newest.max(now) };
        let next = if self.used == 0 { newest } else { self.next };
        Self { used: self.used + n, next, enough: next, newest }
    }

    pub(crate) fn ruling(self, quota: &Quota, cost: Cost) -> Ruling {
        match cost.tokens() {
            0 => Ruling::Allowed,
            n if n > quota.burst() => Ruling::Never,
            n if self.used + n <= quota.burst() => Ruling::Allowed,
            _ => Ruling::Denied,
        }
    }
}

/// The state after a change to a log of one entry.
pub(crate) fn of_one(quota: &Quota, state: State, now: Time, change: impl FnOnce(&mut Log<'_>)) -> State {
    let mut ring = [LogEntry { at: state.stamp, tokens: state.deficit }];
    let mut place = LogPlace { first: 0, length: usize::from(state.deficit > 0), tokens: state.deficit };
    let mut log = Log::new(&mut ring, &mut place);
    change(&mut log);
    let view = log.view(quota, Cost::ZERO, now);
    if view.used == 0 { State::FULL } else { view.state() }
}

/// A step of a log of one entry.
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    let view = LogView::of_state(quota, state, now);
    let ruling = view.ruling(quota, cost);
    if ruling == Ruling::Allowed && cost > Cost::ZERO {
        let charged = view.charged(cost.tokens(), now).state();
        return Step { ruling, seen: charged, next: charged };
    }
    Step { ruling, seen: view.state(), next: state }
}

pub(crate) fn remaining(quota: &Quota, seen: State) -> u64 {
    quota.burst().saturating_sub(seen.deficit)
}

/// The time until the entry of instant `leaving` has left, in nanoseconds.
pub(crate) fn wait_ns(quota: &Quota, leaving: Time, now: Time) -> u128 {
    let end_ns = u128::from(leaving.as_nanos()) + u128::from(quota.rate().period_ns().get());
    end_ns.saturating_sub(u128::from(now.as_nanos()))
}

pub(crate) fn reset_ns(quota: &Quota, seen: State, now: Time) -> u128 {
    if seen.deficit == 0 { 0 } else { wait_ns(quota, seen.stamp, now) }
}

pub(crate) fn full_at(quota: &Quota, state: State) -> Time {
    if state.deficit == 0 { Time::ZERO } else { state.stamp.saturating_add(quota.rate().period()) }
}
