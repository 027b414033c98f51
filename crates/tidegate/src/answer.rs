//! What the library answers.

use std::time::Duration;

use tidegate_core::{Decision, HeldBy, Outcome, Source, Verdict};

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A limit is exhausted, or can never let this cost pass.
    Limit,
    /// The store has no room for another key.
    MemoryBound,
    /// A part of the key is missing, and the policy denies that.
    MissingKey,
    /// The store cannot answer, and the limit then denies.
    StoreDown,
    /// The key is held back for what it did.
    Penalty,
}

impl Cause {
    /// The name that metrics use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::MemoryBound => "memory-bound",
            Self::MissingKey => "missing-key",
            Self::StoreDown => "store-down",
            Self::Penalty => "penalty",
        }
    }
}

/// The answer to one request, over all limits that apply to it.
#[must_use = "an answer that nobody looks at limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The place of the limit that binds, among the limits that were asked: the denying one with the longest wait,
    /// else the one with the least remaining. `None` if no limit made a charge.
    pub binding: Option<usize>,
    /// The decision of that limit. `None` if everything was unlimited, or no decision was needed to deny.
    pub decision: Option<Decision>,
    /// Who decided.
    pub source: Source,
    /// Why it was denied; `None` if it was allowed.
    pub cause: Option<Cause>,
}

impl Answer {
    /// Everything passes: no limit made a charge.
    pub const UNLIMITED: Self = Self::without_charges(None);

    /// No charge was made; without a cause it passes.
    pub const fn without_charges(cause: Option<Cause>) -> Self {
        Self { binding: None, decision: None, source: Source::Store, cause }
    }

    /// The answer of the limit at place `binding`, decided where the buckets are.
    #[inline]
    pub fn of(binding: usize, decision: Decision) -> Self {
        let cause = match (decision.is_allowed(), decision.held_by()) {
            (true, _) => None,
            (false, Some(HeldBy::StoreDown)) => Some(Cause::StoreDown),
            (false, Some(HeldBy::Penalty)) => Some(Cause::Penalty),
            (false, Some(_)) => Some(Cause::MemoryBound),
            (false, None) => Some(Cause::Limit),
        };
        Self { binding: Some(binding), decision: Some(decision), source: Source::Store, cause }
    }

    /// The answer that follows from a verdict; its `binding` is a place among the charges.
    #[inline]
    pub fn from_verdict(verdict: Verdict, decisions: &[Decision]) -> Self {
        let answer = verdict.binding.map_or(Self::UNLIMITED, |i| Self::of(i, decisions[i]));
        Self { source: verdict.source, ..answer }
    }

    /// May the request pass?
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        self.cause.is_none()
    }

    /// Denied, and can never pass, so that waiting does not help?
    #[must_use]
    pub fn is_never(&self) -> bool {
        !self.is_allowed() && self.retry_after().is_none()
    }

    /// The least wait after which the same request passes if nobody else asks; `None` if it passed, or never can.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.decision?.outcome() {
            Outcome::Denied { retry_after } => Some(retry_after),
            Outcome::Allowed | Outcome::Never => None,
        }
    }

    /// [`Answer::retry_after`] as the Retry-After field wants it: whole seconds, rounded up, so at least 1 and never
    /// early (RFC 9110, section 10.2.3).
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.retry_after().map(whole_seconds_up)
    }

    /// Cost that would still pass now under the limit that binds; `None` if nothing limits.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.decision.map(|decision| decision.remaining())
    }

    /// The time until the bucket of the limit that binds is full; `None` if nothing limits.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.decision.map(|decision| decision.reset_after())
    }
}

/// A span in whole seconds, rounded up.
#[must_use]
pub fn whole_seconds_up(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}
