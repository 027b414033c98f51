//! What is counted while a run goes on.
//!
//! A denial is false if the client had kept to its rate: of all that it asked for, this request included and whether it
//! passed or not, no more than the limit's count ever fell into one period, since the beginning of the run. Whoever
//! has once asked for more has not kept to it, and no later denial of it is false.

use std::time::Duration;

use tidegate_core::Time;

use super::{Arrival, Pace, Reply};
use crate::{Most, Worst};

/// The windows that are always looked at.
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What was counted.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) arrivals: u64,
    pub(super) admitted: u64,
    pub(super) denied: u64,
    pub(super) never: u64,
    pub(super) false_denials: u64,
    pub(super) longest_wait: Duration,
    /// When it was stopped before its end.
    pub(super) stopped: Option<Time>,
    /// What each limit promises: so many in its period.
    promises: Vec<Pace>,
    /// The windows that are looked at, none twice: a second, a minute, and the periods.
    lengths: Vec<Duration>,
    /// How many instants are remembered, of all keys.
    remembered: usize,
    /// Of each key, from its first request on.
    keys: Vec<Option<Key>>,
}

#[derive(Debug)]
struct Key {
    passed: Worst,
    /// All that was asked for, in the period of each limit; gone with the first request that was too much.
    asked: Option<Worst>,
}

impl Tally {
    pub(super) fn new(promises: Vec<Pace>, keys: u32) -> Self {
        let mut lengths = vec![SECOND, MINUTE];
        for period in periods(&promises) {
            if !lengths.contains(&period) {
                lengths.push(period);
            }
        }
        Self {
            arrivals: 0,
            admitted: 0,
            denied: 0,
            never: 0,
            false_denials: 0,
            longest_wait: Duration::ZERO,
            stopped: None,
            promises,
            lengths,
            remembered: 0,
            keys: (0..keys).map(|_| None).collect(),
        }
    }

    /// Counts an arrival of this key, and what it was told.
    #[inline]
    pub(super) fn count(&mut self, key: u32, arrival: &Arrival, reply: Reply) {
        let (lengths, promises) = (&self.lengths, &self.promises);
        let key = self.keys[key as usize].get_or_insert_with(|| Key::new(lengths, promises));
        let before = key.remembered();
        self.arrivals += 1;
        let kept_to_it = key.keeps_to(arrival);
        if reply == Reply::Passed {
            self.admitted += 1;
            key.passed.add(arrival.at, arrival.cost);
        }
        self.remembered = self.remembered + key.remembered() - before;
        match reply {
            Reply::Passed => return,
            Reply::Wait(wait) => self.longest_wait = self.longest_wait.max(wait),
            Reply::Never => self.never += 1,
        }
        self.denied += 1;
        self.false_denials += u64::from(kept_to_it);
    }

    /// How many instants are remembered for the windows, of all keys.
    #[inline]
    pub(super) const fn remembered(&self) -> usize {
        self.remembered
    }

    /// The most that passed of one key in any second.
    pub(super) fn worst_second(&self) -> Most {
        self.worst(SECOND).0
    }

    /// The most that passed of one key in any minute.
    pub(super) fn worst_minute(&self) -> Most {
        self.worst(MINUTE).0
    }

    /// The most that passed of one key in any period of the first limit, and of which key; `None` without limits.
    pub(super) fn worst_period(&self) -> Option<(Most, u32)> {
        periods(&self.promises).next().map(|period| self.worst(period))
    }

    /// By how much the most in any period was above the promise, for the limit of which that is most; `None` without
    /// limits.
    pub(super) fn overshoot(&self) -> Option<u64> {
        let over = |(promise, period)| self.worst(period).0.cost.saturating_sub(Pace::count(promise));
        self.promises.iter().copied().zip(periods(&self.promises)).map(over).max()
    }

    /// The key of which most passed in a minute, or in a period if there is one.
    pub(super) fn worst_key(&self) -> u32 {
        self.worst_period().unwrap_or_else(|| self.worst(MINUTE)).1
    }

    /// How many keys there were.
    pub(super) fn keys_seen(&self) -> usize {
        self.keys.iter().flatten().count()
    }

    fn worst(&self, length: Duration) -> (Most, u32) {
        let Some(i) = self.lengths.iter().position(|known| *known == length) else { return Default::default() };
        let of_keys =
            self.keys.iter().zip(0_u32..).filter_map(|(key, number)| Some((key.as_ref()?.passed.most(i), number)));
        // Of equals the first one.
        of_keys.min_by_key(|(most, _)| std::cmp::Reverse(most.cost)).unwrap_or((Most { cost: 0, from: Time::ZERO }, 0))
    }
}

impl Key {
    fn new(lengths: &[Duration], promises: &[Pace]) -> Self {
        let promised = promises.iter().map(|promise| (promise.period(), promise.count()));
        let asked = (!promises.is_empty()).then(|| Worst::above(promised));
        Self { passed: Worst::new(lengths), asked }
    }

    /// Has this client kept to its rate, this request included?
    #[inline]
    fn keeps_to(&mut self, arrival: &Arrival) -> bool {
        let Some(asked) = &mut self.asked else { return false };
        asked.add(arrival.at, arrival.cost);
        if asked.has_risen() {
            self.asked = None;
        }
        self.asked.is_some()
    }

    #[inline]
    fn remembered(&self) -> usize {
        self.passed.remembered() + self.asked.as_ref().map_or(0, Worst::remembered)
    }
}

fn periods(promises: &[Pace]) -> impl Iterator<Item = Duration> {
    promises.iter().map(|promise| Duration::from_nanos(promise.period_ns()))
}
