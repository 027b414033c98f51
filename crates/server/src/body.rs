//! The bodies of answers, never held back and never collected.
//!
//! A frame is taken from one side when the other is ready for it, so whoever is slower sets the pace, and memory does
//! not depend on the length of a body.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use crate::pool::Lease;

/// The body of an answer: made here, or on its way from the upstream.
#[derive(Debug, Default)]
pub struct ProxyBody(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    Passing(Passing),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl From<Bytes> for ProxyBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }
}

impl ProxyBody {
    pub(crate) fn passing(incoming: Incoming, lease: Lease, stall_timeout: Duration) -> Self {
        let ended = incoming.is_end_stream();
        Self(Kind::Passing(Passing { incoming, lease: Some(lease), ended, stall: None, stall_timeout }))
    }
}

/// Why a body that had begun did not end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The upstream broke off.
    Upstream(hyper::Error),
    /// The upstream sent nothing for too long.
    Stalled,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upstream(_) => "the upstream broke off its response",
            Self::Stalled => "the upstream stalled in the middle of its response",
        })
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Upstream(error) => Some(error),
            Self::Stalled => None,
        }
    }
}

impl From<Infallible> for BodyError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A response body from the upstream. When it ends, its connection goes back to the pool; when it is dropped before,
/// the connection is closed.
#[derive(Debug)]
struct Passing {
    incoming: Incoming,
    lease: Option<Lease>,
    ended: bool,
    /// Runs while the upstream sends nothing.
    stall: Option<Pin<Box<Sleep>>>,
    stall_timeout: Duration,
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            let timeout = self.stall_timeout;
            let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(timeout)));
            ready!(stall.as_mut().poll(cx));
            return Poll::Ready(Some(Err(BodyError::Stalled)));
        };
        self.stall = None;
        self.ended = match &frame {
            None => true,
            Some(Ok(frame)) => frame.is_trailers() || self.incoming.is_end_stream(),
            Some(Err(_)) => false,
        };
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Upstream)))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && self.ended
        {
            lease.give_back();
        }
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Passing(passing) => passing.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Passing(passing) => passing.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Passing(passing) => passing.incoming.size_hint(),
        }
    }
}
