//! Why a simulation has nothing to show.

use std::fmt;

use tidegate_core::{Algorithm, CHARGES_MAX, Limit, QuotaError, Time};

use super::engine::REMEMBERED_MAX;
use super::{CLIENTS_MAX, PATTERNS_MAX, PatternError};
use crate::words::{Clock, grouped};

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulateError {
    /// A pattern cannot be built.
    Pattern(PatternError),
    /// No pattern was chosen.
    NoPattern,
    /// There are more clients than [`CLIENTS_MAX`].
    Clients(u32),
    /// There are more patterns than [`PATTERNS_MAX`].
    Patterns(usize),
    /// By this instant more has passed than can be remembered for the worst windows.
    Remembered(Time),
    /// A sweep has come to so many requests, and is not over.
    Swept(u64),
    /// No limit, or more than [`CHARGES_MAX`].
    LimitCount(usize),
    /// An unlimited limit decides nothing.
    Unlimited,
    /// An algorithm does not take a limit.
    Quota {
        /// The limit.
        limit: Limit,
        /// The algorithm.
        algorithm: Algorithm,
        /// Why it does not.
        error: QuotaError,
    },
}

impl From<PatternError> for SimulateError {
    fn from(error: PatternError) -> Self {
        Self::Pattern(error)
    }
}

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(error) => error.fmt(f),
            Self::NoPattern => f.write_str("there is no traffic without a pattern"),
            Self::Clients(clients) => write!(f, "there are {clients} clients; the maximum is {CLIENTS_MAX}"),
            Self::Patterns(count) => write!(f, "there are {count} patterns; the maximum is {PATTERNS_MAX}"),
            Self::Remembered(at) => write!(
                f,
                "at {} the windows of all clients hold more than {} requests, and so many are remembered; choose \
                 fewer clients, lower rates or a shorter duration",
                Clock(*at),
                grouped(REMEMBERED_MAX as u64)
            ),
            Self::Swept(requests) => write!(
                f,
                "the sweep has come to {} requests and is not over; try fewer values, fewer clients or a shorter duration",
                grouped(*requests)
            ),
            Self::LimitCount(count) => {
                write!(f, "there are {count} limits; from 1 to {CHARGES_MAX} are decided at once")
            }
            Self::Unlimited => f.write_str("`unlimited` lets everything pass, so there is nothing to see"),
            Self::Quota { limit, algorithm, error } => write!(f, "`{limit}` under {algorithm}: {error}"),
        }
    }
}

impl std::error::Error for SimulateError {}
