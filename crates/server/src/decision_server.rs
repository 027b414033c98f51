//! The decision server: no traffic passes through it. Who needs a decision asks for it, in a protocol that is spoken
//! already, and acts on the answer.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use tidegate_core::{Handling, Mode, Store};

use crate::client::workers::run_each;
use crate::operating::admin::AdminToken;
use crate::resp::{self, Resp, RespSetup};
use crate::{Admin, Bounds, Drain, LimitName, Listener, Metrics, Setup, StoreLevel, run};

/// What a decision server is made of.
pub struct DecisionSetup<S> {
    /// Where buckets are.
    pub store: S,
    /// How it stands with it, for the metrics.
    pub level: fn(&S) -> StoreLevel,
    /// What limits want of their store.
    pub handling: Handling,
    /// The face that speaks the Redis protocol.
    pub resp: RespSetup,
    /// What operators must show, if anything.
    pub token: Option<AdminToken>,
}

/// A decision server, with its admin face.
pub struct DecisionServer<S> {
    resp: Resp<S>,
    metrics: Arc<Metrics>,
    token: Option<AdminToken>,
}

impl<S: Store + 'static> DecisionServer<S> {
    /// A server that serves as soon as it is run.
    #[must_use]
    pub fn new(setup: DecisionSetup<S>) -> Self {
        let DecisionSetup { store, level, handling, resp, token } = setup;
        let store = Arc::new(store);
        let seen = Arc::clone(&store);
        let (policy, limit) = resp::LIMIT;
        let name = LimitName {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            mode: Mode::Enforce,
            on_failure: handling.on_failure,
        };
        let metrics = Arc::new(Metrics::new(&[]).with_store(move || level(&seen)));
        let decisions = metrics.replace_limits(&[name]).swap_remove(0);
        let resp = RespSetup { connections: metrics.connections.clone(), handling, ..resp };
        Self { resp: Resp::new(store, resp, metrics.resp.clone(), decisions), metrics, token }
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
            let admin = admin.map(|listener| {
                let face = Admin::new(Arc::clone(&self.metrics), drain.clone()).with_token(self.token.clone());
                let (setup, drained) = (Setup { bounds: Bounds::admin(), ..Setup::default() }, drained.clone());
                scope.spawn(move || run(vec![vec![listener.into()]], || face.clone(), &setup, &drained))
            });
            let served = run_each(listeners, |listeners| self.resp.serve(listeners, drain.started()), drain);
            drained.start();
            let admin = admin.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the admin face panicked")))
            });
            served.and(admin)
        })
    }
}

impl<S> fmt::Debug for DecisionServer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionServer").field("resp", &self.resp).finish_non_exhaustive()
    }
}
