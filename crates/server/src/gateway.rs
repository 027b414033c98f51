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

use http::Request;
use tidegate::policy::OnePrivatePeer;
use tidegate::{Gate, LimitId, Store, Time};
use tidegate_http::{
    Ask, Asked, ByPolicies, Dialects, Later, LimitLayer, RequestAttributes, Sight, peer_in_extensions,
};
use tower_layer::Layer as _;

use crate::metrics::{LimitName, Metrics};
use crate::{Admin, Bounds, Clock, Drain, Jokes, Proxy, ProxySetup, Setup, StoreLevel, Trust, Upstream, run};

/// Whom to tell what an operator should know.
pub type Notice = Arc<dyn Fn(&str) + Send + Sync>;

/// What a gateway is made of.
pub struct GatewaySetup<S> {
    /// What decides.
    pub gate: Gate<S>,
    /// How it stands with the gate's store, for the metrics.
    pub level: fn(&S) -> StoreLevel,
    /// What measures how long things take, and tells the day of a joke.
    pub clock: Clock,
    /// Where allowed requests go; to the built-in API if there is none.
    pub upstream: Option<Upstream>,
    /// How much is taken and passed on.
    pub bounds: Bounds,
    /// What clients are told about limits.
    pub dialects: Dialects,
    /// Told once, if all traffic comes from one private peer while nothing is trusted.
    pub notice: Notice,
}

/// A reverse proxy behind limits, with its admin face.
pub struct Gateway<S> {
    trust: Trust,
    upstream: Option<Upstream>,
    bounds: Bounds,
    clock: Clock,
    metrics: Arc<Metrics>,
    layer: LimitLayer<Observed<S>>,
}

impl<S: Store + 'static> Gateway<S> {
    /// A gateway that serves as soon as it is run.
    #[must_use]
    pub fn new(setup: GatewaySetup<S>) -> Self {
        let GatewaySetup { gate, level, clock, upstream, bounds, dialects, notice } = setup;
        let gate = Arc::new(gate);
        let (names, ids) = limits(&gate);
        let metrics = Metrics::new(&names).with_store({
            let gate = Arc::clone(&gate);
            move || level(gate.store())
        });
        let metrics = Arc::new(metrics);
        let counted = Arc::clone(&metrics);
        let trust = gate.policies().client().trust.clone();
        let layer = LimitLayer::by_policies(gate).innermost();
        let layer = layer.watch(move |sight| count(&counted, &ids, sight));
        let observed = Observed {
            ask: layer.into_ask(),
            clock: Arc::clone(&clock),
            metrics: Arc::clone(&metrics),
            one_private_peer: Arc::new(OnePrivatePeer::new(&trust)),
            notice,
        };
        Self { trust, upstream, bounds, clock, metrics, layer: LimitLayer::asking(observed).dialects(dialects) }
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Serves clients on `listeners`, one worker each, and operators on `admin`, until `drain` starts and the workers
    /// have drained. The admin face serves until then.
    ///
    /// # Errors
    /// A thread or a runtime cannot be started, or a listener cannot be waited for.
    pub fn run(&self, listeners: Vec<TcpListener>, admin: Option<TcpListener>, drain: &Drain) -> io::Result<()> {
        let drained = Drain::new();
        thread::scope(|scope| {
            let admin = admin.map(|listener| {
                let face = Admin::new(Arc::clone(&self.metrics), drain.clone());
                let (setup, drained) = (Setup { bounds: Bounds::admin(), ..Setup::default() }, drained.clone());
                scope.spawn(move || run(vec![listener], || face.clone(), &setup, &drained))
            });
            let served = self.serve(listeners, drain);
            drained.start();
            let admin = admin.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the admin face panicked")))
            });
            served.and(admin)
        })
    }

    fn serve(&self, listeners: Vec<TcpListener>, drain: &Drain) -> io::Result<()> {
        let setup = Setup { bounds: self.bounds.clone(), connections: self.metrics.connections.clone() };
        match self.upstream.clone() {
            Some(upstream) => {
                let proxy = || Proxy::new(self.proxy(upstream.clone()));
                run(listeners, || self.layer.layer(proxy()), &setup, drain)
            }
            None => {
                let clock = Arc::clone(&self.clock);
                let jokes = Jokes::new(move || day(clock()));
                run(listeners, || self.layer.layer(jokes.clone()), &setup, drain)
            }
        }
    }

    fn proxy(&self, upstream: Upstream) -> ProxySetup {
        ProxySetup {
            upstream,
            bounds: self.bounds.clone(),
            trust: self.trust.clone(),
            metrics: self.metrics.upstream.clone(),
            clock: Arc::clone(&self.clock),
        }
    }
}

