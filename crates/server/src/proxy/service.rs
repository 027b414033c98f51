//! The reverse proxy: a service that passes each request on to its upstream.

use std::convert::Infallible;
use std::fmt;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{CONTENT_LENGTH, HOST};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tidegate_core::Time;
use tidegate_policy::Client;
use tower_service::Service;

use crate::proxy::forward::{self, Refusal};
use crate::proxy::manner::Manner;
use crate::telling::record::Noted;
use crate::upstream::exchange::Outcome;
use crate::upstream::failure::Failure;
use crate::upstream::line::Line;
use crate::upstream::route::Route;
use crate::upstream::tunnel::Tunnel;
use crate::upstream::upgrade::{self, Upgrade};
use crate::upstream::upload::{Pace, Upload};
use crate::{Believed, Bounds, HostTold, Peer, ProxyBody, UpstreamMetrics, UpstreamTls, Upstreams};

/// Tells the present time; only for measuring how long things take.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// A future that answers.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, Infallible>> + Send>>;

/// What a proxy needs to know.
#[derive(Clone)]
pub struct ProxySetup {
    /// Where requests go.
    pub upstreams: Upstreams,
    /// Which upstreams over TLS are trusted; none if it is not there.
    pub tls: Option<UpstreamTls>,
    /// Which host they are told.
    pub host: HostTold,
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
            .field("upstreams", &self.upstreams)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// The reverse proxy of one worker. Clones share its connections to the upstreams.
///
/// It does not limit; a layer around it does, and what the layer denies never gets here.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    upstreams: Upstreams,
    /// The ways to them, in their order.
    routes: Vec<Arc<Route>>,
    host: HostTold,
    bounds: Bounds,
    trust: Believed,
    metrics: UpstreamMetrics,
    clock: Clock,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.0.upstreams).finish()
    }
}

impl Proxy {
    /// A proxy with connection pools of its own. Make one per worker.
    #[must_use]
    pub fn new(setup: ProxySetup) -> Self {
        let ProxySetup { upstreams, tls, host, bounds, trust, metrics, clock } = setup;
        let mut routes: Vec<Arc<Route>> = Vec::new();
        for destination in upstreams.as_slice() {
            // One upstream has one way, whatever leads there.
            let known = routes.iter().find(|route| route.upstream == *destination.upstream()).cloned();
            let new = || Arc::new(Route::new(destination.upstream().clone(), tls.clone(), &bounds));
            routes.push(known.unwrap_or_else(new));
        }
        Self(Arc::new(Inner { upstreams, routes, host, bounds, trust, metrics, clock }))
    }
}

/// Whoever calls the proxy without [`crate::serve`] has to put the [`Peer`] there.
const PEER_UNKNOWN: Refusal =
    Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, detail: "the request does not say who its peer is" };

const NO_UPSTREAM: Refusal =
    Refusal { status: StatusCode::NOT_FOUND, detail: "no upstream is there for this host and path" };

const TARGET_TOO_LONG: Refusal =
    Refusal { status: StatusCode::URI_TOO_LONG, detail: "the request's target is too long" };

/// A request that is to be passed on.
struct Admitted {
    request: Request<Upload>,
    pace: Option<Arc<Pace>>,
    route: Arc<Route>,
    upgrade: Option<Upgrade>,
}

impl Inner {
    /// The request as the upstream gets it.
    fn admit(&self, mut request: Request<Incoming>) -> Result<Admitted, Refusal> {
        let upgrade = Upgrade::asked_by(&mut request);
        let (mut parts, body) = request.into_parts();
        if parts.uri.path_and_query().is_some_and(|target| target.as_str().len() > self.bounds.target_bytes_max) {
            return Err(TARGET_TOO_LONG);
        }
        let peer = Client::from(*parts.extensions.get::<Peer>().ok_or(PEER_UNKNOWN)?);
        let trusted = self.trust.believes(peer);
        forward::settle_host(&mut parts, self.routes.first().ok_or(NO_UPSTREAM)?.upstream.host())?;
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let chosen = self.upstreams.choose(host, parts.uri.path()).ok_or(NO_UPSTREAM)?;
        let route = Arc::clone(self.routes.get(chosen).ok_or(NO_UPSTREAM)?);
        forward::request(&mut parts, !body.is_end_stream(), peer, trusted, &route.upstream)?;
        if self.host == HostTold::Upstream {
            parts.headers.insert(HOST, route.upstream.host().clone());
        }
        if let Some(upgrade) = &upgrade {
            upgrade.ask(&mut parts.headers);
        }
        let (upload, pace) = Upload::new(body);
        Ok(Admitted { request: Request::from_parts(parts, upload), pace, route, upgrade })
    }

