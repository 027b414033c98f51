//! What is counted, and the text that a Prometheus server scrapes.
//!
//! Every series is made at the start from the configuration, and none afterwards: no label comes from a request. So
//! the number of series is fixed whoever calls, and counting is an addition to a counter that is at hand.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use tidegate_core::{Mode, Outcome};

use crate::Histogram;

/// The media type of [`Metrics::text`].
pub const TEXT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Ends of the ranges for the time a decision takes: 100 ns to 100 ms, in nanoseconds.
const DECISION_ENDS_NS: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Ends of the ranges for the time an upstream takes: 1 ms to 60 s, in nanoseconds.
const UPSTREAM_ENDS_NS: &[u64] = &[
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

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

/// How full a store is. Asked once per scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLevel {
    /// Keys that have a bucket now.
    pub keys: u64,
    /// Buckets that were given up for a newcomer, since the start.
    pub displaced: u64,
}

/// All that is counted in one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    limits: Box<[LimitMetrics]>,
    /// Requests that a limit denied, with 429.
    pub denied: Counter,
    /// Requests that no limit applied to.
    pub unmatched: Counter,
    /// The time that one decision over all limits of a request took.
    pub decision: Histogram,
    /// Connections of the proxy's clients.
    pub connections: Connections,
    /// What the upstream answered.
    pub upstream: UpstreamMetrics,
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

/// Connections of one face.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    open: Gauge,
    accepted: Counter,
    too_slow: Counter,
}

/// What came of requests that were passed on.
#[derive(Clone, Debug)]
pub struct UpstreamMetrics {
    classes: [Counter; 5],
    failures: [Counter; Failed::ALL.len()],
    /// The time from a request's passing on to the end of the response's header section.
    pub latency: Histogram,
}

/// Why there was no response from the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// No connection to it could be made.
    Connect,
    /// It closed or reset the connection before it answered.
    Closed,
    /// What it sent is not an HTTP response that can be passed on.
    Malformed,
    /// It did not answer in time.
    Timeout,
}

impl Failed {
    const ALL: [Self; 4] = [Self::Connect, Self::Closed, Self::Malformed, Self::Timeout];

    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::Timeout => "timeout",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    policy: String,
    limit: String,
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
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
        let limits = limits.iter().map(|name| LimitMetrics::new(name, &decisions)).collect();
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
        let connections = Connections::register(&mut registry);
        let upstream = UpstreamMetrics::register(&mut registry);
        Self { registry, limits, denied, unmatched, decision, connections, upstream }
    }

    /// The same, and at each scrape the level of a store.
    #[must_use]
    pub fn with_store(mut self, level: impl Fn() -> StoreLevel + Send + Sync + 'static) -> Self {
        self.registry.register_collector(Box::new(StoreCollector(Box::new(level))));
        self
    }

    /// The counters of the limit at `place` in the order given to [`Metrics::new`].
    #[must_use]
    pub fn limit(&self, place: usize) -> Option<&LimitMetrics> {
        self.limits.get(place)
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

fn register<M: prometheus_client::registry::Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl LimitMetrics {
    fn new(name: &LimitName, decisions: &Family<DecisionLabels, Counter>) -> Self {
        let mode = match name.mode {
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
        };
        let counter = |outcome| {
            let labels = DecisionLabels { policy: name.policy.clone(), limit: name.limit.clone(), mode, outcome };
            decisions.get_or_create(&labels).clone()
        };
        Self { allowed: counter("allowed"), denied: counter("denied"), never: counter("never") }
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

impl Connections {
    fn register(registry: &mut Registry) -> Self {
        Self {
            open: register(registry, "connections", "Connections of clients that are open now"),
            accepted: register(registry, "connections_accepted", "Connections of clients since the start"),
            too_slow: register(
                registry,
                "connections_too_slow",
                "Connections cut because a header section took too long",
            ),
        }
    }

    /// Counts a connection for as long as what is returned lives.
    pub(crate) fn open(&self) -> Open {
        self.open.inc();
        self.accepted.inc();
        Open(self.clone())
    }
}

/// A connection that is open.
pub(crate) struct Open(Connections);

impl Open {
    pub(crate) fn too_slow(&self) {
        self.0.too_slow.inc();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

impl UpstreamMetrics {
    fn register(registry: &mut Registry) -> Self {
        let responses = Family::<ClassLabel, Counter>::default();
        registry.register("upstream_responses", "Responses of the upstream by class of status", responses.clone());
        let failures = Family::<ReasonLabel, Counter>::default();
        registry.register(
            "upstream_failures",
            "Requests that the upstream did not answer, by reason",
            failures.clone(),
        );
        let latency = Histogram::new(UPSTREAM_ENDS_NS);
        registry.register_with_unit(
            "upstream_latency",
            "Time until the response's header fields",
            Unit::Seconds,
            latency.clone(),
        );
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        Self {
            classes: classes.map(|class| responses.get_or_create(&ClassLabel { class }).clone()),
            failures: Failed::ALL.map(|reason| failures.get_or_create(&ReasonLabel { reason: reason.name() }).clone()),
            latency,
        }
    }

    /// Counts a response and the time it took.
    #[inline]
    pub fn answered(&self, status: StatusCode, latency: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, self.classes.len());
        self.classes[class - 1].inc();
        self.latency.observe(latency);
    }

    /// Counts a request that got no response.
    pub fn failed(&self, reason: Failed) {
        self.failures[reason as usize].inc();
    }
}

struct StoreCollector(Box<dyn Fn() -> StoreLevel + Send + Sync>);

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCollector")
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let level = (self.0)();
        let keys = ConstGauge::new(level.keys);
        keys.encode(encoder.encode_descriptor("keys", "Keys that have a bucket now", None, keys.metric_type())?)?;
        let displaced = ConstCounter::new(level.displaced);
        let help = "Buckets given up for a newcomer because the store was full";
        displaced.encode(encoder.encode_descriptor("displaced", help, None, displaced.metric_type())?)
    }
}