impl<S> fmt::Debug for Gateway<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("upstream", &self.upstream)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// The gate, asked and observed: how long it took, and whether everybody seems to be one peer.
struct Observed<S> {
    ask: ByPolicies<S>,
    clock: Clock,
    metrics: Arc<Metrics>,
    one_private_peer: Arc<OnePrivatePeer>,
    notice: Notice,
}

impl<S> Clone for Observed<S> {
    fn clone(&self) -> Self {
        Self {
            ask: self.ask.clone(),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            one_private_peer: Arc::clone(&self.one_private_peer),
            notice: Arc::clone(&self.notice),
        }
    }
}

impl<S: Store + 'static, B> Ask<B> for Observed<S> {
    fn ask(&self, request: &Request<B>) -> Asked {
        if !self.one_private_peer.is_settled() {
            let attributes = RequestAttributes::new(request, peer_in_extensions(request.extensions()));
            self.one_private_peer.look(&attributes).iter().for_each(|text| (self.notice)(text));
        }
        let asked_at = (self.clock)();
        match self.ask.ask(request) {
            Asked::Now(ruled) => {
                self.metrics.decision.observe((self.clock)().since(asked_at));
                Asked::Now(ruled)
            }
            Asked::Later(later) => Asked::Later(self.timed(later, asked_at)),
        }
    }
}

impl<S> Observed<S> {
    fn timed(&self, later: Later, asked_at: Time) -> Later {
        let (clock, metrics, waiting) =
            (Arc::clone(&self.clock), Arc::clone(&self.metrics), self.metrics.store.waiting());
        Box::pin(async move {
            let ruled = later.await;
            let wait = clock().since(asked_at);
            metrics.decision.observe(wait);
            waiting.ruled_after(wait);
            ruled
        })
    }
}

/// The limits of all policies, by name and by identity, in one order.
fn limits<S: Store>(gate: &Gate<S>) -> (Vec<LimitName>, Vec<LimitId>) {
    let policies = gate.policies().as_slice().iter();
    let limits = policies.flat_map(|policy| policy.limits().iter().map(move |limit| (policy, limit)));
    limits
        .map(|(policy, limit)| {
            let (policy, name) = (policy.name().to_owned(), limit.name.clone());
            (LimitName { policy, limit: name, mode: limit.mode }, limit.id)
        })
        .unzip()
}

fn count(metrics: &Metrics, ids: &[LimitId], sight: &Sight<'_>) {
    for (place, _, decision) in sight.charges() {
        let limit = ids.iter().position(|id| *id == place.limit.id).and_then(|at| metrics.limit(at));
        if let Some(limit) = limit {
            limit.count(decision.outcome());
        }
    }
    if let Some(answer) = &sight.answer {
        metrics.store.answered(answer.source);
    }
    if !sight.is_matched {
        metrics.unmatched.inc();
    } else if sight.answer.is_some_and(|answer| !answer.is_allowed()) {
        metrics.denied.inc();
    }
}

/// Days since the clock's epoch.
fn day(now: Time) -> u64 {
    const DAY: Duration = Duration::from_secs(86_400);
    now.as_nanos() / u64::try_from(DAY.as_nanos()).unwrap_or(u64::MAX)
}
