//! From a request to the server that decides it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::address::Deployment;
use crate::call::Lane;
use crate::cluster::Cluster;
use crate::failure::Fault;
use crate::link::{Common, Link};
use crate::slots::slot_of;
use crate::state::Nodes;
use crate::target::Target;
use crate::wire::{Request, Seen};
use crate::{FailureKind, StoreError, StoreState, refresh};

/// Calls under way to one server that all decisions share.
const CALLS_MAX: usize = 4;

pub(crate) enum Route {
    /// All buckets are in one place.
    One {
        link: Link,
        target: Target,
        common: Arc<Common>,
    },
    Cluster(Arc<Cluster>),
}

impl Route {
    /// The way to a deployment.
    pub(crate) fn open(deployment: Deployment, common: Arc<Common>) -> Self {
        let target = match deployment {
            Deployment::Cluster { seeds } => {
                let cluster = Arc::new(Cluster::new(seeds, Arc::clone(&common)));
                let keeping = refresh::keep(Arc::downgrade(&cluster), Arc::clone(&common));
                common.runtime.spawn(keeping);
                return Self::Cluster(cluster);
            }
            Deployment::One(place) => Target::At(place),
            Deployment::Sentinel { sentinels, service, login } => Target::Service { sentinels, service, login },
        };
        Self::One { link: Link::open(target.clone(), &common, CALLS_MAX), target, common }
    }

    pub(crate) fn common(&self) -> &Common {
        match self {
            Self::One { common, .. } => common,
            Self::Cluster(cluster) => &cluster.common,
        }
    }

    /// Are all buckets in one place?
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::One { .. })
    }

    /// Buckets of one slot are decided over in one call. Outside of a cluster that is all of them.
    pub(crate) fn slot(&self, name: &str) -> u16 {
        match self {
            Self::One { .. } => 0,
            Self::Cluster(_) => slot_of(name),
        }
    }

    /// Asks, at most for `patience`, about buckets that are all of one slot.
    pub(crate) async fn ask(&self, request: &Arc<Request>, patience: Duration) -> Result<Seen, StoreError> {
        let deadline = pin!(sleep(patience));
        let slot = request.keys.first().map_or(0, |name| self.slot(name));
        let seen = match self {
            Self::One { link, .. } => link.ask(request, Lane::shared(slot), deadline).await,
            Self::Cluster(cluster) => cluster.ask(request, slot, deadline).await,
        };
        self.count(&seen);
        seen
    }

    fn count(&self, seen: &Result<Seen, StoreError>) {
        let common = self.common();
        let Err(error) = seen else {
            common.counts.answered();
            return;
        };
        let Some(mut kind) = error.kind() else { return };
        if let (Self::One { .. }, FailureKind::Moved, StoreError::Server(text)) = (self, kind, error) {
            // One server that sends us elsewhere is one of a cluster.
            kind = FailureKind::Deployment;
            common.complaints.tell(&Fault::new(kind, text.clone()));
        }
        common.counts.failed(kind);
    }

    pub(crate) fn state(&self) -> StoreState {
        let mut nodes = Nodes::default();
        match self {
            Self::One { link, .. } => link.count(&mut nodes),
            Self::Cluster(cluster) => cluster.count(&mut nodes),
        }
        let common = self.common();
        common.counts.state(nodes, common.complaints.current())
    }
}
