//! Is the store worth asking?
//!
//! After a run of failures it is left alone: decisions fail at once, without a network call, until the link has
//! connected again and a probe was answered.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;

/// So many failures in a row, and the store is left alone.
pub const FAILURES_MAX: u32 = 5;

#[derive(Debug)]
pub(crate) struct Health {
    is_up: AtomicBool,
    failures: AtomicU32,
    gave_up: Notify,
}

impl Health {
    /// Nothing is known yet, so that the first decisions wait for the connection as long as their deadline.
    pub(crate) fn unknown() -> Self {
        Self { is_up: AtomicBool::new(true), failures: AtomicU32::new(0), gave_up: Notify::new() }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    pub(crate) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A decision failed in a way that speaks against the store.
    pub(crate) fn failed(&self) {
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
            self.down();
            self.gave_up.notify_one();
        }
    }

    pub(crate) fn down(&self) {
        self.is_up.store(false, Ordering::Relaxed);
    }

    pub(crate) fn up(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.is_up.store(true, Ordering::Relaxed);
    }

    /// Ready when decisions have failed so often that the connection is better made anew.
    pub(crate) async fn gave_up(&self) {
        self.gave_up.notified().await;
    }
}
