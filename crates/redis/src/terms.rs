//! A quota in the numbers that the script computes with, or why it cannot be.
//!
//! A script's numbers are doubles, which hold integers up to 2^53 exactly, and the server's clock ticks in
//! microseconds. So the rate becomes c tokens per p microseconds in lowest terms, and what does not fit is refused by
//! name, never bent.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Algorithm, Cost, Mode, Quota};

/// The fastest rate: one token per microsecond.
pub const RATE_MAX_PER_S: u64 = 1_000_000;
/// The largest burst: 2^31.
pub const BURST_MAX: u64 = 1 << 31;
/// The longest time in which a bucket may fill: 100 years of 365 days.
pub const FILL_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Bytes of one charge's terms: `<I4 d I4 I4 B` in the words of the script, and one that names what counts in windows.
const TERMS_BYTES: usize = 22;

/// What a call does with one of its buckets; the flags of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Takes the cost, if all that are enforced can.
    Charge(Mode),
    /// Gives back, at most to full.
    Give,
    /// Owes, at most one further burst.
    Owe,
    /// Takes as much as there is, up to the cost; at least so many tokens.
    Share { need: u32 },
    /// Takes away the record of a reservation; without it the rest of its request changes nothing.
    Close,
    /// Shows what is kept.
    Show,
}

impl Act {
    fn flags(self) -> u8 {
        match self {
            Self::Charge(Mode::Enforce) => 0,
            Self::Charge(Mode::Shadow) => 2,
            Self::Charge(Mode::Guard) => 24,
            Self::Give => 8,
            Self::Owe => 16,
            Self::Share { .. } => 32,
            Self::Close => 64,
            Self::Show => 128,
        }
    }
}

/// Why a quota cannot be exact in a store of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfRange {
    /// More than [`RATE_MAX_PER_S`].
    Rate,
    /// More than [`BURST_MAX`].
    Burst,
    /// It takes longer to fill than [`FILL_MAX`].
    Fill,
    /// The period is no whole number of microseconds.
    Period,
    /// A sliding counter of [`RATE_MAX_PER_S`] / 2 or more: its two counts share one number with the time.
    Counter,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => write!(f, "the rate is above {RATE_MAX_PER_S}/s, the maximum in a shared store"),
            Self::Burst => write!(f, "the burst is above {BURST_MAX}, the maximum in a shared store"),
            Self::Fill => f.write_str("the bucket takes longer than 100 years to fill, the maximum in a shared store"),
            Self::Period => {
                f.write_str("a shared store counts in microseconds, and the period is no whole number of them")
            }
            Self::Counter => {
                write!(f, "a sliding counter takes less than {}/s in a shared store", RATE_MAX_PER_S / 2)
            }
        }
    }
}

impl std::error::Error for OutOfRange {}

/// The rate and burst of a quota, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    tokens: u32,
    period_us: u64,
    burst: u32,
    algorithm: Algorithm,
}

impl Terms {
    /// # Errors
    /// The quota is out of what can be exact.
    pub(crate) fn of(quota: &Quota) -> Result<Self, OutOfRange> {
        let period_ns = quota.rate().period().as_nanos();
        if !period_ns.is_multiple_of(1_000) {
            return Err(OutOfRange::Period);
        }
        // At most a year, so it fits 64 bits; a quota that blocks is never charged, and has a count of zero.
        let period_us = u64::try_from(period_ns / 1_000).map_err(|_| OutOfRange::Period)?;
        let count = quota.rate().count();
        if count > period_us {
            return Err(OutOfRange::Rate);
        }
        let burst = u32::try_from(quota.burst()).ok().filter(|burst| u64::from(*burst) <= BURST_MAX);
        let burst = burst.ok_or(OutOfRange::Burst)?;
        if quota.time_to_fill() > FILL_MAX {
            return Err(OutOfRange::Fill);
        }
        let algorithm = quota.algorithm();
        if algorithm == Algorithm::SlidingCounter && 2 * count >= period_us {
            return Err(OutOfRange::Counter);
        }
        // Windows are counted over the period as it was written.
        let divisor = if algorithm == Algorithm::TokenBucket { gcd(count, period_us).max(1) } else { 1 };
        // At most 10^6 per second over a year leaves counts above 32 bits only where nothing can be reduced.
        let tokens = u32::try_from(count / divisor).map_err(|_| OutOfRange::Rate)?;
        Ok(Self { tokens, period_us: period_us / divisor, burst, algorithm })
    }

    /// Terms under which a bucket can be emptied, whatever it was written under.
    pub(crate) fn any(algorithm: Algorithm) -> Self {
        Self { tokens: 1, period_us: 1, burst: 1, algorithm }
    }

    /// The terms of one charge, as the script unpacks them. More tokens than any bucket can lack are as many as it can.
    pub(crate) fn pack(&self, act: Act, tokens: Cost, is_last: bool) -> Vec<u8> {
        let windows: Option<u8> = match self.algorithm {
            Algorithm::TokenBucket => None,
            Algorithm::FixedWindow => Some(1),
            Algorithm::SlidingCounter => Some(2),
            Algorithm::SlidingLog => Some(3),
        };
        let flags = u8::from(windows.is_some()) | act.flags() | u8::from(is_last) << 2;
        let tokens = u32::try_from(tokens.tokens()).unwrap_or(u32::MAX);
        let mut packed = Vec::with_capacity(TERMS_BYTES);
        packed.extend(self.tokens.to_le_bytes());
        // Below 2^45, which a double holds exactly.
        packed.extend((self.period_us as f64).to_le_bytes());
        packed.extend(self.burst.to_le_bytes());
        packed.extend(tokens.to_le_bytes());
        packed.push(flags);
        if let Act::Share { need } = act {
            packed.extend(need.to_le_bytes());
        }
        packed.extend(windows);
        packed
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Limit;

    use super::*;

    fn terms(limit: &str) -> Result<Terms, OutOfRange> {
        Terms::of(&limit.parse::<Limit>().unwrap().quota().unwrap())
    }

    #[test]
    fn rates_are_reduced_to_whole_microseconds() {
        let reduced = |limit| terms(limit).map(|terms| (terms.tokens, terms.period_us));
        assert_eq!(reduced("60/min"), Ok((1, 1_000_000)));
        assert_eq!(reduced("128/s"), Ok((2, 15_625)));
        assert_eq!(reduced("7/s"), Ok((7, 1_000_000)));
        assert_eq!(reduced("1000000/s"), Ok((1, 1)));
        assert_eq!(reduced("1/year"), Ok((1, 31_536_000_000_000)));
    }

    #[test]
    fn what_cannot_be_exact_is_refused_by_name() {
        assert_eq!(terms("1000001/s"), Err(OutOfRange::Rate));
        assert_eq!(terms("1/s burst 2147483649"), Err(OutOfRange::Burst));
        assert_eq!(terms("1/year burst 101"), Err(OutOfRange::Fill));
        assert!(terms("1/year burst 100").is_ok());
        assert!(terms("1/s burst 2147483648").is_ok());
        let counter = |limit: &str| {
            let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
            Terms::of(&quota.with_algorithm(Algorithm::SlidingCounter).unwrap())
        };
        assert_eq!(counter("500000/s"), Err(OutOfRange::Counter));
        assert!(counter("499999/s").is_ok());
    }
}
