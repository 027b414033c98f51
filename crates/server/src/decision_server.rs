//! The decision server: no traffic passes through it. Who needs a decision asks for it, in a protocol that is spoken
//! already, and acts on the answer.
//!
//! All faces ask the same desk: one store, one set of policies, one place to look at.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use tidegate_core::{Handling, Mode, Store};

use crate::api::{self, BroughtMetrics};
use crate::client::workers::run_each;
use crate::desk::{Desk, DeskSetup};
use crate::envoy::{RateLimitSetup, RateLimits};
use crate::grpc::{Grpc, GrpcSetup};
use crate::resp::{self, Resp, RespSetup};
use crate::{Api, ApiSetup, Drain, LimitName, LimitSet, Listener};

/// What a decision server is made of.
pub struct DecisionSetup<S> {
    /// What decides, and who watches.
    pub desk: DeskSetup<S>,
    /// What limits that callers bring want of their store.
    pub handling: Handling,
    /// The face that speaks HTTP.
    pub http: ApiSetup,
    /// The face that speaks gRPC.
    pub grpc: GrpcSetup,
    /// How Envoy's rate limit service answers.
    pub rate_limits: RateLimitSetup,
    /// The face that speaks the Redis protocol.
    pub resp: RespSetup,
}

/// Where clients of each protocol connect; nowhere if there is no listener.
#[derive(Debug, Default)]
pub struct FaceListeners {
    /// HTTP.
    pub http: Vec<Listener>,
    /// gRPC.
    pub grpc: Vec<Listener>,
    /// The Redis protocol.
    pub resp: Vec<Listener>,
}

/// A decision server, with its admin face.
pub struct DecisionServer<S> {
    desk: Arc<Desk<S>>,
    api: Api<S>,
    grpc: Grpc<S>,
    resp: Resp<S>,
    /// The counters of limits that callers bring are there for as long as the server is.
    _brought: LimitSet,
}

impl<S: Store + 'static> DecisionServer<S> {
    /// A server that serves as soon as it is run.
    #[must_use]
    pub fn new(setup: DecisionSetup<S>) -> Self {
        let DecisionSetup { desk, handling, http, grpc, rate_limits, resp } = setup;
        let desk = Arc::new(Desk::new(desk));
        let brought = desk.metrics.limit_set();
        let name = |(policy, limit): (&str, &str), mode| LimitName {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            mode,
            on_failure: handling.on_failure,
        };
        let names = [name(resp::LIMIT, Mode::Enforce), name(api::LIMIT, Mode::Enforce), name(api::LIMIT, Mode::Shadow)];
        // As many counters as names, in their order.
        let mut counters = brought.replace(&names).into_iter();
        let mut next = || counters.next().unwrap_or_default();
        let (throttled, checked) = (next(), BroughtMetrics { enforced: next(), shadow: next() });
        let resp = RespSetup { connections: desk.metrics.connections.clone(), handling, ..resp };
        let (counted, denied) = (desk.metrics.resp.clone(), desk.denied().cloned());
        let resp = Resp::counting(Arc::clone(&desk.store), resp, counted, throttled, denied);
        let rate_limits = Arc::new(RateLimits::new(Arc::clone(&desk), rate_limits));
        let api = Api::new(Arc::clone(&desk), Arc::clone(&rate_limits), http, handling, checked);
        let grpc = Grpc::new(Arc::clone(&desk), rate_limits, grpc);
        Self { desk, api, grpc, resp, _brought: brought }
    }

    /// The policies and all else that is in force, for those who watch it or put others in force.
    #[must_use]
    pub fn desk(&self) -> &Arc<Desk<S>> {
        &self.desk
    }

    /// Serves clients on the listeners of each worker, and operators on `admin`, until `drain` starts and the workers have
    /// drained. The admin face serves until then.
    ///
    /// # Errors
    /// A thread or a runtime cannot be started, or a listener cannot be waited for.
    pub fn run(&self, workers: Vec<FaceListeners>, admin: Option<TcpListener>, drain: &Drain) -> io::Result<()> {
        self.desk.attended(admin, drain, || run_each(workers, |listeners| self.serve(listeners, drain), drain))
    }

    /// Serves what one worker listens on. One face that cannot serve ends the others.
    async fn serve(&self, listeners: FaceListeners, drain: &Drain) -> io::Result<()> {
        let FaceListeners { http, grpc, resp } = listeners;
        tokio::try_join!(
            self.api.serve(http, drain.started()),
            self.grpc.serve(grpc, drain.started()),
            self.resp.serve(resp, drain.started())
        )?;
        Ok(())
    }
}

impl<S> fmt::Debug for DecisionServer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionServer").field("resp", &self.resp).finish_non_exhaustive()
    }
}
