//! The limiters that an audit knows, each as far as it can be told apart from outside: when does it admit, after what it
//! was seen to do?
//!
//! A model follows what was observed, not what it would have done itself, so one answer that it did not expect does not
//! spoil what it says of the next.

use std::collections::VecDeque;
use std::fmt;

/// How a limiter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It fills evenly, up to its burst: a token bucket, GCRA, or a leaky bucket used as a meter.
    TokenBucket,
    /// It counts from one edge to the next.
    FixedWindow,
    /// It counts what passed in the period before each call.
    SlidingLog,
    /// It counts the present window, and of the one before what still overlaps.
    SlidingCounter,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::TokenBucket, Self::FixedWindow, Self::SlidingLog, Self::SlidingCounter];

    /// Its name, as the field has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token bucket",
            Self::FixedWindow => "fixed window",
            Self::SlidingLog => "sliding log",
            Self::SlidingCounter => "sliding counter",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the windows of a limiter begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edges {
    /// At this instant, and a period later, and so on, whether anybody calls or not. Seconds.
    Clock(f64),
    /// With the first call after a pause.
    FirstCall,
}

/// A limiter, guessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Guess {
    pub(super) kind: Kind,
    /// How many pass at once.
    pub(super) count: u32,
    /// In which that many come back. Seconds.
    pub(super) period: f64,
    pub(super) edges: Edges,
    /// Do denied calls count too?
    pub(super) counts_denied: bool,
    /// Of the window before, does only a whole number of calls overlap?
    pub(super) rounds_down: bool,
}

/// What a guessed limiter holds of one key.
#[derive(Clone, Debug)]
pub(super) struct Model {
    guess: Guess,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The tokens at an instant.
    Bucket { level: f64, at: f64 },
    /// The calls that count, the oldest first; no more are kept than can matter.
    Log(VecDeque<f64>),
    /// The window that began at an instant, and the one before.
    Windows { from: f64, count: f64, before: f64 },
}

impl Model {
    pub(super) fn new(guess: Guess) -> Self {
        let state = match guess.kind {
            Kind::TokenBucket => State::Bucket { level: f64::from(guess.count), at: 0.0 },
            Kind::SlidingLog => State::Log(VecDeque::new()),
            Kind::FixedWindow | Kind::SlidingCounter => {
                State::Windows { from: f64::NEG_INFINITY, count: 0.0, before: 0.0 }
            }
        };
        Self { guess, state }
    }

    /// Would a call at this instant pass? Seconds.
    pub(super) fn admits(&self, at: f64) -> bool {
        let Guess { kind, count, period, rounds_down, .. } = self.guess;
        let count = f64::from(count);
        match &self.state {
            State::Bucket { level, at: last } => (level + (at - last).max(0.0) * count / period).min(count) >= 1.0,
            State::Log(calls) => calls.len() < self.guess.count as usize || at - calls[0] >= period,
            State::Windows { .. } => {
                let (from, present, before) = self.windows(at);
                let overlap = if kind == Kind::FixedWindow { 0.0 } else { before * (1.0 - (at - from) / period) };
                let overlap = if rounds_down { overlap.floor() } else { overlap };
                overlap + present + 1.0 <= count
            }
        }
    }

    /// Follows what happened to a call.
    pub(super) fn follow(&mut self, at: f64, is_admitted: bool) {
        let Guess { kind, count, period, counts_denied, .. } = self.guess;
        let expected = self.admits(at);
        let counts = is_admitted || counts_denied;
        let windows = self.windows(at);
        match &mut self.state {
            State::Bucket { level, at: last } => {
                let now = (*level + (at - *last).max(0.0) * f64::from(count) / period).min(f64::from(count));
                *level = match is_admitted {
                    true => (now - 1.0).max(0.0),
                    // It held less than this model believed.
                    false => now.min(0.999),
                };
                *last = at.max(*last);
            }
            State::Log(calls) => {
                if counts {
                    calls.push_back(at);
                }
                while calls.len() > count as usize {
                    calls.pop_front();
                }
            }
            State::Windows { from, count: present, before } => {
                (*from, *present, *before) = windows;
                *present += f64::from(u8::from(counts));
                // Of a counter it cannot be told which of its windows holds more.
                if kind == Kind::FixedWindow && expected && !is_admitted && !counts_denied {
                    *present = present.max(f64::from(count));
                }
            }
        }
    }

