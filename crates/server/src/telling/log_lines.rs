//! The lines of the access log, counted by what became of them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What became of the access log's lines. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct LogLines {
    written: Counter,
    dropped: Counter,
    failed: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

impl LogLines {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let lines = Family::<ResultLabel, Counter>::default();
        let help = "Lines of the access log: written, dropped because they came too fast, or failed to be written";
        registry.register("access_log_lines", help, lines.clone());
        let result = |result| lines.get_or_create(&ResultLabel { result }).clone();
        Self { written: result("written"), dropped: result("dropped"), failed: result("failed") }
    }

    pub(crate) fn written(&self, count: u64) {
        self.written.inc_by(count);
    }

    pub(crate) fn dropped(&self) {
        self.dropped.inc();
    }

    pub(crate) fn failed(&self, count: u64) {
        self.failed.inc_by(count);
    }

    pub(crate) fn have_dropped(&self) -> bool {
        self.dropped.get() > 0
    }
}
