//! What came out of a simulation, as plain data.

use std::time::Duration;

use tidegate_core::{Limit, Time};

use super::{Pace, Series};
use crate::Most;

/// What came out, for all who decided.
#[derive(Clone, Debug)]
pub struct Report {
    /// The patterns, as they were written.
    pub patterns: Vec<String>,
    /// What comes, in one line, if there is one pattern.
    pub about: Option<&'static str>,
    /// How many clients there were.
    pub clients: u32,
    /// How long the run was.
    pub length: Duration,
    /// What all chance came from.
    pub seed: u64,
    /// One for each who decided.
    pub rows: Vec<Row>,
}

/// What came out for one who decided. The worst windows are those of one key: the one of which most passed.
#[derive(Clone, Debug)]
pub struct Row {
    /// The algorithm, or the name of the policies.
    pub name: String,
    /// The limits, as they are written; none of policies.
    pub limits: Vec<Limit>,
    /// Requests.
    pub arrivals: u64,
    /// Requests that passed.
    pub admitted: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that were denied and could never pass.
    pub never: u64,
    /// The most that passed in any second.
    pub worst_second: Most,
    /// The most that passed in any minute.
    pub worst_minute: Most,
    /// The most that passed in any period of the first limit; `None` of policies.
    pub worst_period: Option<Most>,
    /// What the first limit promises.
    pub promise: Option<Pace>,
    /// By how much the most in any period was above the promise; of several limits the largest.
    pub overshoot: Option<u64>,
    /// Denials of clients who had kept to their rate.
    pub false_denials: Option<u64>,
    /// When it was stopped, since there were [`ARRIVALS_MAX`](super::ARRIVALS_MAX) requests.
    pub stopped: Option<Time>,
    /// The longest wait that was told.
    pub longest_wait: Duration,
    /// What is kept for a key, in bytes.
    pub state_bytes: Option<usize>,
    /// How many keys were seen.
    pub keys: usize,
    /// What happened over time, if that was asked for.
    pub series: Option<Series>,
}

impl Row {
    /// Was the most in any period so far above the promise, half of it or more, that it has to be said aloud?
    pub(super) fn is_far_above(&self) -> bool {
        let over = self.overshoot.unwrap_or(0);
        over > 0 && self.promise.is_some_and(|promise| over >= promise.count().div_ceil(2))
    }
}
