//! HTTP/2 towards clients: many requests on one connection, each on a stream of its own.
//!
//! hyper speaks it; what is here are its bounds, what makes its requests like those of HTTP/1.1, and time. A client
//! that takes nothing of one answer loses that stream alone; one that takes nothing at all loses the connection, which
//! the socket sees (`stream.rs`).

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use http::header::{self, HeaderMap, HeaderValue};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::http2::{Builder, Connection};
use hyper::service::HttpService;
use hyper_util::rt::TokioTimer;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::Bounds;
use crate::client::connection::Converse;
use crate::client::stream::Stream;

/// Requests that one connection may have in flight.
const STREAMS_MAX: u32 = 128;
/// What a client may send of one body before it is taken, in bytes.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The same for all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// What is held of one answer while the client does not take it, in bytes.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// Streams that a client may have reset before their requests were looked at. A client whose calls time out while this
/// process stands still gives up on all that it has in flight, and soon on those that it sends in their place; it keeps
/// its connection. Beyond that the connection ends: a flood of resets costs the one who sends it more than us.
const RESETS_MAX: usize = 4 * STREAMS_MAX as usize;
/// Streams that may be reset for the client's mistakes, before the connection ends. They count for its whole life, and
/// what a client sends beyond [`STREAMS_MAX`] before it has read of that bound is among them.
const MISTAKES_MAX: usize = 1024;

/// HTTP/2 within these bounds.
pub(crate) fn builder(bounds: &Bounds, streams: Streams) -> Builder<Streams> {
    let mut http = Builder::new(streams);
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(bounds.header_bytes()).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(MISTAKES_MAX)
        // A client that has vanished is noticed within the time for one that stalls.
        .keep_alive_interval(bounds.stall_timeout / 2)
        .keep_alive_timeout(bounds.stall_timeout / 2);
    http
}

impl<S> Converse for Connection<Stream, S, Streams>
where
    S: HttpService<Incoming>,
    S::ResBody: 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
    Streams: Http2ServerConnExec<S::Future, S::ResBody>,
{
    /// It has to stay: what both sides agreed on lasts as long as the connection.
    fn rest(self: Pin<&mut Self>, _: &mut Context<'_>) {}

    fn farewell(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Makes a request's fields what they would be in HTTP/1.1, which is what the upstream and the policies know.
pub(crate) fn settled<B>(request: Request<B>) -> Request<B> {
    let (mut parts, body) = request.into_parts();
    if !parts.headers.contains_key(header::HOST)
        && let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
    join_cookies(&mut parts.headers);
    Request::from_parts(parts, body)
}

/// A client may send each cookie in a line of its own, which only HTTP/2 allows (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(header::COOKIE).iter();
    if let (Some(first), Some(second)) = (lines.next(), lines.next()) {
        let lines = [first, second].into_iter().chain(lines).map(HeaderValue::as_bytes);
        let all = lines.collect::<Vec<_>>().join(b"; ".as_slice());
        // It is made of values.
        if let Ok(all) = HeaderValue::from_bytes(&all) {
            headers.insert(header::COOKIE, all);
        }
    }
}

/// The streams of one connection, each a task. Clones are one.
#[derive(Clone)]
pub(crate) struct Streams {
    /// Whose turn it is on the stream that comes next: hyper calls the service, and then has its stream run.
    next: Arc<Mutex<Option<Arc<Turn>>>>,
    stall_timeout: Duration,
}

/// Whose turn it is with the body of an answer.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Frames so far, wrapping around.
    frames: AtomicU32,
    /// The last frame has not been asked for anew: the client has yet to take it.
    is_clients: AtomicBool,
}

impl Turn {
    /// The body was asked for a frame; it had one, or not yet.
    pub(crate) fn asked(&self, had_one: bool) {
        self.is_clients.store(had_one, Relaxed);
        self.frames.store(self.frames.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

impl Streams {
    pub(crate) fn new(stall_timeout: Duration) -> Self {
        Self { next: Arc::default(), stall_timeout }
    }

    /// The turn of the stream whose request has just come.
    pub(crate) fn turn(&self) -> Arc<Turn> {
        let turn = Arc::new(Turn::default());
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&turn));
        turn
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let turn = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (frames, stall, stall_timeout) = (0, None, self.stall_timeout);
        tokio::spawn(Paced { stream, turn: turn.unwrap_or_default(), frames, stall, stall_timeout });
    }
}

pin_project! {
    /// A stream that ends when the client takes nothing of its answer for too long. hyper resets one that is dropped.
    struct Paced<F> {
        #[pin]
        stream: F,
        turn: Arc<Turn>,
        // The turn's count when the timer was set.
        frames: u32,
        // Is there once the client's turn has taken a while.
        stall: Option<Pin<Box<Sleep>>>,
        stall_timeout: Duration,
    }
}

impl<F: Future<Output = ()>> Future for Paced<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !this.turn.is_clients.load(Relaxed) {
            return Poll::Pending;
        }
        loop {
            let timeout = *this.stall_timeout;
            let stall = this.stall.get_or_insert_with(|| Box::pin(sleep(timeout)));
            ready!(stall.as_mut().poll(cx));
            let frames = this.turn.frames.load(Relaxed);
            if std::mem::replace(this.frames, frames) == frames {
                return Poll::Ready(());
            }
            // Something passed since; look again later.
            *this.stall = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_those_of_the_older_version() {
        let request = Request::get("https://a.example:8443/x").header("cookie", "a=1").header("cookie", "b=2");
        let request = settled(request.body(()).unwrap());
        assert_eq!(request.headers()["host"], "a.example:8443");
        assert_eq!(request.headers().get_all("cookie").iter().collect::<Vec<_>>(), ["a=1; b=2"]);
        let request = settled(Request::get("/x").header("host", "b").body(()).unwrap());
        assert_eq!(request.headers()["host"], "b");
    }
}
