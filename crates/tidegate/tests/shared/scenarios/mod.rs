//! What can happen to a store, each with callers who go on asking meanwhile.
//!
//! The test asserts on what they saw, and the benchmark `chaos` measures it.

mod failover;
mod network;
mod server;

pub(crate) use failover::{failed_over, failed_over_in_a_cluster, moved_slots};
pub(crate) use network::{blackholed, delayed, refused};
pub(crate) use server::{became_a_replica, flushed_scripts, killed, out_of_memory};

use std::time::Duration;

use crate::seen::Seen;

/// How long things last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// What the callers wait for a decision.
    pub(crate) deadline: Duration,
    /// Before and after it happens.
    pub(crate) calm: Duration,
    /// How long it lasts.
    pub(crate) outage: Duration,
}

/// What came of it.
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) seen: Seen,
    /// How often the store lost what it had been told.
    pub(crate) losses: u64,
    /// From when the server was well again until each limit was answered by it; `None` if it was never away.
    pub(crate) recovery: Option<Duration>,
}
