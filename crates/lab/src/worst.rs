//! The most that passed in any window of some length: a true maximum, not one over windows of the clock.
//!
//! Windows are half-open, [t, t + w), and t is any instant. A window that holds the most can be moved on until it
//! begins at an event without losing one, so it is enough to look at those that end just behind an event: of what has
//! passed before an event at t, all that came later than t - w shares a window with it. One pass over the events in
//! the order of time finds the maximum for several lengths at once.
//!
//! Windows are looked at late. While nothing leaves a window that holds the most so far, each event raises that; and
//! while one holds less, what has left it may as well be left in, as long as it does not seem to hold more. So most
//! events are only written down, and the windows are looked at when one of these is over, or memory would grow.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::{Cost, Time};

/// The most cost in any window of each of several lengths, for events in the order of time.
#[derive(Clone, Debug)]
pub struct Worst {
    /// What the longest window still holds: instants and the cost at each, in order. None costs nothing.
    events: VecDeque<(u64, u64)>,
    /// The instant of the last of these, so that memory far away is written without being read; the end of time
    /// if there was none.
    last_ns: u64,
    /// Cost that was written down since the windows were looked at.
    pending: u64,
    /// So much more can be written down until some window that held less may hold the most.
    room: u64,
    /// Before this instant nothing leaves a window that holds the most.
    until_ns: u64,
    /// Has any window held more than its floor?
    has_risen: bool,
    /// How many events were forgotten before the first of these.
    forgotten: u64,
    windows: Box<[Window]>,
}

/// The window of one length that ends just behind the last event that was looked at.
#[derive(Clone, Copy, Debug)]
struct Window {
    length_ns: u64,
    /// The number of the first event in it, counted from the first that ever was. Some may have left it since.
    first: u64,
    /// The cost from that event on, and never above the most.
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
        Self::above(lengths.iter().map(|length| (*length, 0)))
    }

    /// Nothing yet, in windows of lengths, each of which is only of interest when it holds more than a floor.
    pub(crate) fn above(windows: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        let window = |(length, floor): (Duration, u64)| Window {
            length_ns: u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
            first: 0,
            cost: 0,
            most: Most { cost: floor, from: Time::ZERO },
        };
        let windows = windows.into_iter().map(window).collect();
        let mut worst = Self {
            events: VecDeque::new(),
            last_ns: u64::MAX,
            pending: 0,
            room: 0,
            until_ns: u64::MAX,
            has_risen: false,
            forgotten: 0,
            windows,
        };
        worst.measure();
        worst
    }

    /// So much passed at this instant, which is not before the last one.
    #[inline]
    pub fn add(&mut self, at: Time, cost: Cost) {
        let (at_ns, cost) = (at.as_nanos(), cost.tokens());
        if cost == 0 {
            return;
        }
        if self.events.len() == self.events.capacity() {
            self.leave_behind(at_ns);
        }
        match self.events.back_mut().filter(|_| self.last_ns >= at_ns) {
            Some((_, there)) => *there = there.saturating_add(cost),
            None => {
                self.events.push_back((at_ns, cost));
                self.last_ns = at_ns;
            }
        }
        self.pending = self.pending.saturating_add(cost);
        if cost <= self.room && at_ns < self.until_ns {
            self.room -= cost;
        } else {
            self.look(at_ns, cost);
        }
    }

    /// The most in any window of length number `i`.
    #[must_use]
    pub fn most(&self, i: usize) -> Most {
        let Some(mut window) = self.windows.get(i).copied() else { return Most::default() };
        window.take(self.pending, self.has_risen, &self.events, self.forgotten);
        window.most
    }

    /// Has any window held more than its floor?
    #[inline]
    pub(crate) fn has_risen(&self) -> bool {
        self.has_risen
    }

    /// What a window of length number `i` holds that ends just behind `now`, which is not before the last event.
    pub fn held(&mut self, i: usize, now: Time) -> u64 {
        self.leave_behind(now.as_nanos());
        self.windows.get(i).map_or(0, |window| window.cost)
    }

    /// How many instants are remembered: no more than twice those in the longest window, and some.
    #[must_use]
    #[inline]
    pub fn remembered(&self) -> usize {
        self.events.len()
    }

    /// Looks at the windows, behind an event at `at_ns` whose cost is the last of what is pending.
    fn look(&mut self, at_ns: u64, cost: u64) {
        let before = self.pending - cost;
        let has_risen = self.has_risen;
        for window in &mut self.windows {
            window.take(before, has_risen, &self.events, self.forgotten);
            window.cost = window.cost.saturating_add(cost);
            if window.cost > window.most.cost {
                window.leave_behind(&self.events, self.forgotten, at_ns);
            }
            if window.cost > window.most.cost {
                window.rise(&self.events, self.forgotten);
                self.has_risen = true;
            }
        }
        self.pending = 0;
        self.forget();
        self.measure();
    }

    /// Takes out of all windows what no longer shares one with an event at `now_ns`.
    fn leave_behind(&mut self, now_ns: u64) {
        for window in &mut self.windows {
            window.take(self.pending, self.has_risen, &self.events, self.forgotten);
            window.leave_behind(&self.events, self.forgotten, now_ns);
        }
        self.pending = 0;
        self.forget();
        self.measure();
    }

    fn forget(&mut self) {
        let oldest = self.windows.iter().map(|window| window.first).min().unwrap_or(u64::MAX);
        while self.forgotten < oldest && self.events.pop_front().is_some() {
            self.forgotten += 1;
        }
    }

    /// For how long events need only be written down.
    fn measure(&mut self) {
        (self.room, self.until_ns) = (u64::MAX, u64::MAX);
        for window in &self.windows {
            match window.is_climbing(self.has_risen) {
                false => self.room = self.room.min(window.most.cost - window.cost),
                true => {
                    let first_ns = window.first_ns(&self.events, self.forgotten);
                    self.until_ns = self.until_ns.min(first_ns.saturating_add(window.length_ns));
                }
            }
        }
    }
}

