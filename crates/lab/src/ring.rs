//! A sliding log in a ring that grows with what passes.

use tidegate_core::{Cost, Log, LogEntry, LogPlace, LogView, Quota, Time};

/// The entries that a ring has room for at first.
const ROOM: usize = 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    entries: Vec<LogEntry>,
    place: LogPlace,
}

impl Ring {
    /// What a decision on this cost needs to know.
    pub(crate) fn view(&mut self, quota: &Quota, cost: Cost, now: Time) -> LogView {
        self.log().view(quota, cost, now)
    }

    /// Remembers that so many tokens passed, or that they are owed.
    pub(crate) fn charge(&mut self, quota: &Quota, cost: Cost, now: Time) {
        if !self.log().has_room(quota, now) {
            let mut larger = vec![LogEntry::default(); (self.entries.len() * 2).max(ROOM)];
            let place = self.log().copy_to(&mut larger);
            (self.entries, self.place) = (larger, place);
        }
        self.log().owe(quota, cost.tokens(), now);
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<LogPlace>() + size_of::<LogEntry>() * self.entries.len()
    }

    fn log(&mut self) -> Log<'_> {
        Log::new(&mut self.entries, &mut self.place)
    }
}
