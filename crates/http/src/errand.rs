//! Work that is done to its end, also if whoever waits for it goes away.
//!
//! This crate has no runtime of its own. Whoever assembles a server says how a future is run beside others
//! ([`LimitLayer::spawn`](crate::LimitLayer::spawn)); work that is left over is then run so. Without that it ends where
//! it is.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Work that is left over, to be run beside everything else.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs such work.
pub(crate) type Spawn = Arc<dyn Fn(Task) + Send + Sync>;

/// A future that is run to its end.
pub(crate) struct Errand<T: 'static> {
    /// `None` once it is done.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    spawn: Option<Spawn>,
}

impl<T> Errand<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static, spawn: Option<Spawn>) -> Self {
        Self { work: Some(Box::pin(work)), spawn }
    }

    /// The outcome, if it is there without waiting; else the rest of the work. Only for work that anybody may poll.
    pub(crate) fn at_once(mut self) -> Result<T, Self> {
        match Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Ok(outcome),
            Poll::Pending => Err(self),
        }
    }
}

impl<T> Future for Errand<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        if let (Some(work), Some(spawn)) = (self.work.take(), &self.spawn) {
            spawn(Box::pin(async move { drop(work.await) }));
        }
    }
}

impl<T> fmt::Debug for Errand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand").field("is_done", &self.work.is_none()).finish_non_exhaustive()
    }
}
