//! Requests by what was decided on them: each of them counts once, under the word that the access log has for it.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::telling::record::Ruling;

/// Requests by what was decided on them.
#[derive(Clone, Debug)]
pub struct RequestMetrics([Counter; Ruling::ALL.len()]);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabel {
    decision: &'static str,
}

impl RequestMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let requests = Family::<DecisionLabel, Counter>::default();
        registry.register("requests", "Requests by what was decided on them", requests.clone());
        let counter = |ruling: Ruling| requests.get_or_create(&DecisionLabel { decision: ruling.word() }).clone();
        Self(Ruling::ALL.map(counter))
    }

    #[inline]
    pub(crate) fn count(&self, ruling: Ruling) {
        self.0[ruling as usize].inc();
    }

    /// How many there were so far.
    pub(crate) fn counted(&self, ruling: Ruling) -> u64 {
        self.0[ruling as usize].get()
    }
}
