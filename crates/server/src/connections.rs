//! The connections of a face, counted.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::register;

/// Connections of one face.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    open: Gauge,
    accepted: Counter,
    too_slow: Counter,
}

impl Connections {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            open: register(registry, "connections", "Connections of clients that are open now"),
            accepted: register(registry, "connections_accepted", "Connections of clients since the start"),
            too_slow: register(
                registry,
                "connections_too_slow",
                "Connections cut because a header section took too long",
            ),
        }
    }

    /// Counts a connection for as long as what is returned lives.
    pub(crate) fn open(&self) -> Open {
        self.open.inc();
        self.accepted.inc();
        Open(self.clone())
    }
}

/// A connection that is open.
pub(crate) struct Open(Connections);

impl Open {
    pub(crate) fn too_slow(&self) {
        self.0.too_slow.inc();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
