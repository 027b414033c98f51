//! The limited proxy: the tower layer around [`Proxy`] or [`Jokes`], counted, on all workers.
//!
//! This is where the parts meet. The layer asks the gate, and what it denies never gets further; what it lets pass goes
//! to the upstream, or to the built-in API if there is none.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate::policy::Policies;
use tidegate::{Gate, Store, Time};
use tidegate_http::{Cors, Dialects, LimitLayer};
use tidegate_policy::KeySalt;
use tower_layer::Layer as _;

use crate::operating::admin::{Operator, Origin};
use crate::operating::denied::Denied;
use crate::operating::in_force::Observed;
use crate::telling::metrics::Metrics;
use crate::telling::record::{Recorded, Recorder};
use crate::telling::told::Told;
use crate::{
    Admin, AdminToken, Believed, Bounds, Clock, Drain, Entrance, HostTold, Jokes, Listener, LogFormat, LogTarget,
    OperationSetup, OtlpEndpoint, Proxy, ProxySetup, Sample, Setup, StoreLevel, UpstreamTls, Upstreams, run,
};

/// Whom to tell what an operator should know.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// What a gateway is made of.
pub struct GatewaySetup<S> {
    /// What decides.
    pub gate: Gate<S>,
    /// How it stands with the gate's store, for the metrics.
    pub level: fn(&S) -> StoreLevel,
    /// What measures how long things take, and tells the day of a joke and the end of an override: the clock that the
    /// store decides by, if it is in this process.
    pub clock: Clock,
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
    /// What an operator can do.
    pub operation: OperationSetup<S>,
    /// Told once, if all traffic comes from one private peer while nothing is trusted, or if something is wrong with a
    /// log.
    pub notice: Notice,
    /// What hashes the keys that logs name.
    pub salt: KeySalt,
    /// Where each request is told of, if it is.
    pub access_log: Option<AccessLogSetup>,
    /// Where spans are sent, if they are.
    pub traces: Option<TraceSetup>,
}

/// Where each request is told of, and how.
#[derive(Debug)]
pub struct AccessLogSetup {
    /// What lines are written to.
    pub target: LogTarget,
    /// How they are written.
    pub format: LogFormat,
}

/// Where spans are sent, and of which requests.
#[derive(Clone, Debug)]
pub struct TraceSetup {
    /// The collector.
    pub endpoint: OtlpEndpoint,
    /// The share of the requests that is traced, of those that no peer who is believed has decided on.
    pub sample: Sample,
}

/// A reverse proxy behind limits, with its admin face.
pub struct Gateway<S> {
    believed: Believed,
    upstreams: Option<Upstreams>,
    upstream_tls: Option<UpstreamTls>,
    host_told: HostTold,
    entrance: Entrance,
    bounds: Bounds,
    clock: Clock,
    metrics: Arc<Metrics>,
    in_force: Observed<S>,
    layer: LimitLayer<Observed<S>>,
    told: Told,
    operator: Arc<Operator<S>>,
    token: Option<AdminToken>,
}

