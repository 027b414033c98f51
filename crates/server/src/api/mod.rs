//! The face that speaks HTTP: who has no protocol of its own to ask in asks here.
//!
//! `routes` says what there is, each in a file of its own.

mod forward_auth;
mod routes;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use hyper::body::Incoming;
use tidegate_core::Store;
use tidegate_http::Dialects;
use tower_service::Service;

use self::forward_auth::ForwardAuth;
use crate::client::serve::serve_all;
use crate::desk::Desk;
use crate::envoy::RateLimits;
use crate::{Answer, Bounds, Entrance, Listener, Setup};

/// What the face is set up with.
#[derive(Clone, Debug, Default)]
pub struct ApiSetup {
    /// How much it takes, and for how long it waits.
    pub bounds: Bounds,
    /// How clients come in.
    pub entrance: Entrance,
    /// What clients are told about limits, in fields.
    pub dialects: Dialects,
}

/// Answers over HTTP by the decisions of a desk. Clones are the same face.
pub struct Api<S>(Arc<Face<S>>);

pub(crate) struct Face<S> {
    desk: Arc<Desk<S>>,
    rate_limits: Arc<RateLimits<S>>,
    setup: ApiSetup,
    forward_auth: ForwardAuth<S>,
}

impl<S: Store + 'static> Api<S> {
    pub(crate) fn new(desk: Arc<Desk<S>>, rate_limits: Arc<RateLimits<S>>, setup: ApiSetup) -> Self {
        let forward_auth = ForwardAuth::new(&desk.in_force, setup.dialects);
        Self(Arc::new(Face { desk, rate_limits, setup, forward_auth }))
    }

    /// Serves clients on these listeners until `shutdown` is ready; then requests in flight end.
    pub(crate) async fn serve(&self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Face { desk, setup, .. } = &*self.0;
        let setup = Setup {
            bounds: setup.bounds.clone(),
            entrance: Entrance { trust: desk.believed.clone(), ..setup.entrance.clone() },
            connections: desk.metrics.connections.clone(),
        };
        serve_all(listeners, desk.recorded(self.clone()), setup, shutdown).await
    }
}

impl<S: Store + 'static> Service<Request<Incoming>> for Api<S> {
    type Response = http::Response<crate::ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answer {
        let face = Arc::clone(&self.0);
        Box::pin(async move { Ok(routes::answer(&face, request).await) })
    }
}

impl<S> Clone for Api<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Api<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("setup", &self.0.setup).finish_non_exhaustive()
    }
}
