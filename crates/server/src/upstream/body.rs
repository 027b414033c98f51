//! The bodies of answers, never held back and never collected.
//!
//! A frame is taken from one side when the other is ready for it, so whoever is slower sets the pace, and memory does
//! not depend on the length of a body.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use crate::upstream::line::Line;
use crate::upstream::upload::Pace;

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
    /// A body that comes over `line`, while the request's may still come at `pace`.
    pub(crate) fn passing(incoming: Incoming, line: Line, pace: Option<Arc<Pace>>, stall_timeout: Duration) -> Self {
        let ended = incoming.is_end_stream();
        Self(Kind::Passing(Passing { incoming, line: Some(line), ended, stall: None, stall_timeout, pace }))
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

/// A response body from the upstream. When it ends, its connection is for the next request; when it is dropped before,
/// the upstream is told: by closing the connection, or on a shared one by resetting the stream.
#[derive(Debug)]
struct Passing {
    incoming: Incoming,
    line: Option<Line>,
    ended: bool,
    /// Runs while the upstream sends nothing.
    stall: Option<Stall>,
    stall_timeout: Duration,
    /// Of the request's body, if there is one.
    pace: Option<Arc<Pace>>,
}

#[derive(Debug)]
struct Stall {
    timer: Pin<Box<Sleep>>,
    /// The pace of the request's body when the timer was set.
    frames: u32,
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            ready!(self.poll_stall(cx));
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

    /// Ready when nothing has come for too long, and nothing was sent either.
    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (timeout, frames) = (self.stall_timeout, self.pace.as_ref().map_or(0, |pace| pace.frames()));
        let stall = self.stall.get_or_insert_with(|| Stall { timer: Box::pin(sleep(timeout)), frames });
        loop {
            ready!(stall.timer.as_mut().poll(cx));
            if stall.frames == frames {
                return Poll::Ready(());
            }
            *stall = Stall { timer: Box::pin(sleep(timeout)), frames };
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(line) = self.line.take()
            && self.ended
        {
            line.give_back();
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
