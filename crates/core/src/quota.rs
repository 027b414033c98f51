//! What is allowed: a rate, and the burst that may pass at once.
//!
//! A rate is kept twice: as it was written (`60` per minute, which a fixed window and a header field need) and
//! reduced (`1` per second, which the token bucket computes with). Reducing a ratio loses nothing.

use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use crate::{Algorithm, LOG_MAX};

/// The largest burst: 2^32.
pub const BURST_MAX: u64 = 1 << 32;
/// The largest count of a rate in lowest terms: 2^32 (`1/ns` is the fastest rate, so larger counts rarely remain).
pub const COUNT_MAX: u64 = 1 << 32;
/// The longest period: a year of 365 days.
pub const PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Cost replenished per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u64,
    period_ns: NonZeroU64,
    /// `count` per `period_ns` in lowest terms; what the token bucket computes with.
    pub(crate) tokens: NonZeroU64,
    pub(crate) per_ns: NonZeroU64,
}

impl Rate {
    /// A rate of `count` tokens per `period`.
    ///
    /// # Errors
    /// The rate is zero, faster than 1 per nanosecond, its period longer than a year, or its count in lowest
    /// terms above [`COUNT_MAX`]: outside of that the arithmetic would not be exact.
    pub fn new(count: u64, period: Duration) -> Result<Self, QuotaError> {
        let count = NonZeroU64::new(count).ok_or(QuotaError::CountZero)?;
        let period_ns = period_ns(period)?;
        let divisor = gcd(count, period_ns);
        let (tokens, per_ns) = (quotient(count, divisor), quotient(period_ns, divisor));
        if tokens > per_ns {
            return Err(QuotaError::TooFast);
        }
        if tokens.get() > COUNT_MAX {
            return Err(QuotaError::CountTooLarge);
        }
        Ok(Self { count: count.get(), period_ns, tokens, per_ns })
    }

    /// The count, as it was written.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The period, as it was written.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns.get())
    }

    pub(crate) const fn period_ns(&self) -> NonZeroU64 {
        self.period_ns
    }
}

/// A rate and a burst, enforced by an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    rate: Rate,
    burst: u64,
    algorithm: Algorithm,
}

impl Quota {
    /// A token bucket whose burst is the rate's count.
    ///
    /// # Errors
    /// The count is above [`BURST_MAX`]; give a burst with [`Quota::with_burst`].
    pub const fn new(rate: Rate) -> Result<Self, QuotaError> {
        Self::with_burst(rate, rate.count)
    }

    /// A token bucket with room for `burst` tokens.
    ///
    /// # Errors
    /// The burst is zero or above [`BURST_MAX`].
    pub const fn with_burst(rate: Rate, burst: u64) -> Result<Self, QuotaError> {
        match burst {
            0 => Err(QuotaError::BurstZero),
            1..=BURST_MAX => Ok(Self { rate, burst, algorithm: Algorithm::TokenBucket }),
            _ => Err(QuotaError::BurstTooLarge),
        }
    }

    /// One token, which takes this long to come back; at most a year.
    #[must_use]
    pub const fn one_per(period_ns: NonZeroU64) -> Self {
        let rate = Rate { count: 1, period_ns, tokens: NonZeroU64::MIN, per_ns: period_ns };
        Self { rate, burst: 1, algorithm: Algorithm::TokenBucket }
    }

    /// The same rate and burst under another algorithm.
    ///
    /// # Errors
    /// A window or a counter holds exactly its count, so another burst is refused; and a sliding counter whose count is
    /// not below half of the nanoseconds of its period, and a sliding log of more than [`LOG_MAX`].
    pub const fn with_algorithm(self, algorithm: Algorithm) -> Result<Self, QuotaError> {
        match algorithm {
            Algorithm::FixedWindow | Algorithm::SlidingCounter | Algorithm::SlidingLog
                if self.burst != self.rate.count && self.burst != 0 =>
            {
                Err(QuotaError::BurstIsNotTheCount(algorithm))
            }
            Algorithm::SlidingCounter if 2 * self.burst >= self.rate.period_ns.get() => {
                Err(QuotaError::TooFastForACounter)
            }
            Algorithm::SlidingLog if self.burst > LOG_MAX => Err(QuotaError::TooLargeForALog),
            _ => Ok(Self { algorithm, ..self }),
        }
    }

