//! How often something happens, and the instants at which it happens when it is spread evenly.

use std::fmt;
use std::time::Duration;

use tidegate_core::PeriodText;

/// So many in so long, which is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    count: u64,
    period_ns: u64,
}

impl Pace {
    /// So many in so long; no time counts as a nanosecond.
    #[must_use]
    pub fn new(count: u64, period: Duration) -> Self {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        Self { count, period_ns: period_ns.max(1) }
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.count
    }

    /// In how long, in nanoseconds.
    #[must_use]
    pub const fn period_ns(self) -> u64 {
        self.period_ns
    }

    /// In how long.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// So many times as often.
    pub(super) const fn times(self, count: u64, of: u64) -> Self {
        Self { count: self.count.saturating_mul(count), period_ns: self.period_ns.saturating_mul(of) }
    }

    /// How many there are in a nanosecond. Only added, multiplied, divided and rooted, which is the same everywhere.
    pub(super) fn each_ns(self) -> f64 {
        self.count as f64 / self.period_ns as f64
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, PeriodText(Duration::from_nanos(self.period_ns)))
    }
}

/// Instants at a pace: the n-th at floor(n x period / count), without a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    at_ns: u64,
    rest: u64,
    step_ns: u64,
    step_rest: u64,
    divisor: u64,
}

impl Even {
    /// For `clients` that keep this pace each, one after the other.
    pub(super) fn new(pace: Pace, clients: u32) -> Self {
        let divisor = pace.count.saturating_mul(u64::from(clients)).max(1);
        let (step_ns, step_rest) = (pace.period_ns / divisor, pace.period_ns % divisor);
        Self { at_ns: 0, rest: 0, step_ns, step_rest, divisor }
    }

    /// The next instant, in nanoseconds.
    #[inline]
    pub(super) fn next_ns(&mut self) -> u64 {
        let now = self.at_ns;
        self.at_ns = self.at_ns.saturating_add(self.step_ns);
        // Both are below the divisor, and the sum may not fit.
        let room = self.divisor - self.step_rest;
        if self.rest >= room {
            self.rest -= room;
            self.at_ns = self.at_ns.saturating_add(1);
        } else {
            self.rest += self.step_rest;
        }
        now
    }
}

/// Clients in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    next: u32,
    clients: u32,
}

impl Turns {
    pub(super) const fn new(clients: u32) -> Self {
        Self { next: 0, clients }
    }

    /// Whose turn it is.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        let now = self.next;
        self.next = if now + 1 >= self.clients { 0 } else { now + 1 };
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_instant_is_exact() {
        let pace = Pace::new(59, Duration::from_secs(60));
        let mut even = Even::new(pace, 7);
        for n in 0..2_000_u64 {
            assert_eq!(even.next_ns(), n * 60_000_000_000 / (59 * 7), "{n}");
        }
    }
}
