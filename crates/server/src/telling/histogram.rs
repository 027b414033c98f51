//! A histogram that is observed without a lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// How often durations fell into each of a fixed set of ranges.
///
/// An observation is two atomic additions. A scrape between the two sees them apart for an instant, which a counter
/// may; the count itself is the sum of the ranges, so the two agree always.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The upper ends of the ranges, in nanoseconds, ascending; a last range has no end.
    ends_ns: &'static [u64],
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

impl Histogram {
    /// An empty histogram over ranges with the upper ends `ends_ns`, in nanoseconds, ascending.
    #[must_use]
    pub fn new(ends_ns: &'static [u64]) -> Self {
        let counts = (0..=ends_ns.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Inner { ends_ns, counts, sum_ns: AtomicU64::new(0) }))
    }

    /// Counts `duration`.
    #[inline]
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let range = self.0.ends_ns.partition_point(|end_ns| *end_ns < ns);
        self.0.counts[range].fetch_add(1, Relaxed);
        self.0.sum_ns.fetch_add(ns, Relaxed);
    }

    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.counts.iter().map(|count| count.load(Relaxed)).sum()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts: Vec<u64> = self.0.counts.iter().map(|count| count.load(Relaxed)).collect();
        let ends = self.0.ends_ns.iter().map(|ns| seconds(*ns)).chain([f64::INFINITY]);
        let ranges: Vec<(f64, u64)> = ends.zip(counts.iter().copied()).collect();
        encoder.encode_histogram::<NoLabelSet>(seconds(self.0.sum_ns.load(Relaxed)), counts.iter().sum(), &ranges, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn a_duration_falls_into_the_first_range_that_holds_it() {
        let histogram = Histogram::new(&[1_000, 1_000_000]);
        for ns in [0, 1_000, 1_001, 1_000_000, 5_000_000_000] {
            histogram.observe(Duration::from_nanos(ns));
        }
        let mut registry = Registry::default();
        registry.register("wait_seconds", "Waits", histogram.clone());
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert_eq!(histogram.count(), 5);
        for line in [
            "wait_seconds_bucket{le=\"0.000001\"} 2",
            "wait_seconds_bucket{le=\"0.001\"} 4",
            "wait_seconds_bucket{le=\"+Inf\"} 5",
            "wait_seconds_count 5",
            "wait_seconds_sum 5.001002001",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
