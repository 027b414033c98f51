//! The service that keeps records: around the limit layer, so that denials are seen too.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{Record, Recorder};
use crate::Statuses;

/// A service whose answers are counted by their status, and recorded if somebody wants to be told.
#[derive(Clone)]
pub(crate) struct Recorded<S> {
    inner: S,
    statuses: Statuses,
    recorder: Option<Arc<Recorder>>,
}

impl<S> Recorded<S> {
    pub(crate) fn new(inner: S, statuses: Statuses, recorder: Option<Arc<Recorder>>) -> Self {
        Self { inner, statuses, recorder }
    }
}

impl<S, B, R> Service<Request<B>> for Recorded<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    type Response = Response<RecordedBody<R>>;
    type Error = S::Error;
    type Future = Recording<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let has_body = request.method() != Method::HEAD;
        let record = self.recorder.as_ref().map(|recorder| recorder.begin(&mut request));
        Recording { answer: self.inner.call(request), statuses: self.statuses.clone(), record, has_body }
    }
}

pin_project! {
    /// An answer on its way, with the record of its request.
    pub(crate) struct Recording<F> {
        #[pin]
        answer: F,
        statuses: Statuses,
        record: Option<Box<Record>>,
        // May the answer have a body?
        has_body: bool,
    }
}

impl<F, R, E> Future for Recording<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body<Data = Bytes>,
{
    type Output = Result<Response<RecordedBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(cx))?;
        this.statuses.count(answer.status());
        let mut record = this.record.take();
        if let Some(record) = &mut record {
            record.status = Some(answer.status());
            record.is_whole = !*this.has_body || answer.body().is_end_stream();
        }
        Poll::Ready(Ok(answer.map(|body| RecordedBody { body, record })))
    }
}

pin_project! {
    /// The body of an answer, which notes what is handed on of it.
    pub(crate) struct RecordedBody<B> {
        #[pin]
        body: B,
        // Tells itself when it is dropped with the body.
        record: Option<Box<Record>>,
    }
}

impl<B: Body<Data = Bytes>> Body for RecordedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        if let Some(record) = this.record {
            match &frame {
                None => record.is_whole = true,
                Some(Ok(frame)) => {
                    record.sent_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                    record.is_whole = this.body.is_end_stream();
                }
                Some(Err(_)) => {}
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
