//! The body of an answer: one message and its trailers, or nothing; or what a streaming service makes of it.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::status::GRPC_STATUS;

/// The answer to a call for one message.
#[derive(Debug)]
pub(crate) struct CallBody(Left);

/// What is left of it.
#[derive(Debug)]
enum Left {
    Message(Bytes),
    Trailers,
    Nothing,
}

impl CallBody {
    pub(crate) fn empty() -> Self {
        Self(Left::Nothing)
    }

    /// A message with its prefix.
    pub(super) fn message(framed: Bytes) -> Self {
        Self(Left::Message(framed))
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        match std::mem::replace(&mut self.0, Left::Nothing) {
            Left::Message(framed) => {
                self.0 = Left::Trailers;
                Some(Frame::data(framed))
            }
            Left::Trailers => {
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
                Some(Frame::trailers(trailers))
            }
            Left::Nothing => None,
        }
    }
}

pin_project! {
    /// The body of any answer of the face.
    #[project = Projected]
    #[derive(Debug)]
    pub enum GrpcBody {
        /// Of a call for one message.
        #[doc(hidden)]
        Call { body: CallBody },
        /// Of the services that stream.
        #[doc(hidden)]
        Stream { #[pin] body: tonic::body::Body },
    }
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.project() {
            Projected::Call { body } => Poll::Ready(body.next().map(Ok)),
            Projected::Stream { body } => body.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Call { body } => matches!(body.0, Left::Nothing),
            Self::Stream { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Call { body: CallBody(Left::Message(framed)) } => SizeHint::with_exact(framed.len() as u64),
            Self::Call { .. } => SizeHint::with_exact(0),
            Self::Stream { body } => body.size_hint(),
        }
    }
}

impl From<CallBody> for GrpcBody {
    fn from(body: CallBody) -> Self {
        Self::Call { body }
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next().map(Ok))
    }
}