impl Window {
    /// Does it hold the most so far, so that whatever comes raises that?
    fn is_climbing(&self, has_risen: bool) -> bool {
        has_risen && self.cost == self.most.cost
    }

    /// Takes in what was written down while it did not have to be looked at.
    fn take(&mut self, pending: u64, has_risen: bool, events: &VecDeque<(u64, u64)>, forgotten: u64) {
        let is_climbing = pending > 0 && self.is_climbing(has_risen);
        self.cost = self.cost.saturating_add(pending);
        if is_climbing {
            self.rise(events, forgotten);
        }
    }

    /// It holds the most now.
    fn rise(&mut self, events: &VecDeque<(u64, u64)>, forgotten: u64) {
        self.most = Most { cost: self.cost, from: Time::from_nanos(self.first_ns(events, forgotten)) };
    }

    /// The instant of its first event; the beginning of time if it has none.
    fn first_ns(&self, events: &VecDeque<(u64, u64)>, forgotten: u64) -> u64 {
        events.get((self.first - forgotten) as usize).map_or(0, |(at_ns, _)| *at_ns)
    }

    /// Leaves out what no longer shares a window with an event at `now`.
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

    /// What is in the window that ends just behind `now_ns`.
    fn held(events: &[(u64, u64)], now_ns: u64, length_ns: u64) -> u64 {
        events.iter().filter(|(at, _)| now_ns - at < length_ns).map(|(_, cost)| cost).sum()
    }

    /// The room that a queue begins with.
    const ROOM: u64 = 4;

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
                let longest = lengths.iter().max().copied().unwrap_or(0);
                prop_assert!(worst.remembered() as u64 <= 2 * longest + ROOM);
            }
            for (i, length_ns) in lengths.iter().enumerate() {
                let most = worst.most(i);
                prop_assert_eq!(most.cost, naive(&events, *length_ns));
                prop_assert_eq!(worst.clone().held(i, Time::from_nanos(at)), held(&events, at, *length_ns));
                let from = most.from.as_nanos();
                let there: u64 = events.iter()
                    .filter(|(at, _)| (from..from + length_ns).contains(at))
                    .map(|(_, cost)| cost)
                    .sum();
                prop_assert_eq!(there, most.cost);
            }
        }
    }

    proptest! {
        #[test]
        fn it_rises_with_the_event_that_is_above_a_floor(
            gaps in prop::collection::vec((0_u64..6, 1_u64..3), 1..60),
            windows in prop::collection::vec((1_u64..20, 1_u64..12), 1..3),
        ) {
            let mut at = 0;
            let events: Vec<_> = gaps.into_iter().map(|(gap, cost)| { at += gap; (at, cost) }).collect();
            let mut worst = Worst::above(windows.iter().map(|(ns, floor)| (Duration::from_nanos(*ns), *floor)));
            for (i, (at, cost)) in events.iter().enumerate() {
                worst.add(Time::from_nanos(*at), Cost::new(*cost));
                let is_above = windows.iter().any(|(ns, floor)| naive(&events[..=i], *ns) > *floor);
                prop_assert_eq!(worst.has_risen(), is_above);
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
