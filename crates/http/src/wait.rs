//! For clients: a layer that waits for its turn before it sends.
//!
//! Who calls an API that allows 100 requests a second does better to wait a little than to be denied. The layer stands
//! around a client's service, takes a token from a limiter of its own, and sends when it has it. Whoever comes first is
//! sent first; nobody waits longer than the bound, and who would have to fails at once.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use tidegate::{Cost, Key, Limiter, Store, WaitError};
use tower_layer::Layer;
use tower_service::Service;

/// Makes requests wait for their turn.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tidegate_http::{WaitLayer, tidegate::Limiter};
///
/// let limiter = Arc::new(Limiter::new("100/s burst 1".parse()?));
/// // One line for all requests; at most two seconds in it.
/// let layer = WaitLayer::new(limiter, (), Duration::from_secs(2));
/// # let _ = layer;
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[must_use]
pub struct WaitLayer<S, K> {
    limiter: Arc<Limiter<S>>,
    key: K,
    at_most: Duration,
}

impl<S, K> WaitLayer<S, K> {
    /// Takes one token of `key` for each request, and waits for it at most for `at_most`.
    pub fn new(limiter: Arc<Limiter<S>>, key: K, at_most: Duration) -> Self {
        Self { limiter, key, at_most }
    }
}

impl<S, K: Clone, I> Layer<I> for WaitLayer<S, K> {
    type Service = WaitService<I, Self>;

    fn layer(&self, inner: I) -> WaitService<I, Self> {
        WaitService { inner, wait: self.clone() }
    }
}

/// A service whose requests wait for their turn.
#[derive(Clone, Debug)]
pub struct WaitService<I, W> {
    inner: I,
    wait: W,
}

/// Why there is no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum WaitServiceError<W, E> {
    /// The request was not sent: its turn did not come.
    Wait(WaitError<W>),
    /// The inner service failed.
    Inner(E),
}

impl<W: fmt::Display, E: fmt::Display> fmt::Display for WaitServiceError<W, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(_) => f.write_str("the request was not sent: its turn did not come"),
            Self::Inner(_) => f.write_str("the request failed"),
        }
    }
}

impl<W, E> std::error::Error for WaitServiceError<W, E>
where
    W: std::error::Error + 'static,
    E: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Wait(error) => Some(error),
            Self::Inner(error) => Some(error),
        }
    }
}

/// A response on its way. It is boxed: whoever waits does not mind.
type Waiting<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

impl<I, S, K, B> Service<Request<B>> for WaitService<I, WaitLayer<S, K>>
where
    I: Service<Request<B>> + Clone + Send + 'static,
    I::Future: Send,
    S: Store + 'static,
    K: Key + Clone + Send + Sync + 'static,
    B: Send + 'static,
{
    type Response = I::Response;
    type Error = WaitServiceError<S::Error, I::Error>;
    type Future = Waiting<I::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(WaitServiceError::Inner)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that is ready goes with the request; its clone has yet to become ready.
        let unready = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, unready);
        let WaitLayer { limiter, key, at_most } = self.wait.clone();
        Box::pin(async move {
            // It says only that the turn has come.
            let _ = limiter.wait(&key, Cost::ONE, at_most).await.map_err(WaitServiceError::Wait)?;
            inner.call(request).await.map_err(WaitServiceError::Inner)
        })
    }
}

impl<S, K: Clone> Clone for WaitLayer<S, K> {
    fn clone(&self) -> Self {
        Self { limiter: Arc::clone(&self.limiter), key: self.key.clone(), at_most: self.at_most }
    }
}

impl<S, K: fmt::Debug> fmt::Debug for WaitLayer<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limiter, key, at_most } = self;
        f.debug_struct("WaitLayer").field("limiter", limiter).field("key", key).field("at_most", at_most).finish()
    }
}
