//! Spans, counted by what became of them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What became of spans. Clones count together.
#[derive(Clone, Debug)]
pub struct SpanMetrics {
    exported: Counter,
    dropped: Counter,
    failed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl SpanMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let spans = Family::<ResultLabel, Counter>::default();
        let help = "Spans: exported, dropped because they came too fast, or failed to be taken by the collector";
        registry.register("trace_spans", help, spans.clone());
        let result = |result| spans.get_or_create(&ResultLabel { result }).clone();
        Self { exported: result("exported"), dropped: result("dropped"), failed: result("failed") }
    }

    pub(crate) fn exported(&self, count: u64) {
        self.exported.inc_by(count);
    }

    pub(crate) fn dropped(&self, count: u64) {
        self.dropped.inc_by(count);
    }

    pub(crate) fn failed(&self, count: u64) {
        self.failed.inc_by(count);
    }
}
