//! Requests that have passed, and whose response says what they are charged.
//!
//! The response is held back until the store knows: whoever has just failed a log-in finds it counted. If there is no
//! response, since the client has gone or the inner service failed, that is what the store is told, by whatever drops
//! what is here.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response, StatusCode};
use pin_project_lite::pin_project;
use tidegate::{Open, ResponseOutcome, Store, Tally};

use crate::Report;
use crate::errand::{Errand, Spawn};
use crate::future::Telling;

/// Is told what was done beside decisions.
pub(crate) type Told = Arc<dyn Fn(&Tally) + Send + Sync>;

/// A request that has passed, before its response is there. Whoever drops it says that there is none.
pub struct Awaited {
    pub(crate) report: Option<Report>,
    /// `None` once it was told of the response.
    open: Option<Box<dyn Close>>,
}

/// What is told of a response, once.
trait Close: Send {
    /// `None` if there is nothing to wait for.
    fn close(self: Box<Self>, response: Option<(StatusCode, &HeaderMap)>) -> Option<Errand<()>>;
}

struct OpenRequest<S> {
    open: Open<S>,
    told: Option<Told>,
    spawn: Option<Spawn>,
}

impl Awaited {
    pub(crate) fn new<S: Store + 'static>(
        report: Option<Report>,
        open: Open<S>,
        told: Option<Told>,
        spawn: Option<Spawn>,
    ) -> Self {
        Self { report, open: Some(Box::new(OpenRequest { open, told, spawn })) }
    }

    fn close(&mut self, response: Option<(StatusCode, &HeaderMap)>) -> Option<Errand<()>> {
        self.open.take()?.close(response)
    }
}

impl<S: Store + 'static> Close for OpenRequest<S> {
    fn close(self: Box<Self>, response: Option<(StatusCode, &HeaderMap)>) -> Option<Errand<()>> {
        let Self { open, told, spawn } = *self;
        let field = |name: &str| response.and_then(|(_, fields)| fields.get(name)).map(|value| value.as_bytes());
        let outcome = response.map(|(status, _)| ResponseOutcome { status: status.as_u16(), field: &field });
        let closing = open.closing(outcome);
        let work = async move {
            let tally = closing.await;
            told.iter().for_each(|told| told(&tally));
        };
        let errand = Errand::new(work, spawn);
        if S::AT_ONCE { errand.at_once().err() } else { Some(errand) }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        // What cannot be done at once is left to whoever runs errands.
        drop(self.close(None));
    }
}

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").field("report", &self.report).finish_non_exhaustive()
    }
}

pin_project! {
    /// The way of such a request through the inner service, and its response until the store knows of it.
    pub(crate) struct Awaiting<F, R> {
        #[pin]
        inner: F,
        awaited: Awaited,
        telling: Telling,
        // The response, while it is held back.
        held: Option<(Errand<()>, R)>,
    }
}

impl<F, R> Awaiting<F, R> {
    pub(crate) fn new(inner: F, awaited: Awaited, telling: Telling) -> Self {
        Self { inner, awaited, telling, held: None }
    }
}

impl<F, R, E> Future for Awaiting<F, Response<R>>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.held.is_none() {
            let mut response = match ready!(this.inner.poll(cx)) {
                Ok(response) => response,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let errand = this.awaited.close(Some((response.status(), response.headers())));
            this.telling.write(this.awaited.report.take(), response.headers_mut());
            match errand {
                None => return Poll::Ready(Ok(response)),
                Some(errand) => *this.held = Some((errand, response)),
            }
        }
        if let Some((errand, _)) = this.held {
            ready!(Pin::new(errand).poll(cx));
        }
        match this.held.take() {
            Some((_, response)) => Poll::Ready(Ok(response)),
            None => Poll::Pending,
        }
    }
}
