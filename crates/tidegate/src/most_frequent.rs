//! The most frequent of many names, in bounded memory: the Space-Saving sketch (Metwally, Agrawal and El Abbadi,
//! "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
//!
//! There are so many counters. A name that has one counts there. A name that has none takes a free counter; if there is
//! none, it takes the one that stands lowest, at `m`: it goes on from `m + 1`, and `m` is noted as its possible error, for
//! so often at most it can have been seen before without a counter. Hence, after `n` sightings over `k` counters:
//!
//! - a count is never too low, and too high by at most its noted error: `count - error <= true count <= count`;
//! - each sighting raises exactly one counter by one, so all counts together are `n`, and the lowest is at most `n / k`:
//!   no error is larger than `n / k`;
//! - a name without a counter was seen at most as often as the lowest counter says. So whoever was seen more than
//!   `n / k` times is there.
//!
//! The counters stand in a heap, the lowest first. A frequent name stands deep in it, so that counting it once more mostly
//! compares it with its two children and moves nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// One name and how often it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter<T> {
    pub(crate) count: u64,
    /// How much of the count may be another's.
    pub(crate) error: u64,
    pub(crate) name: T,
    /// A number that no other name has.
    identity: u64,
    /// Its place in the heap.
    at: usize,
}

/// Counters of the most frequent names.
#[derive(Debug)]
pub(crate) struct MostFrequent<T> {
    counters: Vec<Counter<T>>,
    /// Numbers of counters: none stands higher than its children, which are at twice its place and one or two more.
    heap: Vec<usize>,
    /// The number of each identity's counter.
    by_identity: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
    counters_max: usize,
}

impl<T: Default> MostFrequent<T> {
    /// At most so many counters, and at least one.
    pub(crate) fn new(counters_max: usize) -> Self {
        let (counters, heap) = (Vec::new(), Vec::new());
        Self { counters, heap, by_identity: HashMap::default(), counters_max: counters_max.max(1) }
    }

    /// Counts the name of this identity. If it has no counter, `rename` makes it the name of the one that it takes.
    #[inline]
    pub(crate) fn see(&mut self, identity: u64, rename: impl FnOnce(&mut T)) {
        match self.by_identity.get(&identity) {
            Some(number) => self.raise(*number),
            None => self.take(identity, rename),
        }
    }

    /// All counters, in no order.
    pub(crate) fn counters(&self) -> &[Counter<T>] {
        &self.counters
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.counters.clear();
        self.heap.clear();
        self.by_identity.clear();
    }

    #[inline]
    fn raise(&mut self, number: usize) {
        self.counters[number].count += 1;
        self.sink(self.counters[number].at);
    }

    fn take(&mut self, identity: u64, rename: impl FnOnce(&mut T)) {
        let lowest = self.heap.first().copied().filter(|_| self.counters.len() >= self.counters_max);
        let number = match lowest {
            Some(number) => {
                self.by_identity.remove(&self.counters[number].identity);
                self.counters[number].error = self.counters[number].count;
                number
            }
            None => {
                let number = self.counters.len();
                self.counters.push(Counter { at: self.heap.len(), ..Counter::default() });
                self.heap.push(number);
                number
            }
        };
        self.by_identity.insert(identity, number);
        let counter = &mut self.counters[number];
        counter.identity = identity;
        rename(&mut counter.name);
        match lowest {
            Some(_) => self.raise(number),
            None => {
                counter.count = 1;
                self.rise(number);
            }
        }
    }

    /// Moves the counter at a place down until none of its children stands lower.
    #[inline]
    fn sink(&mut self, mut at: usize) {
        while let Some(child) = self.lower_child(at) {
            if self.count_at(child) >= self.count_at(at) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    /// Moves a new counter up until its parent does not stand higher.
    fn rise(&mut self, number: usize) {
        let mut at = self.counters[number].at;
        while at > 0 && self.count_at((at - 1) / 2) > self.count_at(at) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    #[inline]
    fn lower_child(&self, at: usize) -> Option<usize> {
        let (one, other) = (2 * at + 1, 2 * at + 2);
        let is_other = other < self.heap.len() && self.count_at(other) < self.count_at(one);
        Some(if is_other { other } else { one }).filter(|child| *child < self.heap.len())
    }

    #[inline]
    fn count_at(&self, at: usize) -> u64 {
        self.counters[self.heap[at]].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        [one, other].into_iter().for_each(|at| self.counters[self.heap[at]].at = at);
    }
}

/// Identities are hashes already.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// What is true of every name, seen or not, against exact counts.
    fn check(sketch: &MostFrequent<u64>, exact: &BTreeMap<u64, u64>, counters_max: usize) -> Result<(), TestCaseError> {
        let counters = sketch.counters();
        let all: u64 = exact.values().sum();
        prop_assert_eq!(counters.iter().map(|counter| counter.count).sum::<u64>(), all);
        prop_assert!(counters.len() <= counters_max);
        for Counter { count, error, name, .. } in counters {
            prop_assert!(count - error <= exact[name] && exact[name] <= *count);
            prop_assert!(*error <= all / counters_max as u64);
        }
        let lowest = counters.iter().map(|counter| counter.count).min().unwrap_or(0);
        for (name, seen) in exact {
            let has_counter = counters.iter().any(|counter| counter.name == *name);
            prop_assert!(has_counter || (*seen <= lowest && counters.len() == counters_max));
            prop_assert!(has_counter || *seen <= all / counters_max as u64);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn counts_are_within_their_error_of_the_truth(
            counters_max in 1_usize..12,
            names in prop::collection::vec(prop_oneof![0_u64..4, 0_u64..60], 0..600),
        ) {
            let (mut sketch, mut exact) = (MostFrequent::new(counters_max), BTreeMap::new());
            for name in names {
                sketch.see(name.wrapping_mul(0x9e37_79b9_7f4a_7c15), |known| *known = name);
                *exact.entry(name).or_insert(0) += 1;
                check(&sketch, &exact, counters_max)?;
            }
        }
    }

    #[test]
    fn with_a_counter_for_each_name_all_counts_are_exact() {
        let mut sketch = MostFrequent::new(10);
        (0..10_u64).for_each(|name| (0..=name).for_each(|_| sketch.see(name, |known| *known = name)));
        assert!(sketch.counters().iter().all(|counter| counter.count == counter.name + 1 && counter.error == 0));
        sketch.clear();
        assert!(sketch.counters().is_empty());
    }
}
