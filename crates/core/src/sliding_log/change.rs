//! What changes a log: what passed, what is given back or owed, another quota, and a clock that stepped back.

use super::ring::{Log, LogEntry, has_left};
use crate::{Cost, Quota, Time};

impl Log<'_> {
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
}
