//! What a decision on one cost needs to know of a log, and what it comes to.

use super::ring::{Log, has_left};
use crate::step::Ruling;
use crate::{Cost, Quota, State, Time};

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

impl Log<'_> {
    /// The entries that count at `now`, the oldest first: each as a log of it alone is shown.
    pub fn entries(&self, quota: &Quota, now: Time) -> impl Iterator<Item = State> + '_ {
        let period_ns = quota.rate().period_ns().get();
        let entries = (0..self.len()).map(|i| self.entry(i));
        let counts = entries.filter(move |entry| !has_left(entry.at, period_ns, now));
        counts.map(|entry| State { deficit: entry.tokens, stamp: entry.at })
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
