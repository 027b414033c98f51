//! The counters of each limit: what it decided, how often it was close, and what it did while its store was away.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tidegate_core::{Decision, FailureMode, Mode, Outcome, Source};

use crate::LimitName;

/// Allowed with less than this part of the burst left is near the limit.
const NEAR_PART: u64 = 10;

const OUTCOMES: [&str; 3] = ["allowed", "denied", "never"];

/// The counters of one limit.
#[derive(Clone, Debug, Default)]
pub struct LimitMetrics {
    /// Decisions to let pass.
    pub allowed: Counter,
    /// Decisions to deny for a while.
    pub denied: Counter,
    /// Decisions that found a cost which can never pass.
    pub never: Counter,
    /// Decisions to let pass that left less than a tenth of the burst.
    pub near: Counter,
    /// Decisions by what the limit does while its store does not answer.
    pub fallback: Counter,
}

impl LimitMetrics {
    /// Counts one decision, which came from `source`.
    #[inline]
    pub fn count(&self, decision: &Decision, source: Source) {
        match decision.outcome() {
            Outcome::Allowed => self.allowed.inc(),
            Outcome::Denied { .. } => self.denied.inc(),
            Outcome::Never => self.never.inc(),
        };
        if decision.is_allowed() && decision.remaining().saturating_mul(NEAR_PART) < decision.quota().burst() {
            self.near.inc();
        }
        if source == Source::Fallback {
            self.fallback.inc();
        }
    }
}

/// The series of all limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Families {
    decisions: Family<DecisionLabels, Counter>,
    near: Family<NearLabels, Counter>,
    fallback: Family<FallbackLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    policy: String,
    limit: String,
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NearLabels {
    policy: String,
    limit: String,
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FallbackLabels {
    policy: String,
    limit: String,
    on_failure: &'static str,
}

impl Families {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let help = "Decisions by limit, mode and outcome; never means a cost above the burst";
        registry.register("decisions", help, all.decisions.clone());
        let help = "Decisions to let pass that left less than a tenth of the burst";
        registry.register("near_limit", help, all.near.clone());
        let help = "Decisions made without the store, by what the limit does then";
        registry.register("fallback_decisions", help, all.fallback.clone());
        all
    }

    /// The counters of a limit, which are there from now on.
    pub(crate) fn limit(&self, name: &LimitName) -> LimitMetrics {
        let [allowed, denied, never] =
            OUTCOMES.map(|outcome| self.decisions.get_or_create(&DecisionLabels::new(name, outcome)).clone());
        let near = self.near.get_or_create(&NearLabels::new(name)).clone();
        let fallback = self.fallback.get_or_create(&FallbackLabels::new(name)).clone();
        LimitMetrics { allowed, denied, never, near, fallback }
    }

    /// Takes the series of a limit away.
    pub(crate) fn forget(&self, name: &LimitName) {
        for outcome in OUTCOMES {
            self.decisions.remove(&DecisionLabels::new(name, outcome));
        }
        self.near.remove(&NearLabels::new(name));
        self.fallback.remove(&FallbackLabels::new(name));
    }
}

impl DecisionLabels {
    fn new(name: &LimitName, outcome: &'static str) -> Self {
        Self { policy: name.policy.clone(), limit: name.limit.clone(), mode: mode(name), outcome }
    }
}

impl NearLabels {
    fn new(name: &LimitName) -> Self {
        Self { policy: name.policy.clone(), limit: name.limit.clone(), mode: mode(name) }
    }
}

impl FallbackLabels {
    fn new(name: &LimitName) -> Self {
        let on_failure = match name.on_failure {
            FailureMode::Allow => "allow",
            FailureMode::Deny => "deny",
            FailureMode::Local(_) => "local",
        };
        Self { policy: name.policy.clone(), limit: name.limit.clone(), on_failure }
    }
}

fn mode(name: &LimitName) -> &'static str {
    match name.mode {
        Mode::Enforce | Mode::Guard => "enforce",
        Mode::Shadow => "shadow",
    }
}
