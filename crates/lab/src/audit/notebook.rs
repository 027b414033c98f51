//! What was asked, and what was answered: all that an audit knows.

use std::time::Duration;

use http::HeaderMap;
use tidegate::Time;

/// One call that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Under which key: each is a number of its own.
    pub(super) key: u32,
    pub(super) sent: Time,
    pub(super) answered: Time,
    pub(super) is_admitted: bool,
    /// What Retry-After promised.
    pub(super) claim: Option<Duration>,
}

impl Call {
    pub(super) fn latency(&self) -> Duration {
        self.answered.since(self.sent)
    }
}

/// The calls, in the order of their answers, and the fields of the last answer of each kind.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    pub(super) calls: Vec<Call>,
    /// The fields that came with the last answer that passed.
    pub(super) passed: HeaderMap,
    /// The fields that came with the last denial, and its status.
    pub(super) denied: Option<(u16, HeaderMap)>,
    /// Calls that had no answer, or one that is neither.
    pub(super) failed: u32,
}

impl Notebook {
    /// The shortest time that an answer took: that of the way there and back.
    pub(super) fn way(&self) -> Duration {
        self.calls.iter().map(Call::latency).min().unwrap_or_default()
    }

    /// The calls in the order in which they were sent.
    pub(super) fn in_order(&self) -> Vec<Call> {
        let mut calls = self.calls.clone();
        calls.sort_by_key(|call| call.sent);
        calls
    }
}