    fn answer(&self, passing: &Passing, outcome: Outcome) -> Response<ProxyBody> {
        match outcome {
            Ok((answer, _)) if answer.status().is_informational() => self.unanswered(passing, &Failure::Malformed),
            Ok((answer, line)) => {
                self.answered(passing, answer.status());
                let stall_timeout = passing.manner.stall_timeout(answer.headers());
                let pace = passing.pace.clone();
                let mut answer = answer.map(|body| ProxyBody::passing(body, line, pace, stall_timeout));
                forward::response(answer.headers_mut());
                *answer.version_mut() = Version::HTTP_11;
                answer
            }
            Err(failure) => self.unanswered(passing, &failure),
        }
    }

    fn answered(&self, passing: &Passing, status: StatusCode) {
        let took = (self.clock)().since(passing.sent_at);
        self.metrics.answered(status, took);
        passing.noted.iter().for_each(|noted| noted.upstream_took(took));
    }

    fn unanswered(&self, passing: &Passing, failure: &Failure) -> Response<ProxyBody> {
        if let Some(reason) = failure.reason() {
            self.metrics.failed(reason);
        }
        let (status, detail) = failure.told(&passing.route.upstream);
        passing.manner.failed(status, &detail)
    }

    /// Passes on a request that asks for an upgrade.
    async fn upgrade(&self, passing: Passing, request: Request<Upload>, upgrade: Upgrade) -> Response<ProxyBody> {
        let (mut answer, lease) = match passing.route.send_upgradable(request, passing.manner.patience).await {
            Ok((answer, lease)) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => (answer, lease),
            Ok((answer, lease)) => return self.answer(&passing, Ok((answer, Line::Own(lease)))),
            Err(failure) => return self.unanswered(&passing, &failure),
        };
        let Some(protocol) = upgrade.agreed(answer.headers()).cloned() else {
            return self.unanswered(&passing, &Failure::Unasked);
        };
        self.answered(&passing, answer.status());
        let upstream = hyper::upgrade::on(&mut answer);
        let (idle_timeout, open) = (passing.manner.stream_timeout(), self.metrics.upgraded.clone());
        tokio::spawn(Tunnel { client: upgrade.client, upstream, lease, idle_timeout, open }.run());
        let mut answer = answer.map(|_| ProxyBody::default());
        forward::response(answer.headers_mut());
        answer.headers_mut().remove(CONTENT_LENGTH);
        upgrade::agree(answer.headers_mut(), protocol);
        answer
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
        let manner = Manner::of(request.headers(), &self.0.bounds);
        let noted = request.extensions().get::<Noted>().cloned();
        let Admitted { request, pace, route, upgrade } = match self.0.admit(request) {
            Ok(admitted) => admitted,
            Err(refusal) => return Box::pin(future::ready(Ok(manner.failed(refusal.status, refusal.detail)))),
        };
        let (proxy, sent_at) = (Arc::clone(&self.0), (self.0.clock)());
        let passing = Passing { route, pace, manner, sent_at, noted };
        match upgrade {
            Some(upgrade) => Box::pin(async move { Ok(proxy.upgrade(passing, request, upgrade).await) }),
            None => {
                let exchange = passing.route.send(request, passing.pace.clone(), manner.patience);
                Box::pin(Passage { exchange, proxy, passing })
            }
        }
    }
}

/// What is known of a request that is passed on.
struct Passing {
    route: Arc<Route>,
    pace: Option<Arc<Pace>>,
    manner: Manner,
    sent_at: Time,
    /// Where somebody wants to know how long it takes.
    noted: Option<Noted>,
}

pin_project! {
    /// A request that is passed on, up to the answer.
    struct Passage<E> {
        #[pin]
        exchange: E,
        proxy: Arc<Inner>,
        passing: Passing,
    }
}

impl<E: Future<Output = Outcome>> Future for Passage<E> {
    type Output = Result<Response<ProxyBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let outcome = ready!(this.exchange.poll(cx));
        Poll::Ready(Ok(this.proxy.answer(this.passing, outcome)))
    }
}
