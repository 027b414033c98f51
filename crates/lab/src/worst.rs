//! The most that passed in any window of some length: a true maximum, not one over windows of the clock.
//!
//! Windows are half-open, [t, t + w), and t is any instant. A window that holds the most can be moved on until it
//! begins at an event without losing one, so it is enough to look at those that end just behind an event: of what has
//! passed before an event at t, all that came later than t - w shares a window with it. One pass over the events in
//! the order of time finds the maximum for several lengths at once, and only what is in the longest is remembered.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::{Cost, Time};

/// The most cost in any window of each of several lengths, for events in the order of time.
#[derive(Clone, Debug)]
pub struct Worst {
    /// What the longest window still holds: instants and the cost at each, in order.
    events: VecDeque<(u64, u64)>,
    /// How many events were forgotten before the first of these.
    forgotten: u64,
    windows: Box<[Window]>,
}

/// The window of one length that ends just behind the last event.
#[derive(Clone, Copy, Debug)]
struct Window {
    length_ns: u64,
    /// The number of the first event in it, counted from the first that ever was.
    first: u64,
    cost: u64,
    most: Most,
}

/// The most that was in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Most {
    /// The cost in it, in tokens.
    pub cost: u64,
    /// Where the first such window begins: at its first event.
    pub from: Time,
}

impl Worst {
    /// Nothing yet, in windows of these lengths.
    #[must_use]
    pub fn new(lengths: &[Duration]) -> Self {
        let window = |length: &Duration| Window {
            length_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            first: 0,
            cost: 0,
            most: Most::default(),
        };
        Self { events: VecDeque::new(), forgotten: 0, windows: lengths.iter().map(window).collect() }
    }

    /// So much passed at this instant, which is not before the last one.
    #[inline]
    pub fn add(&mut self, at: Time, cost: Cost) {
        let (at_ns, cost) = (at.as_nanos(), cost.tokens());
        match self.events.back_mut() {
            Some((last_ns, there)) if *last_ns >= at_ns => *there = there.saturating_add(cost),
            _ => self.events.push_back((at_ns, cost)),
        }
        for window in &mut self.windows {
            window.cost = window.cost.saturating_add(cost);
            window.leave_behind(&self.events, self.forgotten, at_ns);
            if window.cost > window.most.cost {
                let from = self.events.get((window.first - self.forgotten) as usize).map_or(at_ns, |(ns, _)| *ns);
                window.most = Most { cost: window.cost, from: Time::from_nanos(from) };
            }
        }
        self.forget();
    }

    /// The most in any window of length number `i`.
    #[must_use]
    pub fn most(&self, i: usize) -> Most {
        self.windows.get(i).map_or(Most::default(), |window| window.most)
    }

    /// What a window of length number `i` holds that ends just behind `now`, which is not before the last event.
    pub fn held(&mut self, i: usize, now: Time) -> u64 {
        let Some(window) = self.windows.get_mut(i) else { return 0 };
        window.leave_behind(&self.events, self.forgotten, now.as_nanos());
        window.cost
    }

    /// How many instants are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.events.len()
    }

    fn forget(&mut self) {
        let oldest = self.windows.iter().map(|window| window.first).min().unwrap_or(u64::MAX);
        while self.forgotten < oldest && self.events.pop_front().is_some() {
            self.forgotten += 1;
        }
    }
}

impl Window {
    /// Leaves out what no longer shares a window with an event at `now`.
    #[inline]
    fn leave_behind(&mut self, events: &VecDeque<(u64, u64)>, forgotten: u64, now_ns: u64) {
        while let Some((at_ns, cost)) = events.get((self.first - forgotten) as usize) {
            if now_ns.saturating_sub(*at_ns) < self.length_ns {
                break;
            }
            self.cost = self.cost.saturating_sub(*cost);
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most in any [t, t + w), looked for at every event.
    fn naive(events: &[(u64, u64)], length_ns: u64) -> u64 {
        let inside =
            |from: u64| events.iter().filter(move |(at, _)| (from..from.saturating_add(length_ns)).contains(at));
        events.iter().map(|(from, _)| inside(*from).map(|(_, cost)| cost).sum()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn it_is_what_counting_every_window_gives(
            gaps in prop::collection::vec((0_u64..12, 0_u64..4), 0..120),
            lengths in prop::collection::vec(1_u64..40, 1..4),
        ) {
            let mut at = 0;
            let events: Vec<_> = gaps.into_iter().map(|(gap, cost)| { at += gap; (at, cost) }).collect();
            let spans: Vec<_> = lengths.iter().map(|ns| Duration::from_nanos(*ns)).collect();
            let mut worst = Worst::new(&spans);
            for (at, cost) in &events {
                worst.add(Time::from_nanos(*at), Cost::new(*cost));
                prop_assert!(worst.remembered() as u64 <= lengths.iter().max().copied().unwrap_or(0));
            }
            for (i, length_ns) in lengths.iter().enumerate() {
                let most = worst.most(i);
                prop_assert_eq!(most.cost, naive(&events, *length_ns));
                let from = most.from.as_nanos();
                let there: u64 = events.iter()
                    .filter(|(at, _)| (from..from + length_ns).contains(at))
                    .map(|(_, cost)| cost)
                    .sum();
                prop_assert_eq!(there, most.cost);
            }
        }
    }

    #[test]
    fn a_window_does_not_hold_its_end() {
        let mut worst = Worst::new(&[Duration::from_secs(60)]);
        worst.add(Time::from_secs(0), Cost::ONE);
        worst.add(Time::from_secs(60), Cost::ONE);
        assert_eq!(worst.most(0), Most { cost: 1, from: Time::ZERO });
        worst.add(Time::from_nanos(119_999_999_999), Cost::ONE);
        assert_eq!(worst.most(0), Most { cost: 2, from: Time::from_secs(60) });
        assert_eq!(worst.held(0, Time::from_secs(120)), 1);
        assert_eq!(worst.held(0, Time::from_secs(180)), 0);
    }
}
