//! Is a server worth asking?
//!
//! After a run of failures it is left alone: decisions fail at once, without a network call, until the link has
//! connected again and a probe was answered. Then one more failure is enough, until a decision is answered.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;

/// So many failures in a row, and the server is left alone.
pub const FAILURES_MAX: u32 = 5;

#[derive(Debug)]
pub(crate) struct Health {
    is_up: AtomicBool,
    /// Has a decision been answered since it is up?
    is_proven: AtomicBool,
    failures: AtomicU32,
    gave_up: Notify,
}

impl Health {
    /// Nothing is known yet, so that the first decisions wait for the connection as long as their deadline.
    pub(crate) fn unknown() -> Self {
        Self {
            is_up: AtomicBool::new(true),
            is_proven: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            gave_up: Notify::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.is_proven.load(Ordering::Relaxed)
    }

    /// A decision was answered. Is that news?
    pub(crate) fn answered(&self) -> bool {
        let is_news = self.failures.load(Ordering::Relaxed) > 0 || !self.is_proven();
        if is_news {
            self.failures.store(0, Ordering::Relaxed);
            self.is_proven.store(true, Ordering::Relaxed);
        }
        is_news
    }

    /// A decision failed in a way that speaks against the server.
    pub(crate) fn failed(&self) {
        if self.is_up() && self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
            self.down();
            self.gave_up.notify_one();
        }
    }

    pub(crate) fn down(&self) {
        self.is_up.store(false, Ordering::Relaxed);
    }

    /// It was connected to, and a probe was answered.
    pub(crate) fn up(&self) {
        let failures = self.failures.load(Ordering::Relaxed).min(FAILURES_MAX - 1);
        self.failures.store(failures, Ordering::Relaxed);
        self.is_proven.store(false, Ordering::Relaxed);
        self.is_up.store(true, Ordering::Relaxed);
    }

    /// Ready when decisions have failed so often that the connection is better made anew.
    pub(crate) async fn gave_up(&self) {
        // A notice may be left from a connection that is gone already.
        while self.is_up() {
            self.gave_up.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_run_of_failures_one_more_is_enough_until_a_decision_is_answered() {
        let health = Health::unknown();
        (1..FAILURES_MAX).for_each(|_| health.failed());
        assert!(health.is_up());
        health.answered();
        (1..FAILURES_MAX).for_each(|_| health.failed());
        assert!(health.is_up());
        health.failed();
        assert!(!health.is_up());
        health.failed();

        health.up();
        assert!(health.is_up() && !health.is_proven());
        health.failed();
        assert!(!health.is_up());

        health.up();
        health.answered();
        health.failed();
        assert!(health.is_up() && health.is_proven());
    }
}
