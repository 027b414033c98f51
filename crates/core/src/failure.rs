//! What a limit does when its store cannot answer.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::quota::PERIOD_MAX;
use crate::{Algorithm, Quota, Rate};

/// What a limit does when its store cannot answer. It is declared beforehand, counted, and visible in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// Let everything pass.
    Allow,
    /// Let nothing pass, for as long as it lasts.
    Deny,
    /// Decide in this process alone, under this share of the limit.
    Local(Fraction),
}

impl Default for FailureMode {
    /// The whole limit, in each process.
    fn default() -> Self {
        Self::Local(Fraction::WHOLE)
    }
}

impl fmt::Display for FailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Deny => f.write_str("deny"),
            Self::Local(Fraction::WHOLE) => f.write_str("local"),
            Self::Local(fraction) => write!(f, "local:{fraction}"),
        }
    }
}

impl core::str::FromStr for FailureMode {
    type Err = FailureModeError;

    fn from_str(text: &str) -> Result<Self, FailureModeError> {
        match text.split_once(':') {
            None if text == "allow" => Ok(Self::Allow),
            None if text == "deny" => Ok(Self::Deny),
            None if text == "local" => Ok(Self::default()),
            Some(("local", fraction)) => {
                fraction.parse().map(Self::Local).map_err(|FractionError| FailureModeError::Fraction)
            }
            _ => Err(FailureModeError::Unknown),
        }
    }
}

/// Why a text is not a [`FailureMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureModeError {
    /// It is none of the three words.
    Unknown,
    /// What follows `local:` is not a [`Fraction`].
    Fraction,
}

impl fmt::Display for FailureModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("expected allow, deny, local, or local with a fraction such as local:0.25"),
            Self::Fraction => FractionError.fmt(f),
        }
    }
}

impl core::error::Error for FailureModeError {}

const PARTS: u32 = 1_000_000;

/// A share of a limit: above 0 and at most 1, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction(NonZeroU32);

impl Fraction {
    /// All of it.
    pub const WHOLE: Self = Self(NonZeroU32::new(PARTS).expect("a million is not zero"));

    /// So many millionths; `None` if that is zero or more than the whole.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        match NonZeroU32::new(millionths) {
            Some(parts) if millionths <= PARTS => Some(Self(parts)),
            _ => None,
        }
    }

    /// The share in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0.get()
    }

    /// This share of `quota`: of its rate and of its burst, rounded down, the burst never below 1.
    ///
    /// A rate that is not a whole count per period is kept by stretching the period; beyond the longest period it is
    /// once per longest period.
    #[must_use]
    pub fn of(self, quota: &Quota) -> Quota {
        let burst = u128::from(quota.burst()) * u128::from(self.millionths()) / u128::from(PARTS);
        // Not above the quota's own burst.
        let burst = burst.max(u128::from(quota.burst().min(1))) as u64;
        let scaled = match quota.algorithm() {
            _ if self == Self::WHOLE || quota.burst() == 0 => None,
            Algorithm::FixedWindow | Algorithm::SlidingCounter | Algorithm::SlidingLog => {
                Rate::new(burst, quota.rate().period()).and_then(Quota::new).ok()
            }
            Algorithm::TokenBucket => self.of_rate(quota.rate()).and_then(|rate| Quota::with_burst(rate, burst).ok()),
        };
        scaled.and_then(|scaled| scaled.with_algorithm(quota.algorithm()).ok()).unwrap_or(*quota)
    }

    fn of_rate(self, rate: &Rate) -> Option<Rate> {
        let stretched_ns = (rate.period().as_nanos() * u128::from(PARTS)).div_ceil(u128::from(self.millionths()));
        match u64::try_from(stretched_ns).ok().map(Duration::from_nanos).filter(|period| *period <= PERIOD_MAX) {
            Some(period) => Rate::new(rate.count(), period).ok(),
            None => self.over_the_longest_period(rate),
        }
    }

    fn over_the_longest_period(self, rate: &Rate) -> Option<Rate> {
        let full = u128::from(rate.count()) * u128::from(self.millionths()) * PERIOD_MAX.as_nanos();
        let count = full / (rate.period().as_nanos() * u128::from(PARTS));
        Rate::new(u64::try_from(count).ok()?.max(1), PERIOD_MAX).ok()
    }
}

impl fmt::Display for Fraction {
    /// As a decimal number: `0.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut digits, mut width) = (self.millionths(), 6);
        if digits == PARTS {
            return f.write_str("1");
        }
        while digits % 10 == 0 {
            (digits, width) = (digits / 10, width - 1);
        }
        write!(f, "0.{digits:0width$}")
    }
}

impl core::str::FromStr for Fraction {
    type Err = FractionError;

    /// Reads a decimal number with up to six digits behind the point.
    fn from_str(text: &str) -> Result<Self, FractionError> {
        let (whole, behind) = text.split_once('.').unwrap_or((text, "0"));
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(behind) || behind.len() > 6 || whole.len() > 6 {
            return Err(FractionError);
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| FractionError);
        let behind = number(behind)? * 10_u32.pow(6 - behind.len() as u32);
        let parts = number(whole)?.saturating_mul(PARTS).saturating_add(behind);
        Self::from_millionths(parts).ok_or(FractionError)
    }
}

/// The text is not a [`Fraction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FractionError;

impl fmt::Display for FractionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a number above 0 and at most 1, with at most six digits behind the point, such as 0.25")
    }
}

impl core::error::Error for FractionError {}