impl<S: Store + 'static> Gateway<S> {
    /// A gateway that serves as soon as it is run.
    #[must_use]
    pub fn new(setup: GatewaySetup<S>) -> Self {
        let GatewaySetup { gate, level, clock, upstreams, upstream_tls, host_told, bounds, dialects, .. } = setup;
        let GatewaySetup { cors, notice, salt, access_log, traces, operation, entrance, .. } = setup;
        let store = gate.shared_store();
        let seen = Arc::clone(&store);
        let metrics = Arc::new(Metrics::new(&[]).with_store(move || level(&seen)));
        let believed = Believed::from(gate.policies().client().trust.clone());
        let OperationSetup { is_up, takes, denied_keys, are_denied_hashed, token } = operation;
        let denied = (denied_keys > 0).then(|| Arc::new(Denied::new(denied_keys, are_denied_hashed, clock())));
        let (time, counters) = (Arc::clone(&clock), Arc::clone(&metrics));
        let in_force = Observed::new(gate, time, counters, denied.clone(), Arc::clone(&notice));
        let operator = Arc::new(Operator {
            in_force: in_force.clone(),
            store,
            is_up,
            takes,
            clock: Arc::clone(&clock),
            metrics: Arc::clone(&metrics),
            origin: ArcSwapOption::empty(),
            denied,
            salt: salt.clone(),
        });
        // Which preflights are counted, the policies say.
        let layer = LimitLayer::asking(in_force.clone()).count_preflights().dialects(dialects);
        let layer = match cors {
            Some(cors) => layer.cors(cors),
            None => layer,
        };
        let recorder = |log, tracer| Recorder {
            clock: Arc::clone(&clock),
            client: in_force.client_lookup(),
            salt: Arc::new(salt),
            log,
            tracer,
            believed: believed.clone(),
        };
        let told = Told::new(access_log, traces, &metrics, notice, recorder);
        let entrance = Entrance { trust: believed.clone(), ..entrance };
        Self {
            believed,
            upstreams,
            upstream_tls,
            host_told,
            entrance,
            bounds,
            clock,
            metrics,
            in_force,
            layer,
            told,
            operator,
            token,
        }
    }

    /// Calls `with` with the policies in force.
    pub fn with_policies<R>(&self, with: impl FnOnce(&Policies) -> R) -> R {
        self.in_force.with_policies(with)
    }

    /// Puts other policies in force. Requests that were asked about already end under the old ones, and what keys owe
    /// is kept under limits that go on ([`Policies::fresh_after`] says which do not).
    pub fn replace(&self, policies: Policies) {
        self.believed.replace(policies.client().trust.clone());
        self.in_force.replace(policies);
    }

    /// Opens the file of the access log anew, as who rotates logs may ask for. A file that was moved is left behind
    /// within a second anyway.
    pub fn reopen_logs(&self) {
        self.told.reopen_logs();
    }

    /// Says that the policies in force were read from this file now. An operator is told so.
    pub fn read_from(&self, file: &str) {
        let read_s = (self.clock)().since(Time::ZERO).as_secs();
        self.operator.origin.store(Some(Arc::new(Origin { file: file.to_owned(), read_s })));
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Serves clients on `listeners`, those of each worker, and operators on `admin`, until `drain` starts and the workers
    /// have drained. The admin face serves until then.
    ///
    /// # Errors
    /// A thread or a runtime cannot be started, or a listener cannot be waited for.
    pub fn run(&self, listeners: Vec<Vec<Listener>>, admin: Option<TcpListener>, drain: &Drain) -> io::Result<()> {
        let drained = Drain::new();
        thread::scope(|scope| {
            self.told.start(scope);
            let admin = admin.map(|listener| {
                let face = Admin::new(Arc::clone(&self.metrics), drain.clone());
                let operator: Arc<Operator<S>> = Arc::clone(&self.operator);
                let face = face.with_token(self.token.clone()).operated_by(operator);
                let (setup, drained) = (Setup { bounds: Bounds::admin(), ..Setup::default() }, drained.clone());
                scope.spawn(move || run(vec![vec![listener.into()]], || face.clone(), &setup, &drained))
            });
            let served = self.serve(listeners, drain);
            self.told.close();
            drained.start();
            let admin = admin.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the admin face panicked")))
            });
            served.and(admin)
        })
    }

    fn serve(&self, listeners: Vec<Vec<Listener>>, drain: &Drain) -> io::Result<()> {
        let setup = Setup {
            bounds: self.bounds.clone(),
            entrance: self.entrance.clone(),
            connections: self.metrics.connections.clone(),
        };
        match self.upstreams.clone() {
            Some(upstreams) => {
                let proxy = || Proxy::new(self.proxy(upstreams.clone()));
                run(listeners, || self.recorded(self.layer.layer(proxy())), &setup, drain)
            }
            None => {
                let clock = Arc::clone(&self.clock);
                let jokes = Jokes::new(move || day(clock()));
                run(listeners, || self.recorded(self.layer.layer(jokes.clone())), &setup, drain)
            }
        }
    }

    fn recorded<T>(&self, service: T) -> Recorded<T> {
        Recorded::new(service, self.metrics.statuses.clone(), self.told.recorder())
    }

    fn proxy(&self, upstreams: Upstreams) -> ProxySetup {
        ProxySetup {
            upstreams,
            tls: self.upstream_tls.clone(),
            host: self.host_told,
            bounds: self.bounds.clone(),
            trust: self.believed.clone(),
            metrics: self.metrics.upstream.clone(),
            clock: Arc::clone(&self.clock),
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
