//! Why a text is not a limit, in words that say what was likely meant.

use core::fmt::{self, Write as _};

use crate::QuotaError;

/// Why a text is not a limit: what was wrong with it, where, and what was likely meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    pub(crate) text: Excerpt,
    pub(crate) at: usize,
    pub(crate) fault: Fault,
}

impl LimitError {
    /// Where the fault begins, in bytes from the start of the text.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Empty,
    NoCount { period: Excerpt },
    NotACount,
    NoPeriod { count: u64, burst: Option<u64> },
    NoUnit { count: u64, number: u64, burst: Option<u64> },
    WordForSlash { count: u64, period: Excerpt },
    MinuteOrMonth { count: u64, number: u64 },
    UnknownUnit { unit: Excerpt },
    Negative,
    DecimalCount { numerator: u64, denominator: u64, unit: &'static str },
    DecimalPeriod { count: u64, number: u64, unit: &'static str },
    Decimal,
    TooLarge,
    ZeroWithBurst { unit: &'static str },
    BurstWithoutNumber,
    Trailing { rest: Excerpt },
    Quota(QuotaError),
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fault == Fault::Empty {
            return f.write_str(
                "the limit is empty; write one such as `60/min`, `0/min` to block, or `unlimited` to allow everything",
            );
        }
        write!(f, "`{}`: ", self.text)?;
        match self.fault {
            Fault::Empty => Ok(()),
            Fault::NoCount { period } => write!(f, "there is a period but no count; write `1/{period}`"),
            Fault::NotACount => f.write_str(
                "expected a count and a period, such as `60/min`; `0/min` blocks, `unlimited` allows everything",
            ),
            Fault::NoPeriod { count: 0, burst: None } => {
                f.write_str("a count needs a period; write `0/min` to block, or `unlimited` to allow everything")
            }
            Fault::NoPeriod { count, burst } => {
                write!(f, "a count needs a period; write `{count}/s{0}` or `{count}/min{0}`", Burst(burst))
            }
            Fault::NoUnit { count, number, burst } => {
                write!(
                    f,
                    "the period has no unit; write `{count}/{number}s{0}` or `{count}/{number}min{0}`",
                    Burst(burst)
                )
            }
            Fault::WordForSlash { count, period } => write!(f, "write the period after a slash: `{count}/{period}`"),
            Fault::MinuteOrMonth { count, number } => {
                let number = Number(number);
                write!(f, "`m` could be a minute or a month; write `{count}/{number}min` or `{count}/{number}month`")
            }
            Fault::UnknownUnit { unit } => write!(
                f,
                "unknown unit `{unit}`; the units are us, ms, s, min, h, day, week, month (30 days) and year (365 days)"
            ),
            Fault::Negative => f.write_str("a limit has no signs; write `0/min` to block"),
            Fault::DecimalCount { numerator, denominator, unit } => {
                write!(f, "only whole numbers; the same rate is `{numerator}/{}{unit}`", Number(denominator))
            }
            Fault::DecimalPeriod { count, number, unit } => {
                write!(f, "only whole numbers; the same period is `{count}/{}{unit}`", Number(number))
            }
            Fault::Decimal => f.write_str("only whole numbers, such as `3/2s` for one and a half a second"),
            Fault::TooLarge => f.write_str("the number is too large"),
            Fault::ZeroWithBurst { unit } => {
                write!(f, "a zero limit blocks everything and has no burst; write `0/{unit}`, or a rate above zero")
            }
            Fault::BurstWithoutNumber => f.write_str("`burst` needs a whole number behind it, such as `burst 10`"),
            Fault::Trailing { rest } => {
                write!(f, "did not expect `{rest}`; a limit is `COUNT/PERIOD` or `COUNT/PERIOD burst N`")
            }
            Fault::Quota(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LimitError {}

struct Burst(Option<u64>);

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |burst| write!(f, " burst {burst}"))
    }
}

/// The number before a unit, which is left out if it is one.
pub(crate) struct Number(pub(crate) u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 1 { Ok(()) } else { self.0.fmt(f) }
    }
}

/// The beginning of a piece of text, kept without allocating. Control characters are shown escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    bytes: [u8; Self::LENGTH_MAX],
    length: u8,
    cut: bool,
}

impl Excerpt {
    const LENGTH_MAX: usize = 40;

    pub(crate) fn of(text: &str) -> Self {
        let length = text.floor_char_boundary(Self::LENGTH_MAX);
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        // At most LENGTH_MAX.
        Self { bytes, length: length as u8, cut: length < text.len() }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or("?");
        for c in text.chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
        }
        f.write_str(if self.cut { "..." } else { "" })
    }
}
