//! The reverse proxy: a service that passes each request on to an upstream.

use std::convert::Infallible;
use std::fmt;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tidegate_core::Time;
use tidegate_policy::Client;
use tower_service::Service;

use crate::failure::Failure;
use crate::forward::{self, Refusal};
use crate::problem::problem;
use crate::route::{Outcome, Route};
use crate::upload::Upload;
use crate::{Believed, Bounds, Peer, ProxyBody, Upstream, UpstreamMetrics};

/// Tells the present time; only for measuring how long things take.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// A future that answers.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, Infallible>> + Send>>;

/// What a proxy needs to know.
#[derive(Clone)]
pub struct ProxySetup {
    /// Where requests go.
    pub upstream: Upstream,
    /// How much is passed on, and how long is waited.
    pub bounds: Bounds,
    /// The peers whose `X-Forwarded-*` fields are believed.
    pub trust: Believed,
    /// Where responses are counted.
    pub metrics: UpstreamMetrics,
    /// What measures them.
    pub clock: Clock,
}

impl fmt::Debug for ProxySetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySetup")
            .field("upstream", &self.upstream)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// The reverse proxy of one worker. Clones share its connections to the upstream.
///
/// It does not limit; a layer around it does, and what the layer denies never gets here.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    route: Arc<Route>,
    target_bytes_max: usize,
    stall_timeout: Duration,
    trust: Believed,
    metrics: UpstreamMetrics,
    clock: Clock,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.0.route.upstream).finish()
    }
}

impl Proxy {
    /// A proxy with a connection pool of its own. Make one per worker.
    #[must_use]
    pub fn new(setup: ProxySetup) -> Self {
        Self(Arc::new(Inner {
            route: Arc::new(Route::new(setup.upstream, &setup.bounds)),
            target_bytes_max: setup.bounds.target_bytes_max,
            stall_timeout: setup.bounds.upstream.stall_timeout,
            trust: setup.trust,
            metrics: setup.metrics,
            clock: setup.clock,
        }))
    }
}

/// Whoever calls the proxy without [`crate::serve`] has to put the [`Peer`] there.
const PEER_UNKNOWN: Refusal =
    Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, detail: "the request does not say who its peer is" };

impl Inner {
    /// The request as the upstream gets it.
    fn admit(&self, request: Request<Incoming>) -> Result<Request<Incoming>, Refusal> {
        let (mut parts, body) = request.into_parts();
        if parts.uri.path_and_query().is_some_and(|target| target.as_str().len() > self.target_bytes_max) {
            return Err(Refusal { status: StatusCode::URI_TOO_LONG, detail: "the request's target is too long" });
        }
        let peer = Client::from(*parts.extensions.get::<Peer>().ok_or(PEER_UNKNOWN)?);
        let trusted = self.trust.believes(peer);
        forward::request(&mut parts, !body.is_end_stream(), peer, trusted, &self.route.upstream)?;
        Ok(Request::from_parts(parts, body))
    }

    fn answer(&self, outcome: Outcome, sent_at: Time) -> Response<ProxyBody> {
        match outcome {
            Ok((answer, _)) if answer.status().is_informational() => self.unanswered(&Failure::Malformed),
            Ok((answer, lease)) => {
                self.metrics.answered(answer.status(), (self.clock)().since(sent_at));
                let mut answer = answer.map(|body| ProxyBody::passing(body, lease, self.stall_timeout));
                forward::response(answer.headers_mut());
                *answer.version_mut() = Version::HTTP_11;
                answer
            }
            Err(failure) => self.unanswered(&failure),
        }
    }

    fn unanswered(&self, failure: &Failure) -> Response<ProxyBody> {
        if let Some(reason) = failure.reason() {
            self.metrics.failed(reason);
        }
        let (status, detail) = failure.told(&self.route.upstream);
        problem(status, &detail)
    }
}

impl Service<Request<Incoming>> for Proxy {
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answer {
        match self.0.admit(request) {
            Ok(request) => {
                let (parts, body) = request.into_parts();
                let (upload, pace) = Upload::new(body);
                let sent_at = (self.0.clock)();
                let exchange = self.0.route.send(Request::from_parts(parts, upload), pace);
                Box::pin(Passage { exchange, proxy: Arc::clone(&self.0), sent_at })
            }
            Err(refusal) => Box::pin(future::ready(Ok(problem(refusal.status, refusal.detail)))),
        }
    }
}

pin_project! {
    /// A request that is passed on, up to the answer.
    struct Passage<E> {
        #[pin]
        exchange: E,
        proxy: Arc<Inner>,
        sent_at: Time,
    }
}

impl<E: Future<Output = Outcome>> Future for Passage<E> {
    type Output = Result<Response<ProxyBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.exchange.poll(cx));
        Poll::Ready(Ok(this.proxy.answer(outcome, *this.sent_at)))
    }
}
