//! Flags that several commands share: their texts become values here, or errors that name the likely intent.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidegate::{Algorithm, Limit, LimitError, QuotaError};
use tidegate_http::{Dialect, Dialects, UnknownDialect};

/// The flags are fine each by itself, and wrong together. The program ends with exit code 2.
#[derive(Debug)]
pub(crate) struct Wrong(String);

impl Wrong {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }

    /// All of these at once.
    pub(crate) fn all(wrong: impl Iterator<Item = Self>) -> Self {
        Self(wrong.map(|wrong| wrong.0).collect::<Vec<_>>().join("\n"))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Wrong {}

/// All went well, and something is not as a flag says that it should be. The program ends with exit code 3.
#[derive(Debug)]
pub(crate) struct Fails(String);

impl Fails {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }
}

impl fmt::Display for Fails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Fails {}

/// A signal ended it early, and what is known was told. The program ends with exit code 130.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was interrupted")
    }
}

impl Error for Interrupted {}

/// Reads a limit.
pub(crate) fn limit(text: &str) -> Result<Limit, LimitError> {
    text.parse()
}

/// Reads a number of tokens.
pub(crate) fn tokens(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "expected a whole number of tokens from 1 to 4294967295")
}

/// Reads a number of processes.
pub(crate) fn nodes(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "expected a whole number of processes from 1 to 4294967295")
}

/// Reads the header dialects: `none`, or names with commas between them.
pub(crate) fn dialects(text: &str) -> Result<Dialects, UnknownDialect> {
    match text {
        "none" => Ok(Dialects::NONE),
        _ => text.split(',').map(|name| name.trim().parse::<Dialect>()).collect(),
    }
}

/// Reads an algorithm's name, and lists the names in the help.
pub(crate) fn algorithm() -> impl TypedValueParser<Value = Algorithm> {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)).try_map(|name| name.parse::<Algorithm>())
}

/// The same limit under an algorithm.
pub(crate) fn enforced_by(limit: Limit, algorithm: Algorithm) -> Result<Limit, QuotaError> {
    match limit {
        Limit::Quota(quota) => quota.with_algorithm(algorithm).map(Limit::Quota),
        Limit::Block { .. } | Limit::Unlimited => Ok(limit),
    }
}
