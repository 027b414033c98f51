//! One client's connection, from accept to close.
//!
//! hyper speaks HTTP; what is added here is time. One timer serves the whole connection and is set anew only when it
//! fires or when a header section comes in pieces, so that a request that arrives whole costs no timer at all.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tower_service::Service;

use crate::client::age::{Age, Aged};
use crate::client::entrance::{Entered, Refused};
use crate::client::http1::Conversation;
use crate::client::http2::{self, Streams};
use crate::client::observed::{Observed, Said};
use crate::client::progress::Progress;
use crate::client::socket::Plain;
use crate::client::stream::Stream;
use crate::client::tether::Tether;
use crate::client::watchdog::{Bite, Watchdog};
use crate::{Drain, Peer, Setup};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// One of both sides closed it after the last answer.
    Closed,
    /// It broke: the client went away, or what it sent was not HTTP.
    Broken,
    /// The client took too long over a handshake or a header section.
    TooSlow,
    /// It never came to speak HTTP.
    Refused(Refused),
}

/// What goes on over a connection, in either version of HTTP. It is over when it is ready.
pub(crate) trait Converse: Future<Output = hyper::Result<()>> {
    /// Holds as little as it can until the client sends something, if nothing is under way.
    fn rest(self: Pin<&mut Self>, cx: &mut Context<'_>);

    /// Tells the client that it ends after the requests that it has.
    fn farewell(self: Pin<&mut Self>);
}

/// A connection that was accepted.
pub(crate) struct Accepted {
    pub(crate) plain: Plain,
    pub(crate) peer: Peer,
    /// It is one without TLS, whatever there is of certificates.
    pub(crate) is_clear: bool,
}

/// Serves the requests of one connection until it ends.
///
/// If a request upgrades it, it ends when whoever passes its bytes from then on has closed it.
pub(crate) async fn converse<S, B>(accepted: Accepted, service: S, setup: &Setup, drain: &Drain) -> End
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let bounds = &setup.bounds;
    let progress = Arc::new(Progress::new());
    let mut watchdog = pin!(Watchdog::new(Arc::clone(&progress), bounds));
    let entered = {
        let entering = pin!(setup.entrance.open(accepted, drain));
        match in_time(entering, watchdog.as_mut()).await {
            Some(Ok(entered)) => entered,
            Some(Err(refused)) => return End::Refused(refused),
            None => return End::TooSlow,
        }
    };
    setup.connections.entered(&entered);
    let Entered { socket, peer, is_http2 } = entered;
    let age = Age::new(bounds);
    let (tether, tethered) = Tether::new();
    let service = Observed::new(service, Said { peer, is_secure: socket.is_tls() }, Arc::clone(&progress));
    let stream = Stream::new(socket, tethered, Arc::clone(&progress), bounds.stall_timeout);
    let end = if is_http2 {
        progress.multiplexes();
        let streams = Streams::new(bounds.stall_timeout);
        let service = service.on_streams(streams.clone(), bounds.header_fields_max);
        // Boxed, since it is larger than one of HTTP/1.1, of which there are more.
        let mut connection = Box::pin(http2::builder(bounds, streams).serve_connection(stream, service));
        until_end(connection.as_mut(), watchdog, age, drain).await
    } else {
        let connection = pin!(Conversation::new(bounds, stream, service, progress));
        until_end(connection, watchdog, age, drain).await
    };
    if end == End::Closed {
        tether.gone().await;
    }
    end
}

/// What comes of `entering`; nothing if it takes too long.
async fn in_time<F: Future>(mut entering: Pin<&mut F>, mut watchdog: Pin<&mut Watchdog>) -> Option<F::Output> {
    poll_fn(|cx| match entering.as_mut().poll(cx) {
        Poll::Ready(entered) => Poll::Ready(Some(entered)),
        Poll::Pending => watchdog.as_mut().poll(cx).map(|_| None),
    })
    .await
}

/// Serves a connection until it ends, or has to.
async fn until_end(
    mut connection: Pin<&mut impl Converse>,
    mut watchdog: Pin<&mut Watchdog>,
    mut age: Age,
    drain: &Drain,
) -> End {
    let mut draining = pin!(drain.started());
    // The task's waker stays the same, so it is enough to leave it with the switch once.
    let (mut listening, mut drained) = (false, false);
    poll_fn(|cx| {
        if !drained && (drain.has_started() || (!listening && draining.as_mut().poll(cx).is_ready())) {
            drained = true;
            connection.as_mut().farewell();
        }
        listening = true;
        while let Poll::Ready(aged) = age.poll(cx) {
            match aged {
                Aged::Old => connection.as_mut().farewell(),
                Aged::Over => return Poll::Ready(End::Closed),
            }
        }
        loop {
            if let Poll::Ready(done) = connection.as_mut().poll(cx) {
                return Poll::Ready(if done.is_ok() { End::Closed } else { End::Broken });
            }
            match ready!(watchdog.as_mut().poll(cx)) {
                Bite::Slow => return Poll::Ready(End::TooSlow),
                Bite::Quiet => connection.as_mut().rest(cx),
                Bite::Idle => return Poll::Ready(End::Closed),
                Bite::Warning => connection.as_mut().farewell(),
            }
        }
    })
    .await
}
