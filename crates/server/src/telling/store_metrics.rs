//! Who decided, and how long it took where the store is not in this process.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tidegate_core::Source;

use crate::Histogram;
use crate::telling::metrics::register;

/// Ends of the ranges for the time a store elsewhere takes: 50 us to 1 s, in nanoseconds.
const STORE_ENDS_NS: &[u64] = &[
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    100_000_000,
    1_000_000_000,
];

/// Who decided, and how long a store elsewhere takes.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    by_source: [Counter; Source::ALL.len()],
    /// Decisions that wait for the store now.
    waiting: Gauge,
    /// The time from the question to the ruling, where that was not at once.
    latency: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

impl StoreMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let answers = Family::<SourceLabel, Counter>::default();
        registry.register("answers", "Requests that limits were asked about, by who decided", answers.clone());
        let waiting = register(registry, "store_waiting", "Decisions that wait for the store now");
        let latency = Histogram::new(STORE_ENDS_NS);
        registry.register_with_unit(
            "store_latency",
            "Time of decisions that had to wait for the store",
            Unit::Seconds,
            latency.clone(),
        );
        let by_source = Source::ALL.map(|source| answers.get_or_create(&SourceLabel { source: source.name() }).clone());
        Self { by_source, waiting, latency }
    }

    /// Counts an answer of this source.
    #[inline]
    pub fn answered(&self, source: Source) {
        let place = Source::ALL.iter().position(|one| *one == source);
        place.iter().for_each(|place| {
            self.by_source[*place].inc();
        });
    }

    /// Counts a decision as waiting for as long as what is returned lives.
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting.inc();
        Waiting(self.clone())
    }
}

/// A decision that waits for its store. A request that is given up drops it, and so it waits no more.
pub(crate) struct Waiting(StoreMetrics);

impl Waiting {
    /// Counts how long it has waited.
    pub(crate) fn ruled_after(self, wait: Duration) {
        self.0.latency.observe(wait);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.dec();
    }
}
