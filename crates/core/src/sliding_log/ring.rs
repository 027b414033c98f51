//! The ring that holds a log: entries in the order of their instants, and how they come and go.

use crate::{Quota, Time};

/// Tokens that passed at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEntry {
    pub(super) at: Time,
    pub(super) tokens: u64,
}

/// Which part of a ring a log fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    first: usize,
    length: usize,
    /// The tokens of all its entries.
    pub(super) tokens: u64,
}

/// A log: the ring that holds it, lent by a store. Its length is the room for entries.
#[derive(Debug)]
pub struct Log<'a> {
    ring: &'a mut [LogEntry],
    pub(super) place: &'a mut LogPlace,
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

    /// Is there room for what passes at `now`, once that which has left is gone?
    #[must_use]
    pub fn has_room(&self, quota: &Quota, now: Time) -> bool {
        let has_left = |i| has_left(self.entry(i).at, quota.rate().period_ns().get(), now);
        !self.is_filled() || (!self.is_empty() && has_left(0))
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

    /// A log of so many tokens at one instant; of nothing, if there are none.
    pub(super) fn of_one(entry: LogEntry, ring: &'a mut [LogEntry; 1], place: &'a mut LogPlace) -> Self {
        *ring = [entry];
        *place = LogPlace { first: 0, length: usize::from(entry.tokens > 0), tokens: entry.tokens };
        Self { ring, place }
    }

    /// Removes what has left, and repairs what stands further ahead than a period.
    pub(super) fn settle_time(&mut self, quota: &Quota, now: Time) {
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
    pub(super) fn dated(&self, period_ns: u64, now: Time) -> impl Fn(usize) -> LogEntry + '_ {
        let is_repaired = self.is_ahead(period_ns, now);
        move |i| {
            let entry = self.entry(i);
            if is_repaired { LogEntry { at: entry.at.min(now), ..entry } } else { entry }
        }
    }

    /// Does the newest entry stand further ahead than a period?
    pub(super) fn is_ahead(&self, period_ns: u64, now: Time) -> bool {
        let newest = self.len().checked_sub(1).map_or(now, |last| self.entry(last).at);
        newest.as_nanos().saturating_sub(now.as_nanos()) > period_ns
    }

    pub(super) fn push(&mut self, quota: &Quota, tokens: u64, now: Time) {
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
    pub(super) fn take_off(&mut self, mut tokens: u64, from: Time) {
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

    pub(super) fn drop_first(&mut self) {
        self.place.tokens -= self.entry(0).tokens;
        self.place.first = (self.place.first + 1) % self.ring.len();
        self.place.length -= 1;
    }

    pub(super) fn entry(&self, i: usize) -> LogEntry {
        self.ring[(self.place.first + i) % self.ring.len()]
    }

    pub(super) fn set(&mut self, i: usize, entry: LogEntry) {
        let at = (self.place.first + i) % self.ring.len();
        self.ring[at] = entry;
    }
}

pub(super) fn has_left(at: Time, period_ns: u64, now: Time) -> bool {
    now.as_nanos().checked_sub(at.as_nanos()).is_some_and(|age_ns| age_ns >= period_ns)
}
