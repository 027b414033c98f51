//! What is counted, and the text that a Prometheus server scrapes.
//!
//! Every series is made from the configuration, when the process starts or its policies are replaced: no label comes
//! from a request. So the number of series is fixed whoever calls, and counting is an addition to a counter that is at
//! hand. A limit that is no longer there takes its series along.

use std::fmt;

use prometheus_client::encoding::text;
use prometheus_client::registry::{Registry, Unit};
use tidegate_core::{FailureMode, Mode};

use crate::telling::limit_metrics::Families;
use crate::telling::store_level::StoreCollector;
use crate::{
    AdminMetrics, ConfigMetrics, Connections, Histogram, LimitSet, LogLines, OutcomeMetrics, RequestMetrics,
    RespMetrics, SpanMetrics, Statuses, StoreLevel, StoreMetrics, TlsMetrics, UpstreamMetrics,
};

/// The media type of [`Metrics::text`].
pub const TEXT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type of [`Metrics::plain_text`].
pub const PLAIN_TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

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
    /// What it does while its store does not answer.
    pub on_failure: FailureMode,
}

/// All that is counted in one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    families: Families,
    /// The limits of the policies in force.
    pub limits: LimitSet,
    /// Requests by what was decided on them.
    pub requests: RequestMetrics,
    /// The time that one decision over all limits of a request took.
    pub decision: Histogram,
    /// Who decided, and how long a store elsewhere takes.
    pub store: StoreMetrics,
    /// What follows from responses and denials.
    pub outcomes: OutcomeMetrics,
    /// Connections of the proxy's clients.
    pub connections: Connections,
    /// The certificates that they are shown.
    pub tls: TlsMetrics,
    /// What the upstream answered.
    pub upstream: UpstreamMetrics,
    /// Answers by status.
    pub statuses: Statuses,
    /// Which configuration is in force.
    pub config: ConfigMetrics,
    /// What became of the access log's lines.
    pub log_lines: LogLines,
    /// What became of spans.
    pub spans: SpanMetrics,
    /// Who was not let in to the admin face.
    pub admin: AdminMetrics,
    /// What came over the Redis protocol.
    pub resp: RespMetrics,
}

impl Metrics {
    /// Metrics with one set of decision counters per limit, in the order given.
    #[must_use]
    pub fn new(limits: &[LimitName]) -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        let families = Families::register(&mut registry);
        let requests = RequestMetrics::register(&mut registry);
        let decision = Histogram::new(DECISION_ENDS_NS);
        registry.register_with_unit(
            "decision",
            "Time of one decision over all limits of a request",
            Unit::Seconds,
            decision.clone(),
        );
        let store = StoreMetrics::register(&mut registry);
        let outcomes = OutcomeMetrics::register(&mut registry);
        let connections = Connections::register(&mut registry);
        let tls = TlsMetrics::register(&mut registry);
        let upstream = UpstreamMetrics::register(&mut registry);
        let statuses = register(&mut registry, "responses", "Answers to clients by status, denials among them");
        let config = ConfigMetrics::register(&mut registry);
        let log_lines = LogLines::register(&mut registry);
        let spans = SpanMetrics::register(&mut registry);
        let admin = AdminMetrics::register(&mut registry);
        let resp = RespMetrics::register(&mut registry);
        let all = Self {
            registry,
            limits: LimitSet::new(families.clone()),
            families,
            requests,
            decision,
            store,
            outcomes,
            connections,
            tls,
            upstream,
            statuses,
            config,
            log_lines,
            spans,
            admin,
            resp,
        };
        all.limits.replace(limits);
        all
    }

    /// One more set of limits, beside those of the policies.
    #[must_use]
    pub fn limit_set(&self) -> LimitSet {
        LimitSet::new(self.families.clone())
    }

    /// These, and at each scrape the level of a store.
    #[must_use]
    pub fn with_store(mut self, level: impl Fn() -> StoreLevel + Send + Sync + 'static) -> Self {
        self.registry.register_collector(Box::new(StoreCollector::new(level)));
        self
    }

    /// All counters as OpenMetrics text, whose media type is [`TEXT_TYPE`].
    ///
    /// # Errors
    /// A store's level could not be written out.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// The same in the older format of Prometheus, for tools that read no other: `promtool check metrics`, say. Its
    /// media type is [`PLAIN_TEXT_TYPE`].
    ///
    /// # Errors
    /// A store's level could not be written out.
    pub fn plain_text(&self) -> Result<String, fmt::Error> {
        Ok(plain(&self.text()?))
    }
}

/// OpenMetrics text in the older format: counters are named as their samples are, and there are neither units nor an
/// end.
fn plain(text: &str) -> String {
    let (mut plain, mut help) = (String::with_capacity(text.len()), None);
    for line in text.lines() {
        match line.strip_prefix("# ").and_then(|comment| comment.split_once(' ')) {
            Some(("HELP", of)) => help = of.split_once(' '),
            Some(("TYPE", of)) => {
                let suffix = if of.ends_with(" counter") { "_total" } else { "" };
                let (name, kind) = of.split_once(' ').unwrap_or((of, "untyped"));
                let described = help.take().map(|(_, help)| help).unwrap_or_default();
                plain.push_str(&format!("# HELP {name}{suffix} {described}\n# TYPE {name}{suffix} {kind}\n"));
            }
            Some(_) => {}
            None if line == "# EOF" => {}
            None => plain.extend([line, "\n"]),
        }
    }
    plain
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
