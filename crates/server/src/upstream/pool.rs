//! Connections to the upstream that wait for their next request.
//!
//! One pool per worker and upstream. The connection used last is used next, so that under less load the others grow old
//! (`sweep`) and are closed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http1::SendRequest;
use tokio::task::AbortHandle;

use crate::upstream::sweep::{self, Age};
use crate::upstream::upload::Upload;

/// The idle connections of one worker.
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    idle_max: usize,
    idle_timeout: Duration,
    sweeping: AtomicBool,
}

struct Idle {
    wire: Wire,
    /// Since it was last used.
    age: Age,
}

impl Pool {
    pub(crate) fn new(idle_max: usize, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), idle_max, idle_timeout, sweeping: AtomicBool::new(false) })
    }

    /// The connection that was used last and is still open.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        let mut idle = self.idle();
        while let Some(Idle { wire, .. }) = idle.pop() {
            if wire.sender.is_ready() {
                return Some(self.lease(wire));
            }
        }
        None
    }

    /// A connection in use, which comes back here.
    pub(crate) fn lease(self: &Arc<Self>, wire: Wire) -> Lease {
        Lease { wire, pool: Arc::clone(self) }
    }

    fn put(self: &Arc<Self>, wire: Wire) {
        // One that is not ready still has a request body to send that nobody wants; it is closed.
        let mut idle = self.idle();
        if wire.sender.is_ready() && idle.len() < self.idle_max {
            idle.push(Idle { wire, age: Age::default() });
            if !self.sweeping.swap(true, Relaxed) {
                let pool = Arc::downgrade(self);
                sweep::start(self.idle_timeout, move || pool.upgrade().is_some_and(|pool| pool.pass()));
            }
        }
    }

    /// Closes what has been idle for too long. Is anything left?
    fn pass(&self) -> bool {
        let mut idle = self.idle();
        idle.retain_mut(|one| !one.age.is_up() && !one.wire.sender.is_closed());
        self.sweeping.store(!idle.is_empty(), Relaxed);
        !idle.is_empty()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        // Nothing between lock and unlock can leave the list half changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to an upstream. Dropped, it is closed at once, whatever is still to be sent on it.
pub(crate) struct Wire {
    sender: SendRequest<Upload>,
    /// The task that reads and writes.
    task: AbortHandle,
}

impl Wire {
    pub(crate) fn new(sender: SendRequest<Upload>, task: AbortHandle) -> Self {
        Self { sender, task }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that serves one request.
pub(crate) struct Lease {
    wire: Wire,
    pool: Arc<Pool>,
}

impl Lease {
    pub(crate) fn sender(&mut self) -> &mut SendRequest<Upload> {
        &mut self.wire.sender
    }

    /// For the next request.
    pub(crate) fn give_back(self) {
        self.pool.put(self.wire);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}
