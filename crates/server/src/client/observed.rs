//! The service of one connection: what it adds to each request, and what it notes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::uri::Scheme;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::Peer;
use crate::client::called::Called;
use crate::client::http2::{self, Streams, Turn};
use crate::client::progress::{Flight, Progress};

/// What a connection says of each of its requests.
#[derive(Clone, Copy)]
pub(crate) struct Said {
    pub(crate) peer: Peer,
    /// It came over TLS.
    pub(crate) is_secure: bool,
}

/// The service of one connection: it adds the peer to each request and notes the progress.
pub(crate) struct Observed<S> {
    service: S,
    said: Said,
    progress: Arc<Progress>,
    multiplexed: Option<Multiplexed>,
}

/// What there is beside in HTTP/2.
struct Multiplexed {
    streams: Streams,
    header_fields_max: usize,
}

impl<S> Observed<S> {
    pub(crate) fn new(service: S, said: Said, progress: Arc<Progress>) -> Self {
        Self { service, said, progress, multiplexed: None }
    }

    /// The same for HTTP/2, whose streams are told whose turn it is, and whose requests have at most so many fields.
    pub(crate) fn on_streams(self, streams: Streams, header_fields_max: usize) -> Self {
        Self { multiplexed: Some(Multiplexed { streams, header_fields_max }), ..self }
    }

    fn ask(&self, mut request: Request<Incoming>) -> Called<S, Request<Incoming>>
    where
        S: Service<Request<Incoming>> + Clone,
    {
        request.extensions_mut().insert(self.said.peer);
        if self.said.is_secure {
            request.extensions_mut().insert(Scheme::HTTPS);
        }
        Called::new(self.service.clone(), request)
    }
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Observed<S>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone,
{
    type Response = Response<InFlight<B>>;
    type Error = S::Error;
    type Future = Answering<S>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let flight = Some(self.progress.request_came(!request.body().is_end_stream()));
        let Some(Multiplexed { streams, header_fields_max }) = &self.multiplexed else {
            return Answering { answer: Some(self.ask(request)), flight, turn: None };
        };
        let turn = Some(streams.turn());
        // In HTTP/1.1 hyper refuses such a request by itself.
        let is_taken = request.headers().len() <= *header_fields_max;
        Answering { answer: is_taken.then(|| self.ask(http2::settled(request))), flight, turn }
    }
}

pin_project! {
    pub(crate) struct Answering<S>
    where
        S: Service<Request<Incoming>>,
    {
        // Nothing if the request has more fields than are taken.
        #[pin]
        answer: Option<Called<S, Request<Incoming>>>,
        flight: Option<Flight>,
        turn: Option<Arc<Turn>>,
    }
}

impl<S, B> Future for Answering<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Output = Result<Response<InFlight<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.answer.as_pin_mut() {
            Some(answer) => ready!(answer.poll(cx))?.map(Some),
            None => too_large(),
        };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Some(flight) = this.flight.as_ref()
        {
            flight.upgrades();
        }
        let turn = this.turn.take();
        if let Some(turn) = &turn {
            // As long as the client takes nothing, the body is not asked for anything.
            turn.asked(true);
        }
        Poll::Ready(Ok(answer.map(|body| InFlight { body, turn, _flight: this.flight.take() })))
    }
}

fn too_large<B>() -> Response<Option<B>> {
    let mut answer = Response::new(None);
    *answer.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    answer
}

pin_project! {
    /// The body of an answer, which holds the request in flight until it has been sent.
    pub(crate) struct InFlight<B> {
        // Nothing where there is no body.
        #[pin]
        body: Option<B>,
        turn: Option<Arc<Turn>>,
        _flight: Option<Flight>,
    }
}

impl<B: Body> Body for InFlight<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = match this.body.as_pin_mut() {
            Some(body) => body.poll_frame(cx),
            None => Poll::Ready(None),
        };
        if let Some(turn) = this.turn {
            turn.asked(frame.is_ready());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