    /// A quota that lets nothing pass: zero tokens per `period`. Every cost above zero is [`Never`].
    ///
    /// # Errors
    /// The period is zero or longer than a year.
    ///
    /// [`Never`]: crate::Outcome::Never
    pub fn block(period: Duration) -> Result<Self, QuotaError> {
        let period_ns = period_ns(period)?;
        // A rate of one token per period that has no room for any: no formula divides by zero.
        let rate = Rate { count: 0, period_ns, tokens: NonZeroU64::MIN, per_ns: period_ns };
        Ok(Self { rate, burst: 0, algorithm: Algorithm::TokenBucket })
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> &Rate {
        &self.rate
    }

    /// The most that can pass at once, in tokens; zero if the quota blocks.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// The algorithm that enforces it.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The quota as five numbers, for a store that keeps it in words of memory. [`Quota::from_words`] reads them.
    #[must_use]
    pub const fn to_words(&self) -> [u64; 5] {
        let algorithm = match self.algorithm {
            Algorithm::TokenBucket => 0,
            Algorithm::FixedWindow => 1,
            Algorithm::SlidingCounter => 2,
            Algorithm::SlidingLog => 3,
        };
        let Rate { count, period_ns, tokens, per_ns } = self.rate;
        [count, period_ns.get(), tokens.get(), per_ns.get(), self.burst << 8 | algorithm]
    }

    /// The quota that [`Quota::to_words`] wrote. Words that it did not write may give `None`, or a quota that is
    /// wrong but can be computed with, so that a torn read can be thrown away afterwards.
    #[must_use]
    #[inline]
    pub const fn from_words(words: [u64; 5]) -> Option<Self> {
        let [count, period_ns, tokens, per_ns, burst_and_algorithm] = words;
        let (Some(period_ns), Some(tokens), Some(per_ns)) =
            (NonZeroU64::new(period_ns), NonZeroU64::new(tokens), NonZeroU64::new(per_ns))
        else {
            return None;
        };
        let algorithm = match burst_and_algorithm & 0xff {
            0 => Algorithm::TokenBucket,
            1 => Algorithm::FixedWindow,
            2 => Algorithm::SlidingCounter,
            3 => Algorithm::SlidingLog,
            _ => return None,
        };
        let rate = Rate { count, period_ns, tokens, per_ns };
        Some(Self { rate, burst: burst_and_algorithm >> 8, algorithm })
    }

    /// The most tokens that can ever pass within any span of length `span`.
    ///
    /// For a token bucket and a sliding counter floor(burst + rate x span); for a fixed window
    /// count x (ceil(span / period) + 1), for a sliding log count x ceil(span / period).
    /// At most 2^64 - 1.
    #[must_use]
    pub fn most_within(&self, span: Duration) -> u64 {
        let ns = span.as_nanos();
        let most = match self.algorithm {
            _ if self.burst == 0 => 0,
            Algorithm::TokenBucket | Algorithm::SlidingCounter => ns
                .saturating_mul(u128::from(self.rate.tokens.get()))
                .checked_div(u128::from(self.rate.per_ns.get()))
                .map_or(u128::MAX, |refilled| refilled + u128::from(self.burst)),
            Algorithm::FixedWindow => ns
                .div_ceil(u128::from(self.rate.period_ns.get()))
                .saturating_add(1)
                .saturating_mul(u128::from(self.rate.count)),
            Algorithm::SlidingLog => {
                ns.div_ceil(u128::from(self.rate.period_ns.get())).saturating_mul(u128::from(self.rate.count))
            }
        };
        u64::try_from(most).unwrap_or(u64::MAX)
    }

    /// The time in which an empty bucket becomes full, rounded up to a nanosecond; of windows the longest that it can be.
    #[must_use]
    pub fn time_to_fill(&self) -> Duration {
        match self.algorithm {
            Algorithm::TokenBucket => crate::time::span(
                (u128::from(self.burst) * u128::from(self.rate.per_ns.get()))
                    .div_ceil(u128::from(self.rate.tokens.get())),
            ),
            Algorithm::FixedWindow | Algorithm::SlidingLog => self.rate.period(),
            Algorithm::SlidingCounter => self.rate.period() * 2,
        }
    }
}

/// Why a quota cannot be enforced exactly, and so is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The count is zero.
    CountZero,
    /// The count in lowest terms is above [`COUNT_MAX`].
    CountTooLarge,
    /// The period is zero.
    PeriodZero,
    /// The period is longer than [`PERIOD_MAX`].
    PeriodTooLong,
    /// More than one token per nanosecond.
    TooFast,
    /// The burst is zero.
    BurstZero,
    /// The burst, or the count that it defaults to, is above [`BURST_MAX`].
    BurstTooLarge,
    /// This algorithm holds exactly its count.
    BurstIsNotTheCount(Algorithm),
    /// A sliding counter keeps two counts in one state, for which there is no room above 500,000,000 a second.
    TooFastForACounter,
    /// A sliding log remembers each request: no more than [`LOG_MAX`].
    TooLargeForALog,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountZero => f.write_str("a count of 0 blocks everything; it is written `0/min`, without a burst"),
            Self::CountTooLarge => write!(f, "the count, in lowest terms, is above the maximum of {COUNT_MAX}"),
            Self::PeriodZero => f.write_str("the period is 0; write at least `1us`"),
            Self::PeriodTooLong => f.write_str("the period is above the maximum of 365 days"),
            Self::TooFast => f.write_str("the rate is above the maximum of 1000000000/s"),
            Self::BurstZero => f.write_str("a burst of 0 lets nothing pass; write `0/min` to block"),
            Self::BurstTooLarge => {
                write!(f, "the burst is above the maximum of {BURST_MAX}; it is the count unless `burst N` is given")
            }
            Self::BurstIsNotTheCount(algorithm) => {
                let name = algorithm.in_words();
                write!(f, "a {name} passes exactly its count at once; leave the burst out, or use token-bucket")
            }
            Self::TooFastForACounter => {
                f.write_str("a sliding counter takes less than 500000000/s; use token-bucket for faster rates")
            }
            Self::TooLargeForALog => {
                write!(
                    f,
                    "a sliding log keeps an entry for each request, {LOG_MAX} at most; use sliding-counter or token-bucket"
                )
            }
        }
    }
}

impl core::error::Error for QuotaError {}

fn period_ns(period: Duration) -> Result<NonZeroU64, QuotaError> {
    if period > PERIOD_MAX {
        return Err(QuotaError::PeriodTooLong);
    }
    u64::try_from(period.as_nanos()).ok().and_then(NonZeroU64::new).ok_or(QuotaError::PeriodZero)
}

fn gcd(a: NonZeroU64, b: NonZeroU64) -> NonZeroU64 {
    match NonZeroU64::new(a.get() % b) {
        Some(rest) => gcd(b, rest),
        None => b,
    }
}

/// `a / b` for a `b` that divides `a`, so that the quotient is at least 1.
fn quotient(a: NonZeroU64, b: NonZeroU64) -> NonZeroU64 {
    NonZeroU64::new(a.get() / b).unwrap_or(NonZeroU64::MIN)
}
