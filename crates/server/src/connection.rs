//! One client's connection, from accept to close.
//!
//! hyper speaks HTTP; what is added here is time. One timer serves the whole connection and is set anew only when it
//! fires or when a header section comes in pieces, so that a request that arrives whole costs no timer at all.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1::{self, UpgradeableConnection};
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::called::Called;
use crate::progress::{Flight, Phase, Progress};
use crate::stream::Stream;
use crate::tether::Tether;
use crate::{Bounds, Drain, Peer};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// One of both sides closed it after the last answer.
    Closed,
    /// It broke: the client went away, or what it sent was not HTTP.
    Broken,
    /// The client took too long over a header section.
    TooSlow,
}

/// Serves the requests of one connection until it ends.
///
/// If a request upgrades it, it ends when whoever passes its bytes from then on has closed it.
pub(crate) async fn converse<S, B>(socket: TcpStream, peer: Peer, service: S, bounds: &Bounds, drain: &Drain) -> End
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let progress = Arc::new(Progress::new());
    let (tether, tethered) = Tether::new();
    let stream = Stream::new(socket, tethered, Arc::clone(&progress), bounds.stall_timeout);
    let service = Observed { service, peer, progress: Arc::clone(&progress) };
    let end = {
        let connection = pin!(http(bounds).serve_connection(stream, service).with_upgrades());
        let watchdog = pin!(Watchdog::new(progress, bounds));
        until_end(connection, watchdog, drain).await
    };
    if end == End::Closed {
        tether.gone().await;
    }
    end
}

async fn until_end<S, B>(
    mut connection: Pin<&mut UpgradeableConnection<Stream, Observed<S>>>,
    mut watchdog: Pin<&mut Watchdog>,
    drain: &Drain,
) -> End
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut draining = pin!(drain.started());
    // The task's waker stays the same, so it is enough to leave it with the switch once.
    let (mut listening, mut drained) = (false, false);
    poll_fn(|cx| {
        if !drained && (drain.has_started() || (!listening && draining.as_mut().poll(cx).is_ready())) {
            drained = true;
            connection.as_mut().graceful_shutdown();
        }
        listening = true;
        if let Poll::Ready(done) = connection.as_mut().poll(cx) {
            return Poll::Ready(if done.is_ok() { End::Closed } else { End::Broken });
        }
        match ready!(watchdog.as_mut().poll(cx)) {
            Bite::Slow => Poll::Ready(End::TooSlow),
            Bite::Idle => Poll::Ready(End::Closed),
        }
    })
    .await
}

fn http(bounds: &Bounds) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.max_buf_size(bounds.header_bytes())
        .max_header_size(bounds.header_bytes())
        .max_headers(bounds.header_fields_max)
        .header_read_timeout(None);
    http
}

/// What the watchdog found.
enum Bite {
    /// A header section that did not end in time.
    Slow,
    /// A connection that nobody uses.
    Idle,
}

pin_project! {
    struct Watchdog {
        progress: Arc<Progress>,
        header_timeout: Duration,
        idle_timeout: Duration,
        watched: (Phase, u32),
        #[pin]
        timer: Sleep,
        // The timer knows whom to wake.
        is_set: bool,
    }
}

impl Watchdog {
    fn new(progress: Arc<Progress>, bounds: &Bounds) -> Self {
        Self {
            watched: (Phase::Head, progress.requests()),
            progress,
            header_timeout: bounds.header_timeout,
            idle_timeout: bounds.idle_timeout,
            timer: sleep(bounds.header_timeout),
            is_set: false,
        }
    }

    /// Ready when the connection has to end. Call it whenever the connection is pending, from the same task.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Bite> {
        let mut this = self.project();
        let present = (this.progress.phase(), this.progress.requests());
        if present.0 == Phase::Head && *this.watched != present {
            *this.watched = present;
            this.timer.set(sleep(*this.header_timeout));
            *this.is_set = false;
        }
        loop {
            if *this.is_set && !this.timer.is_elapsed() {
                return Poll::Pending;
            }
            *this.is_set = true;
            ready!(this.timer.as_mut().poll(cx));
            match present.0 {
                Phase::Head => return Poll::Ready(Bite::Slow),
                Phase::Idle if *this.watched == present => return Poll::Ready(Bite::Idle),
                // Something happened since, or is happening; look again later.
                Phase::Idle | Phase::Busy | Phase::Upgraded => {
                    *this.watched = present;
                    this.timer.set(sleep(*this.idle_timeout));
                    *this.is_set = false;
                }
            }
        }
    }
}

/// The service of one connection: it adds the peer to each request and notes the progress.
struct Observed<S> {
    service: S,
    peer: Peer,
    progress: Arc<Progress>,
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Observed<S>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone,
{
    type Response = Response<InFlight<B>>;
    type Error = S::Error;
    type Future = Answering<S>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let flight = self.progress.request_came(!request.body().is_end_stream());
        request.extensions_mut().insert(self.peer);
        Answering { answer: Called::new(self.service.clone(), request), flight: Some(flight) }
    }
}

pin_project! {
    struct Answering<S>
    where
        S: Service<Request<Incoming>>,
    {
        #[pin]
        answer: Called<S, Request<Incoming>>,
        flight: Option<Flight>,
    }
}

impl<S, B> Future for Answering<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Output = Result<Response<InFlight<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(cx))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Some(flight) = &this.flight
        {
            flight.upgrades();
        }
        Poll::Ready(Ok(answer.map(|body| InFlight { body, _flight: this.flight.take() })))
    }
}

pin_project! {
    /// The body of an answer, which holds the request in flight until it has been sent.
    struct InFlight<B> {
        #[pin]
        body: B,
        _flight: Option<Flight>,
    }
}

impl<B: Body> Body for InFlight<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
