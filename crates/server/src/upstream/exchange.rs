//! One request on its way, until the head of its answer is there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use pin_project_lite::pin_project;

use crate::upstream::failure::Failure;
use crate::upstream::line::Line;
use crate::upstream::patience::{Patience, Patient};
use crate::upstream::pool::Lease;
use crate::upstream::route::Route;
use crate::upstream::upload::{Pace, Upload};

/// A connection's answer to a request, or the request itself if it never left.
pub(crate) type Tried = Result<Response<Incoming>, TrySendError<Request<Upload>>>;

/// What comes of an exchange.
pub(crate) type Outcome = Result<(Response<Incoming>, Line), Failure>;

pin_project! {
    /// A request on its way. It is a future of few bytes, since each request makes one.
    pub(crate) struct Exchange<F> {
        route: Arc<Route>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
        #[pin]
        way: Way<F>,
    }
}

pin_project! {
    #[project = WayView]
    enum Way<F> {
        /// On a connection that had been idle.
        Reused { #[pin] answer: Patient<F>, lease: Option<Lease>, copy: Option<Box<Request<Upload>>> },
        /// On a new one, or on one that is shared.
        Other { outcome: Pin<Box<dyn Future<Output = Outcome> + Send>> },
    }
}

impl<F> Exchange<F> {
    /// The answer that `answer` is waiting for, on `lease`. If the connection is found closed, `copy` is sent again.
    pub(crate) fn on_reused(
        route: &Arc<Route>,
        lease: Lease,
        copy: Option<Request<Upload>>,
        answer: Patient<F>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
    ) -> Self {
        let way = Way::Reused { answer, lease: Some(lease), copy: copy.map(Box::new) };
        Self { route: Arc::clone(route), pace, patience, way }
    }

    /// The answer to `request` on whatever line there is.
    pub(crate) fn on_other(
        route: &Arc<Route>,
        request: Request<Upload>,
        pace: Option<Arc<Pace>>,
        patience: Patience,
    ) -> Self {
        let way = Way::other(route, request, pace.clone(), patience);
        Self { route: Arc::clone(route), pace, patience, way }
    }
}

impl<F> Way<F> {
    fn other(route: &Arc<Route>, request: Request<Upload>, pace: Option<Arc<Pace>>, patience: Patience) -> Self {
        let route = Arc::clone(route);
        Self::Other { outcome: Box::pin(async move { route.send_otherwise(request, pace, patience).await }) }
    }
}

impl<F: Future<Output = Tried>> Future for Exchange<F> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut this = self.project();
        let again = match this.way.as_mut().project() {
            WayView::Other { outcome } => return outcome.as_mut().poll(cx),
            WayView::Reused { answer, lease, copy } => match ready!(answer.poll(cx))? {
                // It is there until the exchange has ended.
                Ok(answer) => {
                    let line = lease.take().map(Line::Own).ok_or(Failure::Closed);
                    return Poll::Ready(line.map(|line| (answer, line)));
                }
                Err(mut error) => {
                    let failure = Failure::of(error.error());
                    match error.take_message().or_else(|| copy.take().map(|copy| *copy)) {
                        Some(again) if matches!(failure, Failure::Closed) => again,
                        _ => return Poll::Ready(Err(failure)),
                    }
                }
            },
        };
        this.way.set(Way::other(this.route, again, this.pace.clone(), *this.patience));
        match this.way.project() {
            WayView::Other { outcome } => outcome.as_mut().poll(cx),
            WayView::Reused { .. } => Poll::Ready(Err(Failure::Closed)),
        }
    }
}
