//! How it stands with a store, told once per scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tidegate::redis::FailureKind;
use tidegate::{Clock, Memory, Shared};

/// How it stands with a store. Asked for once per scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLevel {
    /// Buckets in this process.
    Memory {
        /// Keys that have a bucket now.
        keys: u64,
        /// Keys that there is room for.
        room: u64,
        /// Buckets that were given up for a newcomer, since the start.
        displaced: u64,
    },
    /// Buckets elsewhere.
    Shared {
        /// Is the store asked? Not while it is left alone after a run of failures.
        is_up: bool,
        /// Tokens that this process has taken ahead and not spent.
        leased: u64,
        /// Decisions that the store did not answer since the start, of each kind.
        failures: Vec<(FailureKind, u64)>,
    },
}

impl StoreLevel {
    /// Of buckets in this process.
    #[must_use]
    pub fn of_memory<C: Clock>(store: &Memory<C>) -> Self {
        let table = store.table();
        // Counts of slots, which fit.
        let (keys, room) = (table.live_keys_at(store.now()) as u64, table.capacity() as u64);
        Self::Memory { keys, room, displaced: table.stats().displaced }
    }

    /// Of buckets elsewhere.
    #[must_use]
    pub fn of_shared<C: Clock>(store: &Shared<C>) -> Self {
        let state = store.redis().state();
        Self::Shared { is_up: state.is_up, leased: store.leased_tokens(), failures: state.failures().collect() }
    }
}

pub(crate) struct StoreCollector(Box<dyn Fn() -> StoreLevel + Send + Sync>);

impl StoreCollector {
    pub(crate) fn new(level: impl Fn() -> StoreLevel + Send + Sync + 'static) -> Self {
        Self(Box::new(level))
    }
}

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCollector")
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match (self.0)() {
            StoreLevel::Memory { keys, room, displaced } => {
                gauge(&mut encoder, "keys", "Keys that have a bucket now", keys)?;
                gauge(&mut encoder, "keys_max", "Keys that there is room for", room)?;
                let help = "Buckets given up for a newcomer because the store was full";
                let displaced = ConstCounter::new(displaced);
                displaced.encode(encoder.encode_descriptor("displaced", help, None, displaced.metric_type())?)
            }
            StoreLevel::Shared { is_up, leased, failures } => {
                let help = "Is the store asked? 0 while it is left alone after a run of failures";
                gauge(&mut encoder, "store_up", help, u64::from(is_up))?;
                gauge(&mut encoder, "store_leased", "Tokens taken ahead and not spent yet", leased)?;
                let help = "Decisions that the store did not answer, by kind of failure";
                let mut family = encoder.encode_descriptor("store_failures", help, None, MetricType::Counter)?;
                failures.iter().try_for_each(|(kind, count)| {
                    ConstCounter::new(*count).encode(family.encode_family(&[("kind", kind.label())])?)
                })
            }
        }
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}
