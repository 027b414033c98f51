//! The limited proxy: the tower layer around [`Proxy`] or [`Jokes`], counted, on all workers.
//!
//! This is where the parts meet. The layer asks the gate, and what it denies never gets further; what it lets pass goes
//! to the upstream, or to the built-in API if there is none.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Store, Time};
use tidegate_http::{Cors, Dialects, LimitLayer};
use tower_layer::Layer as _;

use crate::desk::{Desk, DeskSetup};
use crate::operating::in_force::Observed;
use crate::{
    Bounds, Drain, Entrance, HostTold, Jokes, Listener, Proxy, ProxySetup, Setup, UpstreamTls, Upstreams, run,
};

/// What a gateway is made of.
pub struct GatewaySetup<S> {
    /// What decides, and who watches.
    pub desk: DeskSetup<S>,
    /// Where allowed requests go; to the built-in API if there is none.
    pub upstreams: Option<Upstreams>,
    /// Which upstreams over TLS are trusted; none if it is not there.
    pub upstream_tls: Option<UpstreamTls>,
    /// Which host they are told.
    pub host_told: HostTold,
    /// How clients come in. Whose word counts there, the policies say.
    pub entrance: Entrance,
    /// How much is taken and passed on.
    pub bounds: Bounds,
    /// What clients are told about limits.
    pub dialects: Dialects,
    /// Whose scripts may read what is denied.
    pub cors: Option<Cors>,
}

impl<S> GatewaySetup<S> {
    /// One before the built-in API, with bounds and dialects as they are by default.
    #[must_use]
    pub fn new(desk: DeskSetup<S>) -> Self {
        Self {
            desk,
            upstreams: None,
            upstream_tls: None,
            host_told: HostTold::default(),
            entrance: Entrance::default(),
            bounds: Bounds::default(),
            dialects: Dialects::default(),
            cors: None,
        }
    }
}

/// A reverse proxy behind limits, with its admin face.
pub struct Gateway<S> {
    desk: Arc<Desk<S>>,
    upstreams: Option<Upstreams>,
    upstream_tls: Option<UpstreamTls>,
    host_told: HostTold,
    entrance: Entrance,
    bounds: Bounds,
    layer: LimitLayer<Observed<S>>,
}

impl<S: Store + 'static> Gateway<S> {
    /// A gateway that serves as soon as it is run.
    #[must_use]
    pub fn new(setup: GatewaySetup<S>) -> Self {
        let GatewaySetup { desk, upstreams, upstream_tls, host_told, entrance, bounds, dialects, cors } = setup;
        let desk = Arc::new(Desk::new(desk));
        let layer = desk.layer(dialects, cors);
        let entrance = Entrance { trust: desk.believed.clone(), ..entrance };
        Self { desk, upstreams, upstream_tls, host_told, entrance, bounds, layer }
    }

    /// The policies in force, for those who watch them or put others in force.
    #[must_use]
    pub fn desk(&self) -> &Arc<Desk<S>> {
        &self.desk
    }

    /// Serves clients on `listeners`, those of each worker, and operators on `admin`, until `drain` starts and the workers
    /// have drained. The admin face serves until then.
    ///
    /// # Errors
    /// A thread or a runtime cannot be started, or a listener cannot be waited for.
    pub fn run(&self, listeners: Vec<Vec<Listener>>, admin: Option<TcpListener>, drain: &Drain) -> io::Result<()> {
        self.desk.attended(admin, drain, || self.serve(listeners, drain))
    }

    fn serve(&self, listeners: Vec<Vec<Listener>>, drain: &Drain) -> io::Result<()> {
        let setup = Setup {
            bounds: self.bounds.clone(),
            entrance: self.entrance.clone(),
            connections: self.desk.metrics.connections.clone(),
        };
        match self.upstreams.clone() {
            Some(upstreams) => {
                let proxy = || Proxy::new(self.proxy(upstreams.clone()));
                run(listeners, || self.desk.recorded(self.layer.layer(proxy())), &setup, drain)
            }
            None => {
                let clock = Arc::clone(&self.desk.clock);
                let jokes = Jokes::new(move || day(clock()));
                run(listeners, || self.desk.recorded(self.layer.layer(jokes.clone())), &setup, drain)
            }
        }
    }

    fn proxy(&self, upstreams: Upstreams) -> ProxySetup {
        ProxySetup {
            upstreams,
            tls: self.upstream_tls.clone(),
            host: self.host_told,
            bounds: self.bounds.clone(),
            trust: self.desk.believed.clone(),
            metrics: self.desk.metrics.upstream.clone(),
            clock: Arc::clone(&self.desk.clock),
        }
    }
}

impl<S> fmt::Debug for Gateway<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("upstreams", &self.upstreams)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// Days since the clock's epoch.
fn day(now: Time) -> u64 {
    const DAY: Duration = Duration::from_secs(86_400);
    now.as_nanos() / u64::try_from(DAY.as_nanos()).unwrap_or(u64::MAX)
}
