//! The way to the upstream: connect or reuse, send, wait for the answer.
//!
//! A request is sent a second time only where that cannot do harm: it never left, or it has no body, its method is
//! idempotent (RFC 9110, section 9.2.2) and a connection that had been idle was closed under it (RFC 9112, section
//! 9.3.1).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::uri::Authority;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::patience::Patient;
use crate::pool::{Lease, Pool, Wire};
use crate::upload::{Pace, Upload};
use crate::{Bounds, Upstream, UpstreamBounds};

/// One worker's way to the upstream.
pub(crate) struct Route {
    pub(crate) upstream: Upstream,
    bounds: UpstreamBounds,
    /// For which a client may owe a piece of its body.
    client_stall: Duration,
    http: http1::Builder,
    pool: Arc<Pool>,
}

impl Route {
    pub(crate) fn new(upstream: Upstream, bounds: &Bounds) -> Self {
        let mut http = http1::Builder::new();
        http.max_buf_size(bounds.header_bytes())
            .max_header_size(bounds.header_bytes())
            .max_headers(bounds.header_fields_max);
        let pool = Pool::new(bounds.upstream.idle_max, bounds.upstream.idle_timeout);
        Self { upstream, bounds: bounds.upstream.clone(), client_stall: bounds.stall_timeout, http, pool }
    }

    /// Sends `request`, whose body comes at `pace`; the answer's header section is what comes of it.
    pub(crate) fn send(
        self: &Arc<Self>,
        request: Request<Upload>,
        pace: Option<Arc<Pace>>,
    ) -> Exchange<impl Future<Output = Tried> + Send + use<>> {
        let route = Arc::clone(self);
        let way = match self.pool.take() {
            Some(mut lease) => {
                let copy = copy(&request).map(Box::new);
                let answer = self.patient(lease.sender().try_send_request(request), pace.clone());
                Way::Reused { answer, lease: Some(lease), copy }
            }
            None => Way::fresh(&route, request, pace.clone()),
        };
        Exchange { route, pace, way }
    }

    fn patient<F>(&self, answer: F, pace: Option<Arc<Pace>>) -> Patient<F> {
        Patient::new(answer, pace, self.bounds.answer_timeout, self.client_stall)
    }

    /// Sends `request` on a connection of its own.
    async fn send_fresh(&self, request: Request<Upload>, pace: Option<Arc<Pace>>) -> Outcome {
        let mut lease = self.connect().await?;
        let sent = lease.sender().try_send_request(request);
        match self.patient(sent, pace).await? {
            Ok(answer) => Ok((answer, lease)),
            Err(error) => Err(Failure::of(error.error())),
        }
    }

    async fn connect(&self) -> Result<Lease, Failure> {
        let connected = timeout(self.bounds.connect_timeout, open(self.upstream.authority())).await;
        let socket = connected.map_err(|_| Failure::ConnectTimeout)?.map_err(Failure::Connect)?;
        let (sender, connection) =
            self.http.handshake(TokioIo::new(socket)).await.map_err(|error| Failure::of(&error))?;
        // Its end is seen by who uses it.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(self.pool.lease(Wire::new(sender, task.abort_handle())))
    }
}

async fn open(authority: &Authority) -> io::Result<TcpStream> {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(80);
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A connection's answer to a request, or the request itself if it never left.
type Tried = Result<Response<Incoming>, TrySendError<Request<Upload>>>;

/// What comes of an exchange.
pub(crate) type Outcome = Result<(Response<Incoming>, Lease), Failure>;

pin_project! {
    /// A request on its way. It is a future of few bytes, since each request makes one.
    pub(crate) struct Exchange<F> {
        route: Arc<Route>,
        pace: Option<Arc<Pace>>,
        #[pin]
        way: Way<F>,
    }
}

pin_project! {
    #[project = WayView]
    enum Way<F> {
        /// On a connection that had been idle.
        Reused { #[pin] answer: Patient<F>, lease: Option<Lease>, copy: Option<Box<Request<Upload>>> },
        /// On a new one.
        Fresh { outcome: Pin<Box<dyn Future<Output = Outcome> + Send>> },
    }
}

impl<F> Way<F> {
    fn fresh(route: &Arc<Route>, request: Request<Upload>, pace: Option<Arc<Pace>>) -> Self {
        let route = Arc::clone(route);
        Self::Fresh { outcome: Box::pin(async move { route.send_fresh(request, pace).await }) }
    }
}

impl<F: Future<Output = Tried>> Future for Exchange<F> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut this = self.project();
        let again = match this.way.as_mut().project() {
            WayView::Fresh { outcome } => return outcome.as_mut().poll(cx),
            WayView::Reused { answer, lease, copy } => match ready!(answer.poll(cx))? {
                // It is there until the exchange has ended.
                Ok(answer) => return Poll::Ready(lease.take().map(|lease| (answer, lease)).ok_or(Failure::Closed)),
                Err(mut error) => {
                    let failure = Failure::of(error.error());
                    match error.take_message().or_else(|| copy.take().map(|copy| *copy)) {
                        Some(again) if matches!(failure, Failure::Closed) => again,
                        _ => return Poll::Ready(Err(failure)),
                    }
                }
            },
        };
        this.way.set(Way::fresh(this.route, again, this.pace.clone()));
        match this.way.project() {
            WayView::Fresh { outcome } => outcome.as_mut().poll(cx),
            WayView::Reused { .. } => Poll::Ready(Err(Failure::Closed)),
        }
    }
}

/// The same request again, if sending it twice does no harm.
fn copy(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.method().is_idempotent() || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(Upload::none());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}
