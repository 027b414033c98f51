//! The answer on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::awaited::Awaiting;
use crate::layer::Settings;
use crate::{Denial, Dialects, Later, LimitBody, Report, Ruled, Ruling, cors, denial, fields};

pin_project! {
    /// The answer of a [`LimitService`](crate::LimitService).
    pub struct LimitFuture<S: Service<Request<B>>, B> {
        #[pin]
        state: State<S, B>,
    }
}

/// What the fields of an answer are to tell.
#[derive(Clone, Copy)]
pub(crate) struct Telling {
    dialects: Dialects,
    /// May a script read them that the inner service may not know of?
    is_exposed: bool,
}

impl Telling {
    #[inline]
    pub(crate) fn write(self, report: Option<Report>, headers: &mut HeaderMap) {
        if let Some(report) = report {
            fields::write(self.dialects, &report, headers);
            fields::write_source(report.source(), headers);
            if self.is_exposed {
                cors::expose(self.dialects, headers);
            }
        }
    }
}

pin_project! {
    #[project = StateProjection]
    pub(crate) enum State<S: Service<Request<B>>, B> {
        // Somewhere else it is being decided; boxed, since that takes its time anyway.
        Asking { asking: Box<Asking<S, B>> },
        Passing { #[pin] inner: S::Future, report: Option<Report>, telling: Telling },
        // Its response says what it is charged; boxed, since few requests are such.
        Awaiting { awaiting: Pin<Box<Awaiting<S::Future, S::Response>>> },
        Denied { answer: Option<Response<Bytes>> },
    }
}

/// A request that waits for its ruling, with the service that is ready for it.
pub(crate) struct Asking<S, B> {
    pub(crate) later: Later,
    pub(crate) inner: S,
    /// `None` once it was passed on.
    pub(crate) request: Option<Request<B>>,
    pub(crate) settings: Arc<Settings>,
}

impl<S: Service<Request<B>>, B> LimitFuture<S, B> {
    #[inline]
    pub(crate) fn new(state: State<S, B>) -> Self {
        Self { state }
    }

    pub(crate) fn asking(asking: Asking<S, B>) -> Self {
        Self::new(State::Asking { asking: Box::new(asking) })
    }
}

/// Does what was ruled: calls the service, which is ready, or denies.
#[inline]
pub(crate) fn decided<S: Service<Request<B>>, B>(
    inner: &mut S,
    mut request: Request<B>,
    ruled: Ruled,
    settings: &Settings,
) -> State<S, B> {
    let telling = Telling { dialects: settings.dialects, is_exposed: settings.is_exposed_to(request.headers()) };
    let report = match ruled.remembered_in(request.extensions_mut()) {
        Ruling::Allowed(report) => Some(report),
        Ruling::Free => None,
        Ruling::Repeated => {
            settings.note_repeat();
            None
        }
        Ruling::Awaited(awaited) => {
            let awaiting = Awaiting::new(inner.call(request), *awaited, telling);
            return State::Awaiting { awaiting: Box::pin(awaiting) };
        }
        Ruling::Denied(denial) => {
            return State::Denied { answer: Some(denied(&denial, request, settings)) };
        }
    };
    State::Passing { inner: inner.call(request), report, telling }
}

/// Kept out of the way of allowed requests.
#[cold]
fn denied<B>(denial: &Denial, request: Request<B>, settings: &Settings) -> Response<Bytes> {
    let (parts, _) = request.into_parts();
    denial::answer(denial, parts, settings)
}

impl<S, B> Asking<S, B> {
    fn poll_ruled(&mut self, cx: &mut Context<'_>) -> Poll<Option<State<S, B>>>
    where
        S: Service<Request<B>>,
    {
        let ruled = ready!(self.later.as_mut().poll(cx));
        let request = self.request.take();
        Poll::Ready(request.map(|request| decided(&mut self.inner, request, ruled, &self.settings)))
    }
}

impl<S, B, R> Future for LimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<LimitBody<R>>, S::Error>;

    /// # Panics
    /// It is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProjection::Asking { asking } => {
                    let next = ready!(asking.poll_ruled(cx)).expect("a ruling comes once");
                    state.set(next);
                }
                StateProjection::Passing { inner, report, telling } => {
                    let mut response = ready!(inner.poll(cx))?;
                    telling.write(report.take(), response.headers_mut());
                    return Poll::Ready(Ok(response.map(LimitBody::passing)));
                }
                StateProjection::Awaiting { awaiting } => {
                    let response = ready!(awaiting.as_mut().poll(cx))?;
                    return Poll::Ready(Ok(response.map(LimitBody::passing)));
                }
                StateProjection::Denied { answer } => {
                    let answer = answer.take().expect("polled again after it was ready");
                    return Poll::Ready(Ok(answer.map(LimitBody::whole)));
                }
            }
        }
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for LimitFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Asking { .. } => "Asking",
            State::Passing { .. } => "Passing",
            State::Awaiting { .. } => "Awaiting",
            State::Denied { .. } => "Denied",
        };
        f.debug_tuple("LimitFuture").field(&state).finish()
    }
}
