//! The one place in the workspace that reads a clock.
//!
//! Everything else takes the time as an argument, or asks a [`Clock`] that it was given.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_core::Time;

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The time. It may stand still; it must not run backwards.
    fn now(&self) -> Time;
}

/// The machine's monotonic clock. Copies of it agree.
///
/// Its epoch is that of Unix, read once when the clock is made, so that fixed windows begin with the minute on the
/// wall. From then on it counts on its own: setting the machine's date moves it neither forward nor back.
#[derive(Clone)]
pub struct SystemClock {
    clock: quanta::Clock,
    start: quanta::Instant,
    start_ns: u64,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: clock.now(), clock, start_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(0) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Time {
        let elapsed = self.clock.now().saturating_duration_since(self.start);
        // 64 bits of nanoseconds: the rest of this century and four more.
        Time::from_nanos(
            self.start_ns.wrapping_add(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())),
        )
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock").finish_non_exhaustive()
    }
}

/// A clock that moves when it is told to. Clones of it are the same clock.
///
/// ```
/// use std::time::Duration;
/// use tidegate::{Clock, ManualClock, Time};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), Time::from_secs(60));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    ns: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at [`Time::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().saturating_add(span));
    }

    /// Moves the clock to `time`; a time that has passed already leaves it where it is.
    pub fn set(&self, time: Time) {
        self.ns.fetch_max(time.as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.ns.load(Ordering::SeqCst))
    }
}
