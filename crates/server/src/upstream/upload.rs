//! The bodies of requests on their way to the upstream, and the pace at which they come.
//!
//! Whoever waits for the answer wants to know whose turn it is: the client's to send, or the upstream's to take.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// A request body on its way to the upstream.
pub(crate) struct Upload {
    incoming: Option<Incoming>,
    pace: Option<Arc<Pace>>,
}

impl Upload {
    /// `incoming`, if there is anything in it, and how to see the pace at which it passes.
    pub(crate) fn new(incoming: Incoming) -> (Self, Option<Arc<Pace>>) {
        if incoming.is_end_stream() {
            return (Self::none(), None);
        }
        let pace = Arc::new(Pace { frames: AtomicU32::new(0), waiting: AtomicBool::new(true) });
        (Self { incoming: Some(incoming), pace: Some(Arc::clone(&pace)) }, Some(pace))
    }

    /// No body.
    pub(crate) fn none() -> Self {
        Self { incoming: None, pace: None }
    }
}

/// The body did not end as it should have: its client is gone, or sent what is none.
///
/// What it comes from is the end that a stream of HTTP/2 gets by it: it is cancelled, which is no fault of ours.
#[derive(Debug)]
pub(crate) struct BrokeOff(h2::Error);

impl fmt::Display for BrokeOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body broke off")
    }
}

impl Error for BrokeOff {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BrokeOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokeOff>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let frame = Pin::new(incoming).poll_frame(cx);
        if let Some(pace) = &self.pace {
            pace.note(&frame);
        }
        frame.map_err(|_| BrokeOff(h2::Reason::CANCEL.into()))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

/// How a request body comes along, as seen by who waits for the answer.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Frames so far, wrapping around; the end counts as one.
    frames: AtomicU32,
    waiting: AtomicBool,
}

impl Pace {
    fn note<T, E>(&self, frame: &Poll<Option<Result<T, E>>>) {
        self.waiting.store(frame.is_pending(), Relaxed);
        if frame.is_ready() {
            self.frames.store(self.frames().wrapping_add(1), Relaxed);
        }
    }

    /// A number that changes when something passes.
    pub(crate) fn frames(&self) -> u32 {
        self.frames.load(Relaxed)
    }

    /// Is it the client's turn to send?
    pub(crate) fn waits_for_client(&self) -> bool {
        self.waiting.load(Relaxed)
    }
}
