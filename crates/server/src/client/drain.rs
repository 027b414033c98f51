//! The end of service, said once and heard by all.
//!
//! Workers stop accepting, connections finish the request that they have and then close, and readiness turns to 503.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A switch from serving to draining, shared by whoever takes part. It does not turn back.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    started: AtomicBool,
    wake: Notify,
}

impl Drain {
    /// A switch that stands on serving.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to drain.
    pub fn start(&self) {
        self.0.started.store(true, Ordering::SeqCst);
        self.0.wake.notify_waiters();
    }

    /// Has draining begun?
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.0.started.load(Ordering::Relaxed)
    }

    /// Waits until draining begins.
    pub fn started(&self) -> impl Future<Output = ()> + Send + 'static {
        let inner = Arc::clone(&self.0);
        async move {
            let mut woken = std::pin::pin!(inner.wake.notified());
            // Listen first and look second, so that a start between the two is not missed.
            woken.as_mut().enable();
            if !inner.started.load(Ordering::SeqCst) {
                woken.await;
            }
        }
    }
}
