//! The body of an answer: the service's own, or one that was written here.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer. What the service answers is passed on as it is, without a box.
    pub struct LimitBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<B> {
        Passing { #[pin] body: B },
        Whole { bytes: Bytes },
    }
}

impl<B> LimitBody<B> {
    pub(crate) fn passing(body: B) -> Self {
        Self { kind: Kind::Passing { body } }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole { bytes } }
    }
}

impl<B: Body<Data = Bytes>> Body for LimitBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Passing { body } => body.poll_frame(cx),
            KindProjection::Whole { bytes } if bytes.is_empty() => Poll::Ready(None),
            KindProjection::Whole { bytes } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passing { body } => body.is_end_stream(),
            Kind::Whole { bytes } => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passing { body } => body.size_hint(),
            Kind::Whole { bytes } => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}

impl<B: Default> Default for LimitBody<B> {
    fn default() -> Self {
        Self::passing(B::default())
    }
}

impl<B: fmt::Debug> fmt::Debug for LimitBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Passing { body } => f.debug_tuple("Passing").field(body).finish(),
            Kind::Whole { bytes } => f.debug_tuple("Whole").field(bytes).finish(),
        }
    }
}
