//! What a client is told about its limits.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tidegate::{Answer, Decision, Quota, Source, whole_seconds_up};

use crate::roster::{Applied, Line, Roster};
use crate::{Dialects, fields};

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

    /// What `answer` says of the enforced limits that it was made from: each with its place, its name and its quota. `None`
    /// if it comes of none of these.
    ///
    /// For who answers in a way of their own. It renders everything anew; a layer keeps what stays the same.
    pub fn of<'a>(answer: &Answer, limits: impl Iterator<Item = (usize, &'a str, Quota)>) -> Option<Self> {
        let applied = limits.map(|(place, name, quota)| Applied { place, name, quota });
        Self::new(answer, || Arc::new(Roster::new(applied)))
    }

    /// Writes what these dialects say of it beside what is in `headers` already.
    pub fn write(&self, dialects: Dialects, headers: &mut HeaderMap) {
        fields::write(dialects, self, headers);
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

#[cfg(test)]
mod tests {
    use tidegate::{Bucket, Cost, Limit, Time};

    use super::*;
    use crate::{Dialect, Reset};

    #[test]
    fn an_answer_is_told_in_fields_without_a_layer() {
        let quotas = ["60/min", "5/s"].map(|limit| limit.parse::<Limit>().unwrap().quota().unwrap());
        let decision = Bucket::new(&quotas[1]).decide_at(Cost::new(3), Time::from_secs(1));
        let answer = Answer::of(1, decision);
        let limits = || quotas.iter().enumerate().map(|(i, quota)| (i, ["a", "b"][i], *quota));
        let mut headers = HeaderMap::new();
        let dialects = Dialects::default().with(Dialect::XRateLimit(Reset::Delta));
        Report::of(&answer, limits()).unwrap().write(dialects, &mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"a\";q=60;w=60, \"b\";q=5;w=1");
        assert_eq!(headers["ratelimit"], "\"b\";r=2;t=1");
        assert_eq!(headers["x-ratelimit-remaining"], "2");
        assert!(Report::of(&Answer::UNLIMITED, limits()).is_none());
        assert!(Report::of(&answer, limits().take(1)).is_none(), "the one that binds is not among them");
    }
}
