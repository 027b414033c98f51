//! What a replay found, as plain data.

use crate::log::Utc;
use crate::replay::{LimitTally, Timeline};

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The logs, each with the format that it was read in.
    pub logs: Vec<(String, String)>,
    /// Lines read.
    pub lines: u64,
    /// Of them, empty ones and comments.
    pub blank: u64,
    /// Of them, such as cannot be read.
    pub unparsed: u64,
    /// Of them, requests that were left out as was asked for.
    pub excluded: u64,
    /// Requests that were replayed.
    pub requests: u64,
    /// Lines that were later than the reorder bound.
    pub late: u64,
    /// Does a log tell whole seconds only? Then requests were spread over their second.
    pub has_whole_stamps: bool,
    /// Where times were taken to be from that name no zone, if there were any.
    pub assumed_place: Option<String>,
    /// What cannot be read, by example.
    pub examples: Vec<Example>,
    /// Logs that end where they should not, in words.
    pub broken: Vec<String>,
    /// What the log cannot show of the configuration, in words.
    pub blind_spots: Vec<String>,
    /// How many clients sent them.
    pub clients: u64,
    /// When the first and the last request came.
    pub span: Option<(Utc, Utc)>,
    /// What became of them.
    pub outcome: Outcome,
    /// What changes under the other configuration.
    pub comparison: Option<Comparison>,
    /// The clients hit most.
    pub top_clients: Vec<ClientLine>,
    /// The paths denied most, then those asked for most.
    pub top_paths: Vec<PathLine>,
    /// Were there more paths than are kept?
    pub is_paths_partial: bool,
    /// When it would have happened.
    pub timeline: Timeline,
    /// How near the limit each client came.
    pub left: Left,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The name of the log.
    pub log: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// What was expected there.
    pub what: String,
}

/// What became of the requests under one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests that pass.
    pub admitted: u64,
    /// Requests that are denied.
    pub denied: u64,
    /// Clients of whom at least one request is denied.
    pub denied_clients: u64,
    /// The limits.
    pub limits: Vec<LimitTally>,
    /// By the first digit of the status that the server answered with; 0 where the log has none.
    pub by_status: [ByStatus; 6],
}

/// The requests of one class of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByStatus {
    /// All.
    pub requests: u64,
    /// Those that are denied.
    pub denied: u64,
}

/// What changes under another configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What becomes of the requests there.
    pub outcome: Outcome,
    /// Requests that are denied only there.
    pub newly_denied: u64,
    /// Requests that are denied only here.
    pub newly_admitted: u64,
    /// Clients who are denied only there.
    pub newly_denied_clients: u64,
    /// Clients who are denied only here.
    pub newly_admitted_clients: u64,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLine {
    /// The address, grouped, or the name.
    pub client: String,
    /// Its requests.
    pub requests: u64,
    /// Those that are denied.
    pub denied: u64,
    /// Those that are denied under the other configuration.
    pub denied_there: Option<u64>,
    /// When its busiest minute on the clock began.
    pub busiest: Utc,
    /// The requests within that minute.
    pub in_busiest: u64,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLine {
    /// The path.
    pub path: String,
    /// The requests for it.
    pub requests: u64,
    /// Those that are denied.
    pub denied: u64,
}

/// How near the limit clients came: how many had so many tokens left at their least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Clients who were denied.
    pub denied: u64,
    /// Clients who were not, by their least remaining: 0, 1, 2 to 3, 4 to 7, and so on.
    pub by_power: Vec<u64>,
}
