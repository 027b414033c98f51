//! What came of the requests that were passed on, counted.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::Histogram;

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

/// What came of requests that were passed on.
#[derive(Clone, Debug)]
pub struct UpstreamMetrics {
    classes: [Counter; 5],
    failures: [Counter; Failed::ALL.len()],
    /// The time from a request's passing on to the end of the response's header section.
    pub latency: Histogram,
    /// Connections of clients that are joined to one of the upstream, after an upgrade.
    pub upgraded: Gauge,
}

/// Why there was no response from the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// No connection to it could be made.
    Connect,
    /// Its certificate is not trusted, or there is no TLS to be had with it.
    Tls,
    /// It closed or reset the connection before it answered.
    Closed,
    /// What it sent is not an HTTP response that can be passed on.
    Malformed,
    /// It did not answer in time.
    Timeout,
}

impl Failed {
    const ALL: [Self; 5] = [Self::Connect, Self::Tls, Self::Closed, Self::Malformed, Self::Timeout];

    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::Timeout => "timeout",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

impl UpstreamMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
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
        let upgraded = Gauge::default();
        registry.register(
            "upgraded_connections",
            "Connections that changed their protocol, open now",
            upgraded.clone(),
        );
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        Self {
            classes: classes.map(|class| responses.get_or_create(&ClassLabel { class }).clone()),
            failures: Failed::ALL.map(|reason| failures.get_or_create(&ReasonLabel { reason: reason.name() }).clone()),
            latency,
            upgraded,
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
