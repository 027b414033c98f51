//! Who was not let in to the admin face.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::operating::admin::Stranger;

/// Requests to the admin face that were not let in, by what they lacked.
#[derive(Clone, Debug)]
pub struct AdminMetrics {
    token: Counter,
    host: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

impl AdminMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let denied = Family::<ReasonLabel, Counter>::default();
        let help = "Requests to the admin face that were not let in, by what they lacked";
        registry.register("admin_denied", help, denied.clone());
        let reason = |reason| denied.get_or_create(&ReasonLabel { reason }).clone();
        Self { token: reason("token"), host: reason("host") }
    }

    pub(crate) fn denied(&self, stranger: Stranger) {
        match stranger {
            Stranger::Token => self.token.inc(),
            Stranger::Host => self.host.inc(),
        };
    }
}
