//! The algorithms by name.

use core::fmt;

/// How a quota is enforced. One file per algorithm, all in one mould.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Refills by elapsed time; over any span d at most burst + rate x d passes. The default.
    #[default]
    TokenBucket,
    /// Counts per period, aligned to the clock's epoch; up to twice the count can pass around an edge.
    FixedWindow,
    /// Counts per period, and lets the count before weigh as much as the last period covers of it; over any span d at most
    /// count + rate x d passes.
    SlidingCounter,
    /// Remembers whatever passed for a period; at most the count passes in any period, exactly.
    SlidingLog,
}

impl Algorithm {
    /// Every algorithm, the default first.
    pub const ALL: [Self; 4] = [Self::TokenBucket, Self::FixedWindow, Self::SlidingCounter, Self::SlidingLog];

    /// The name that flags and configuration files use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::FixedWindow => "fixed-window",
            Self::SlidingCounter => "sliding-counter",
            Self::SlidingLog => "sliding-log",
        }
    }

    /// The name as it stands in a sentence.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::TokenBucket => "token bucket",
            Self::FixedWindow => "fixed window",
            Self::SlidingCounter => "sliding counter",
            Self::SlidingLog => "sliding log",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::str::FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or(UnknownAlgorithm)
    }
}

/// The name is not one of [`Algorithm::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of")?;
        for (i, algorithm) in Algorithm::ALL.iter().enumerate() {
            write!(f, "{} `{algorithm}`", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownAlgorithm {}
