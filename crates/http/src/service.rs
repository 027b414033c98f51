//! The service that stands before another one.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::future::{Asking, decided};
use crate::layer::Settings;
use crate::preflight::is_preflight;
use crate::{Ask, Asked, LimitBody, LimitFuture, Ruling};

/// A service whose requests are asked about first. Clones share what they know.
pub struct LimitService<S, A> {
    inner: S,
    shared: Arc<Shared<A>>,
}

struct Shared<A> {
    ask: A,
    settings: Arc<Settings>,
}

impl<S, A> LimitService<S, A> {
    pub(crate) fn new(inner: S, ask: A, settings: Settings) -> Self {
        Self { inner, shared: Arc::new(Shared { ask, settings: Arc::new(settings) }) }
    }
}

impl<S, A, B, R> Service<Request<B>> for LimitService<S, A>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    A: Ask<B>,
{
    type Response = Response<LimitBody<R>>;
    type Error = S::Error;
    type Future = LimitFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> LimitFuture<S, B> {
        let Shared { ask, settings } = &*self.shared;
        let asked = match settings.exempts_preflights && is_preflight(&request) {
            true => Asked::Now(Ruling::Free.into()),
            false => ask.ask(&request),
        };
        match asked {
            Asked::Now(ruled) => LimitFuture::new(decided(&mut self.inner, request, ruled, settings)),
            Asked::Later(later) => {
                // The service that is ready goes with the request; its clone has yet to become ready.
                let unready = self.inner.clone();
                let inner = mem::replace(&mut self.inner, unready);
                LimitFuture::asking(Asking { later, inner, request: Some(request), settings: Arc::clone(settings) })
            }
        }
    }
}

impl<S: Clone, A> Clone for LimitService<S, A> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, A: fmt::Debug> fmt::Debug for LimitService<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitService").field("inner", &self.inner).field("ask", &self.shared.ask).finish()
    }
}
