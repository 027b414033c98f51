//! What is planned: arrivals that were made up out of order, given back in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most plans of one pattern at a time; a pattern that would make more is refused.
pub(super) const PLANS_MAX: u64 = 10_000_000;

/// Plans, the earliest first, and of equals the one that was made first.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    heap: BinaryHeap<Reverse<(u64, u64, Plan<T>)>>,
    made: u64,
}

/// Plans are ordered by their time and their number alone, of which no two are equal.
#[derive(Debug)]
struct Plan<T>(T);

impl<T> PartialEq for Plan<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Plan<T> {}

impl<T> PartialOrd for Plan<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Plan<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::new(), made: 0 }
    }

    pub(super) fn plan(&mut self, at_ns: u64, what: T) {
        self.heap.push(Reverse((at_ns, self.made, Plan(what))));
        self.made += 1;
    }

    pub(super) fn next(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|Reverse((at_ns, _, Plan(what)))| (at_ns, what))
    }
}
