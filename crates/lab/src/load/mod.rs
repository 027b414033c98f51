//! `load`: traffic of a pattern, sent to a real service.
//!
//! It is open loop: a request is sent when the pattern plans it, whether the ones before were answered or not, and its
//! latency is counted from the planned instant. A service that stalls is therefore charged with all the waiting that it
//! causes, also of those requests that could not be sent meanwhile.
//!
//! Read the modules in this order: `pacer` (planned instants, kept to a tenth of a millisecond), `drive` (requests sent
//! and answers awaited), `tally` (what is counted), `text` and `json` (how it is told).

mod drive;
mod json;
mod pacer;
mod tally;
mod text;

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use http::header::HeaderName;

use crate::simulate::{Chosen, Pace, SimulateError};
use crate::wire::OpenError;

pub use self::drive::load;
pub use self::tally::{Latencies, Report, Snapshot};

/// How a service is loaded.
#[derive(Clone, Debug)]
pub struct Options {
    /// The patterns, each with clients of its own.
    pub patterns: Vec<Chosen>,
    /// The pace of the limit that patterns go by, where they are not told another.
    pub pace: Pace,
    /// How many clients each pattern has, if that is not left to it.
    pub clients: Option<u32>,
    /// The number that all chance comes from.
    pub seed: u64,
    /// How long it lasts, unless the patterns end by themselves.
    pub length: Option<Duration>,
    /// Requests that may be on their way at once; those that are planned meanwhile wait.
    pub at_once_max: usize,
    /// How one client is told from another.
    pub identity: Identity,
    /// The statuses that say that a request is denied.
    pub denials: Vec<StatusCode>,
    /// Are the paths of the pattern called, rather than the target's own?
    pub has_paths: bool,
}

/// How one client is told from another.
#[derive(Clone, Debug)]
pub enum Identity {
    /// They are not: all come from one address, and say the same.
    None,
    /// Each says its name in this field.
    Field(HeaderName),
    /// Each calls from an address of its own, of the loopback.
    Address,
}

/// How long a run lasts that neither a flag nor a pattern ends.
pub const LENGTH: Duration = Duration::from_secs(10);

/// Why nothing can be sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The target cannot be called, or may not.
    Open(OpenError),
    /// There is no such traffic.
    Traffic(SimulateError),
    /// Clients cannot have addresses of their own, since the target is not on the loopback.
    NotLoopback,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Traffic(error) => error.fmt(f),
            Self::NotLoopback => f.write_str(
                "clients have addresses of their own only on the loopback (127.0.0.1); name a header instead",
            ),
        }
    }
}

impl std::error::Error for LoadError {}
