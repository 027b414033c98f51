//! What callers saw, and what must hold of it.

use std::time::{Duration, Instant};

use tidegate::{FailureMode, HeldBy, Source};

use crate::callers::{DECLARED, LIMIT};
use crate::given::{law, quota};

/// One question and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The place in [`DECLARED`].
    pub(crate) declared: usize,
    pub(crate) at: Instant,
    pub(crate) took: Duration,
    pub(crate) source: Source,
    pub(crate) is_allowed: bool,
    pub(crate) held_by: Option<HeldBy>,
    /// When it was decided, on the clock of whoever decided.
    pub(crate) stamp_ns: u64,
}

/// All that was asked.
pub(crate) struct Seen {
    asked: Vec<Asked>,
}

impl Seen {
    pub(crate) fn new(asked: Vec<Asked>) -> Self {
        Self { asked }
    }

    /// How long the decisions took, in order.
    pub(crate) fn latencies(&self) -> Vec<Duration> {
        let mut latencies: Vec<_> = self.asked.iter().map(|asked| asked.took).collect();
        latencies.sort_unstable();
        latencies
    }

    pub(crate) fn count(&self, source: Source) -> usize {
        self.asked.iter().filter(|asked| asked.source == source).count()
    }

    /// When this source let calls of this limit pass, in order.
    fn passed_ns(&self, declared: usize, source: Source) -> Vec<u64> {
        let passed = self.asked.iter().filter(|one| one.is_allowed && one.declared == declared && one.source == source);
        let mut passed: Vec<_> = passed.map(|asked| asked.stamp_ns).collect();
        passed.sort_unstable();
        passed
    }

    /// The most tokens by which a window exceeded the law, of what the store itself let pass under one of the limits.
    pub(crate) fn excess(&self) -> u64 {
        let of = |declared| law::excess(&quota(LIMIT), &self.passed_ns(declared, Source::Store));
        (0..DECLARED.len()).map(of).max().unwrap_or(0)
    }

    /// While the store was away each limit did what it declared, and each had to.
    pub(crate) fn assert_declared(&self) {
        for (declared, mode) in DECLARED.iter().enumerate() {
            let alone = || self.asked.iter().filter(|one| one.declared == declared && one.source == Source::Fallback);
            assert!(alone().count() > 0, "{mode} was never asked for");
            match mode.parse().unwrap() {
                FailureMode::Allow => assert!(alone().all(|asked| asked.is_allowed), "allow lets all pass"),
                FailureMode::Deny => {
                    let is_denied = |asked: &Asked| !asked.is_allowed && asked.held_by == Some(HeldBy::StoreDown);
                    assert!(alone().all(is_denied), "deny lets none pass, and says why");
                }
                FailureMode::Local(fraction) => {
                    let passed_ns = self.passed_ns(declared, Source::Fallback);
                    assert!(!passed_ns.is_empty(), "local lets some pass");
                    assert_eq!(law::excess(&fraction.of(&quota(LIMIT)), &passed_ns), 0, "local lets its share pass");
                }
            }
        }
    }
}
