//! What can stop a shared store from answering.

use std::fmt;

use crate::{FailureKind, OutOfRange};

/// The store gave no answer; whether something was charged may not be known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// No answer within the deadline.
    Deadline,
    /// There is no connection now, or the store has failed so often that it is left alone for a while.
    Unavailable,
    /// As many decisions as may wait are waiting already.
    Busy,
    /// The server answered that it cannot decide. The text is its own, and begins with the kind of the error.
    Server(String),
    /// The answer is not what the script returns.
    Malformed,
    /// A reservation of this id is open already; nothing was charged.
    AlreadyOpen,
    /// The quota cannot be exact here; nothing was asked.
    OutOfRange(OutOfRange),
}

impl StoreError {
    /// What kind of failure it is, for counting. `None` if the store did not fail: the question was none for it.
    #[must_use]
    pub fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Deadline => Some(FailureKind::Deadline),
            Self::Unavailable => Some(FailureKind::Unavailable),
            Self::Busy => Some(FailureKind::Full),
            Self::Server(text) => Some(FailureKind::of_answer(text)),
            Self::Malformed => Some(FailureKind::Malformed),
            Self::AlreadyOpen | Self::OutOfRange(_) => None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline => f.write_str("the store did not answer within the deadline"),
            Self::Unavailable => f.write_str("the store is not available"),
            Self::Busy => f.write_str("too many decisions wait for the store"),
            Self::Server(text) => write!(f, "the store answered: {text}"),
            Self::Malformed => f.write_str("the store's answer is not one of the script's"),
            Self::AlreadyOpen => f.write_str("a reservation of this id is open already"),
            Self::OutOfRange(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<OutOfRange> for StoreError {
    fn from(why: OutOfRange) -> Self {
        Self::OutOfRange(why)
    }
}