    /// The window at an instant: where it begins, what it holds, and what the one before held.
    fn windows(&self, at: f64) -> (f64, f64, f64) {
        let State::Windows { from, count, before } = self.state else { return (at, 0.0, 0.0) };
        let period = self.guess.period;
        match self.guess.edges {
            Edges::Clock(edge) => {
                let begin = edge + ((at - edge) / period).floor() * period;
                // Two begins are the same if they differ by less than the arithmetic can tell.
                match ((begin - from) / period).round() {
                    0.0 => (from, count, before),
                    1.0 => (begin, 0.0, count),
                    _ => (begin, 0.0, 0.0),
                }
            }
            Edges::FirstCall if at - from < period => (from, count, before),
            Edges::FirstCall if self.guess.kind == Kind::SlidingCounter && at - from < 2.0 * period => {
                (from + period, 0.0, count)
            }
            Edges::FirstCall => (at, 0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `n` calls at this instant pass.
    fn volley(model: &mut Model, at: f64, n: usize) -> usize {
        (0..n)
            .filter(|_| {
                let admits = model.admits(at);
                model.follow(at, admits);
                admits
            })
            .count()
    }

    fn model(kind: Kind, edges: Edges, counts_denied: bool) -> Model {
        Model::new(Guess { kind, count: 10, period: 2.0, edges, counts_denied, rounds_down: true })
    }

    #[test]
    fn a_bucket_fills_evenly() {
        let mut bucket = model(Kind::TokenBucket, Edges::FirstCall, false);
        assert_eq!(volley(&mut bucket, 1.0, 20), 10);
        assert_eq!(volley(&mut bucket, 1.41, 20), 2);
        assert_eq!(volley(&mut bucket, 100.0, 20), 10);
    }

    #[test]
    fn a_window_lets_twice_the_count_through_at_its_edge() {
        let mut window = model(Kind::FixedWindow, Edges::Clock(0.5), false);
        assert_eq!(volley(&mut window, 2.4, 20), 10);
        assert_eq!(volley(&mut window, 2.6, 20), 10);
        assert_eq!(volley(&mut window, 4.4, 20), 0);
        assert_eq!(volley(&mut window, 4.51, 20), 10);
    }

    #[test]
    fn a_log_looks_back_from_each_call() {
        let mut log = model(Kind::SlidingLog, Edges::FirstCall, false);
        assert_eq!(volley(&mut log, 1.9, 6), 6);
        assert_eq!(volley(&mut log, 2.4, 20), 4);
        assert_eq!(volley(&mut log, 3.89, 20), 0);
        assert_eq!(volley(&mut log, 3.91, 20), 6);
    }

    #[test]
    fn a_counter_lets_the_window_before_fade() {
        let mut counter = model(Kind::SlidingCounter, Edges::FirstCall, false);
        assert_eq!(volley(&mut counter, 0.0, 20), 10);
        assert_eq!(volley(&mut counter, 2.01, 20), 1);
        assert_eq!(volley(&mut counter, 3.01, 20), 5);
        counter.guess.rounds_down = false;
        assert!(!counter.admits(3.39) && counter.admits(3.41), "the part that overlaps counts too");
    }

    #[test]
    fn calls_that_are_denied_count_where_they_do() {
        let mut counter = model(Kind::SlidingCounter, Edges::FirstCall, true);
        assert_eq!(volley(&mut counter, 0.0, 20), 10);
        assert!(!counter.admits(3.0), "twenty were counted, of which half remain");
        assert!(counter.admits(3.2));
    }

    #[test]
    fn what_was_not_expected_is_followed() {
        let mut window = model(Kind::FixedWindow, Edges::Clock(0.0), false);
        window.follow(0.1, false);
        assert!(!window.admits(0.2), "it is full, whoever filled it");
        assert!(window.admits(2.1));
        let mut bucket = model(Kind::TokenBucket, Edges::FirstCall, false);
        bucket.follow(0.1, false);
        assert!(!bucket.admits(0.1) && bucket.admits(0.31));
    }
}
