//! What a client is told about its limits.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Answer, Decision, Quota, Source, whole_seconds_up};

use crate::roster::{Line, Roster};

/// The limits that applied to a request, and how it stands with the one that binds.
#[derive(Clone, Debug)]
pub struct Report {
    roster: Arc<Roster>,
    /// The place of the one that binds in the roster.
    binding: usize,
    decision: Decision,
    source: Source,
}

impl Report {
    /// What `answer` says of its limits, which are those of the roster. `None` if it comes of no limit, or of none of these.
    #[inline]
    pub(crate) fn new(answer: &Answer, roster: impl FnOnce() -> Arc<Roster>) -> Option<Self> {
        let (place, decision) = (answer.binding?, answer.decision?);
        let roster = roster();
        let binding = roster.lines().iter().position(|line| line.place == place)?;
        Some(Self { roster, binding, decision, source: answer.source })
    }

    /// Who decided.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// The name of the limit that binds: of those that deny the one with the longest wait, else the one with the least
    /// remaining.
    #[must_use]
    pub fn limit_name(&self) -> &str {
        &self.line().name
    }

    /// The decision under that limit.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Every enforced limit that applied, with its name.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &Quota)> {
        self.roster.lines().iter().map(|line| (&*line.name, &line.quota))
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    pub(crate) fn line(&self) -> &Line {
        &self.roster.lines()[self.binding]
    }

    /// Seconds until more passes than now, rounded up; `None` if that never changes, or nothing is missing.
    pub(crate) fn next_token_s(&self) -> Option<u64> {
        let wait = self.is_waiting_of_use().then(|| self.decision.next_token_after())?;
        (wait > Duration::ZERO).then(|| whole_seconds_up(wait))
    }

    /// The time until the bucket is full; `None` if waiting for that would be of no use.
    pub(crate) fn reset_after(&self) -> Option<Duration> {
        self.is_waiting_of_use().then(|| self.decision.reset_after())
    }

    fn is_waiting_of_use(&self) -> bool {
        !self.decision.is_never() && self.decision.quota().burst() > 0
    }
}
