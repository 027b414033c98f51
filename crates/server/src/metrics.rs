//! What is counted, and the text that a Prometheus server scrapes.
//!
//! Every series is made from the configuration, when the process starts or its policies are replaced: no label comes
//! from a request. So the number of series is fixed whoever calls, and counting is an addition to a counter that is at
//! hand. A limit that is no longer there takes its series along.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};
use tidegate_core::{Mode, Outcome};

use crate::store_level::StoreCollector;
use crate::{ConfigMetrics, Connections, Histogram, StoreLevel, StoreMetrics, UpstreamMetrics};

/// The media type of [`Metrics::text`].
pub const TEXT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Ends of the ranges for the time a decision takes: 100 ns to 100 ms, in nanoseconds.
const DECISION_ENDS_NS: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A limit as the metrics name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitName {
    /// The policy it belongs to; empty if it belongs to none.
    pub policy: String,
    /// Its own name.
    pub limit: String,
    /// Whether its denials count.
    pub mode: Mode,
}

/// All that is counted in one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    decisions: Family<DecisionLabels, Counter>,
    limits: Mutex<Vec<(LimitName, LimitMetrics)>>,
    /// Requests that a limit denied, with 429.
    pub denied: Counter,
    /// Requests that no limit applied to.
    pub unmatched: Counter,
    /// The time that one decision over all limits of a request took.
    pub decision: Histogram,
    /// Who decided, and how long a store elsewhere takes.
    pub store: StoreMetrics,
    /// Connections of the proxy's clients.
    pub connections: Connections,
    /// What the upstream answered.
    pub upstream: UpstreamMetrics,
    /// Which configuration is in force.
    pub config: ConfigMetrics,
}

/// The counters of one limit.
#[derive(Clone, Debug, Default)]
pub struct LimitMetrics {
    /// Decisions to let pass.
    pub allowed: Counter,
    /// Decisions to deny for a while.
    pub denied: Counter,
    /// Decisions that found a cost which can never pass.
    pub never: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    policy: String,
    limit: String,
    mode: &'static str,
    outcome: &'static str,
}

impl Metrics {
    /// Metrics with one set of decision counters per limit, in the order given.
    #[must_use]
    pub fn new(limits: &[LimitName]) -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        let decisions = Family::<DecisionLabels, Counter>::default();
        registry.register(
            "decisions",
            "Decisions by limit, mode and outcome; never means a cost above the burst",
            decisions.clone(),
        );
        let denied =
            register(&mut registry, "requests_denied", "Requests answered with 429 because a limit denied them");
        let unmatched = register(&mut registry, "requests_unmatched", "Requests that no limit applied to");
        let decision = Histogram::new(DECISION_ENDS_NS);
        registry.register_with_unit(
            "decision",
            "Time of one decision over all limits of a request",
            Unit::Seconds,
            decision.clone(),
        );
        let store = StoreMetrics::register(&mut registry);
        let connections = Connections::register(&mut registry);
        let upstream = UpstreamMetrics::register(&mut registry);
        let config = ConfigMetrics::register(&mut registry);
        let none = Mutex::default();
        let all = Self {
            registry,
            decisions,
            limits: none,
            denied,
            unmatched,
            decision,
            store,
            connections,
            upstream,
            config,
        };
        all.replace_limits(limits);
        all
    }

    /// Counts these limits from now on, and returns their counters in the same order. Those that were there before and
    /// are here go on; the others are forgotten.
    pub fn replace_limits(&self, names: &[LimitName]) -> Vec<LimitMetrics> {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = limits.iter().filter(|(name, _)| !names.contains(name));
        gone.flat_map(|(name, _)| OUTCOMES.map(|outcome| DecisionLabels::new(name, outcome))).for_each(|labels| {
            self.decisions.remove(&labels);
        });
        let counters: Vec<_> = names.iter().map(|name| LimitMetrics::new(name, &self.decisions)).collect();
        *limits = names.iter().cloned().zip(counters.iter().cloned()).collect();
        counters
    }

    /// The same, and at each scrape the level of a store.
    #[must_use]
    pub fn with_store(mut self, level: impl Fn() -> StoreLevel + Send + Sync + 'static) -> Self {
        self.registry.register_collector(Box::new(StoreCollector::new(level)));
        self
    }

    /// The counters of the limit at `place` in the order given last.
    #[must_use]
    pub fn limit(&self, place: usize) -> Option<LimitMetrics> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(place).map(|(_, counters)| counters.clone())
    }

    /// All counters as OpenMetrics text.
    ///
    /// # Errors
    /// A store's level could not be written out.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

pub(crate) fn register<M: prometheus_client::registry::Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

const OUTCOMES: [&str; 3] = ["allowed", "denied", "never"];

impl DecisionLabels {
    fn new(name: &LimitName, outcome: &'static str) -> Self {
        let mode = match name.mode {
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
        };
        Self { policy: name.policy.clone(), limit: name.limit.clone(), mode, outcome }
    }
}

impl LimitMetrics {
    fn new(name: &LimitName, decisions: &Family<DecisionLabels, Counter>) -> Self {
        let [allowed, denied, never] =
            OUTCOMES.map(|outcome| decisions.get_or_create(&DecisionLabels::new(name, outcome)).clone());
        Self { allowed, denied, never }
    }

    /// Counts one decision.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        match outcome {
            Outcome::Allowed => self.allowed.inc(),
            Outcome::Denied { .. } => self.denied.inc(),
            Outcome::Never => self.never.inc(),
        };
    }
}
