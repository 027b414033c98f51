//! The connections of a face, counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::client::connection::End;
use crate::client::entrance::{Entered, Refused};
use crate::telling::metrics::register;

/// Connections of one face.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    open: Gauge,
    accepted: Counter,
    too_slow: Counter,
    /// By whether they are secure, and then by whether they speak HTTP/2.
    spoken: [[Counter; 2]; 2],
    /// Of a peer that is not trusted, without the header that was expected, with a failed handshake.
    refused: [Counter; 3],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpokenLabels {
    version: &'static str,
    tls: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

impl Connections {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let spoken = Family::<SpokenLabels, Counter>::default();
        let help = "Connections of clients that came to speak HTTP, by its version and by TLS";
        registry.register("connections_by_protocol", help, spoken.clone());
        let refused = Family::<ReasonLabel, Counter>::default();
        let help = "Connections closed before they spoke HTTP: the handshake of TLS failed, or the header of the PROXY \
                    protocol was wrong, or came from a peer that is not trusted";
        registry.register("connections_refused", help, refused.clone());
        let by_version = |tls| ["1.1", "2"].map(|version| spoken.get_or_create(&SpokenLabels { version, tls }).clone());
        let by_reason = |reason| refused.get_or_create(&ReasonLabel { reason }).clone();
        Self {
            open: register(registry, "connections", "Connections of clients that are open now"),
            accepted: register(registry, "connections_accepted", "Connections of clients since the start"),
            too_slow: register(
                registry,
                "connections_too_slow",
                "Connections cut because a handshake or a header section took too long",
            ),
            spoken: ["no", "yes"].map(by_version),
            refused: ["untrusted", "proxy-header", "tls"].map(by_reason),
        }
    }

    /// Counts a connection for as long as what is returned lives.
    pub(crate) fn open(&self) -> Open {
        self.open.inc();
        self.accepted.inc();
        Open(self.clone())
    }

    /// A connection speaks HTTP from now on.
    pub(crate) fn entered(&self, entered: &Entered) {
        self.spoken[usize::from(entered.socket.is_tls())][usize::from(entered.is_http2)].inc();
    }
}

/// A connection that is open.
pub(crate) struct Open(Connections);

impl Open {
    /// It ended like this.
    pub(crate) fn ended(&self, end: End) {
        let [untrusted, header, tls] = &self.0.refused;
        match end {
            End::TooSlow => self.0.too_slow.inc(),
            End::Refused(Refused::Stranger) => untrusted.inc(),
            End::Refused(Refused::Unintroduced) => header.inc(),
            End::Refused(Refused::Handshake) => tls.inc(),
            End::Closed | End::Broken | End::Refused(Refused::Silent) => 0,
        };
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
