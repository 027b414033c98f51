//! Instants as numbers.
//!
//! The core never reads a clock; whoever calls it says what time it is. Spans are [`core::time::Duration`].

use core::time::Duration;

/// An instant: nanoseconds since the epoch of the clock it was read from.
///
/// Times of different clocks must not be mixed. 64 bits of nanoseconds last for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's epoch.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be expressed.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// The instant `ms` milliseconds after the epoch, or [`Time::MAX`] if that is out of range.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// The instant `s` seconds after the epoch, or [`Time::MAX`] if that is out of range.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This instant moved on by `span`, or [`Time::MAX`] if that is out of range.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span of `ns` nanoseconds. Spans longer than a `Duration` can hold become the longest one.
pub(crate) fn span(ns: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    if let Ok(ns) = u64::try_from(ns) {
        return Duration::from_nanos(ns);
    }
    match u64::try_from(ns / SECOND) {
        // The remainder of a division by 10^9 fits 32 bits.
        Ok(s) => Duration::new(s, (ns % SECOND) as u32),
        Err(_) => Duration::MAX,
    }
}
