//! The one timer of a connection: it ends what is too slow, and what nobody uses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::Bounds;
use crate::client::chance::spread;
use crate::client::progress::{Phase, Progress};

/// After so long without anything happening a connection of HTTP/1.1 is at rest; by chance, so that thousands that fell
/// silent together do not lie down together.
const REST_AFTER: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(6));

/// The time that a client of many streams is given to hear that its idle connection ends.
const WARNED: Duration = Duration::from_secs(5);

/// What the watchdog found.
pub(crate) enum Bite {
    /// A header section that did not end in time.
    Slow,
    /// A connection on which nothing has happened for a while.
    Quiet,
    /// A connection that nobody uses.
    Idle,
    /// The same, of a client that has to be warned, since its next request may be on its way. It is idle if it is still
    /// there after a while.
    Warning,
}

pin_project! {
    /// Looks at the progress when its timer fires.
    pub(crate) struct Watchdog {
        progress: Arc<Progress>,
        header_timeout: Duration,
        idle_timeout: Duration,
        rest_after: Duration,
        watched: (Phase, u32),
        #[pin]
        timer: Sleep,
        // The timer knows whom to wake.
        is_set: bool,
        // It was found quiet, and nothing has happened since.
        is_quiet: bool,
        has_warned: bool,
    }
}

impl Watchdog {
    pub(crate) fn new(progress: Arc<Progress>, bounds: &Bounds) -> Self {
        Self {
            watched: (Phase::Head, progress.requests()),
            progress,
            header_timeout: bounds.header_timeout,
            idle_timeout: bounds.idle_timeout,
            rest_after: spread(REST_AFTER.0, REST_AFTER.1),
            timer: sleep(bounds.header_timeout),
            is_set: false,
            is_quiet: false,
            has_warned: false,
        }
    }

    /// Ready when something has to be done. Call it whenever the connection is pending, from the same task.
    pub(crate) fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Bite> {
        let present = (self.progress.phase(), self.progress.requests());
        let was = self.watched;
        let has_begun = present.0 == Phase::Head && was != present;
        let has_ended = was.0 == Phase::Head && present.0 != Phase::Head;
        let was_roused = self.is_quiet && was != present;
        if has_begun || has_ended || was_roused {
            let wait = if has_begun { self.header_timeout } else { self.patience(present.0) };
            self.as_mut().watch(present, wait);
        }
        loop {
            let this = self.as_mut().project();
            if *this.is_set && !this.timer.is_elapsed() {
                return Poll::Pending;
            }
            *this.is_set = true;
            ready!(this.timer.poll(cx));
            let is_same = self.watched == present;
            match present.0 {
                Phase::Head => return Poll::Ready(Bite::Slow),
                Phase::Idle if is_same => return Poll::Ready(self.as_mut().idle()),
                // Something happened since, or is happening; look again later.
                Phase::Idle | Phase::Busy | Phase::Upgraded => {
                    let wait = self.patience(present.0);
                    self.as_mut().watch(present, wait);
                }
            }
        }
    }

    /// What to do about a connection that was idle all the while.
    fn idle(mut self: Pin<&mut Self>) -> Bite {
        let (watched, idle_timeout) = (self.watched, self.idle_timeout);
        if self.progress.is_multiplexed() && !self.has_warned {
            self.as_mut().watch(watched, WARNED);
            *self.project().has_warned = true;
            return Bite::Warning;
        }
        if self.patience(watched.0) < idle_timeout && !self.is_quiet {
            self.as_mut().watch(watched, idle_timeout);
            *self.project().is_quiet = true;
            return Bite::Quiet;
        }
        Bite::Idle
    }

    /// How long to wait until the next look at it.
    fn patience(&self, phase: Phase) -> Duration {
        let may_rest = phase != Phase::Upgraded && !self.progress.is_multiplexed();
        if may_rest && self.idle_timeout >= 2 * REST_AFTER.1 { self.rest_after } else { self.idle_timeout }
    }

    /// Looks again after this time, to see whether it is still like this.
    fn watch(self: Pin<&mut Self>, present: (Phase, u32), wait: Duration) {
        let mut this = self.project();
        *this.watched = present;
        *this.is_quiet = false;
        *this.is_set = false;
        this.timer.set(sleep(wait));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::time::{Instant, advance};

    use super::*;

    fn watching(progress: &Arc<Progress>) -> Watchdog {
        let bounds = Bounds { idle_timeout: Duration::from_secs(75), ..Bounds::default() };
        Watchdog::new(Arc::clone(progress), &bounds)
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_uses_is_quiet_first_and_closed_later() {
        let progress = Arc::new(Progress::new());
        let mut watchdog = pin!(watching(&progress));
        drop(progress.request_came(false));
        let start = Instant::now();
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Quiet));
        let quiet = start.elapsed();
        assert!((REST_AFTER.0..REST_AFTER.1 * 2).contains(&quiet), "{quiet:?}");
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Idle));
        let idle = start.elapsed() - quiet;
        assert!((Duration::from_secs(75)..Duration::from_secs(76)).contains(&idle), "{idle:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_used_again_is_quiet_again() {
        let progress = Arc::new(Progress::new());
        let mut watchdog = pin!(watching(&progress));
        for _ in 0..3 {
            let start = Instant::now();
            drop(progress.request_came(false));
            assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Quiet));
            assert!(start.elapsed() < REST_AFTER.1 * 2, "{:?}", start.elapsed());
            advance(Duration::from_secs(30)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_idle_timeout_leaves_no_time_to_rest() {
        let progress = Arc::new(Progress::new());
        let bounds = Bounds { idle_timeout: Duration::from_secs(1), ..Bounds::default() };
        let mut watchdog = pin!(Watchdog::new(Arc::clone(&progress), &bounds));
        drop(progress.request_came(false));
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_section_has_its_time_and_no_more() {
        let progress = Arc::new(Progress::new());
        let mut watchdog = pin!(watching(&progress));
        drop(progress.request_came(false));
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Quiet));
        progress.bytes_came();
        let start = Instant::now();
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Slow));
        assert!(start.elapsed() >= Bounds::default().header_timeout);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_many_streams_is_warned_and_never_rests() {
        let progress = Arc::new(Progress::new());
        progress.multiplexes();
        let mut watchdog = pin!(watching(&progress));
        let start = Instant::now();
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Warning));
        assert!(start.elapsed() >= Duration::from_secs(75));
        assert!(matches!(poll_fn(|cx| watchdog.as_mut().poll(cx)).await, Bite::Idle));
    }
}
