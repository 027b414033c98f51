//! What one limit says: a quota, nothing at all, or everything.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::{LimitError, PeriodText, Quota, text};

/// A limit as people write it: `60/min`, `60/min burst 10`, `0/min`, `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Lets nothing pass; written as zero per some period, which is kept because header fields name it.
    Block {
        /// The period that was written, more than zero and at most a year.
        period: Duration,
    },
    /// Lets everything pass, and makes no charge.
    Unlimited,
    /// Lets pass what the quota allows.
    Quota(Quota),
}

impl Limit {
    /// The quota that the limit charges; `None` if it is unlimited.
    #[must_use]
    pub fn quota(&self) -> Option<Quota> {
        match *self {
            // A period outside of what can be exact cannot come from text; a block of it blocks all the same.
            Self::Block { period } => Quota::block(period).or_else(|_| Quota::block(Duration::from_secs(1))).ok(),
            Self::Unlimited => None,
            Self::Quota(quota) => Some(quota),
        }
    }
}

impl From<Quota> for Limit {
    fn from(quota: Quota) -> Self {
        Self::Quota(quota)
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    /// Reads the text form.
    ///
    /// # Errors
    /// The text is not a limit; the error says where, what, and what was likely meant.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        text::parse(text)
    }
}

impl fmt::Display for Limit {
    /// The text form; parsing it gives the same limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { period } => write!(f, "0/{}", PeriodText(*period)),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Quota(quota) => quota.fmt(f),
        }
    }
}

impl fmt::Display for Quota {
    /// The text form of the limit; the algorithm is not part of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rate().count(), PeriodText(self.rate().period()))?;
        if self.burst() == self.rate().count() { Ok(()) } else { write!(f, " burst {}", self.burst()) }
    }
}
