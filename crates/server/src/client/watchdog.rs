//! The one timer of a connection: it ends what is too slow, and what nobody uses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::Bounds;
use crate::client::progress::{Phase, Progress};

/// The time that a client of many streams is given to hear that its idle connection ends.
const WARNED: Duration = Duration::from_secs(5);

/// What the watchdog found.
pub(crate) enum Bite {
    /// A header section that did not end in time.
    Slow,
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
        watched: (Phase, u32),
        #[pin]
        timer: Sleep,
        // The timer knows whom to wake.
        is_set: bool,
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
            timer: sleep(bounds.header_timeout),
            is_set: false,
            has_warned: false,
        }
    }

    /// Ready when the connection has to end. Call it whenever the connection is pending, from the same task.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Bite> {
        let mut this = self.project();
        let present = (this.progress.phase(), this.progress.requests());
        if present.0 == Phase::Head && *this.watched != present {
            *this.watched = present;
            this.timer.set(sleep(*this.header_timeout));
            *this.is_set = false;
        }
        loop {
            if *this.is_set && !this.timer.is_elapsed() {
                return Poll::Pending;
            }
            *this.is_set = true;
            ready!(this.timer.as_mut().poll(cx));
            *this.is_set = false;
            let was_watched = std::mem::replace(this.watched, present) == present;
            match present.0 {
                Phase::Head => return Poll::Ready(Bite::Slow),
                Phase::Idle if *this.has_warned => return Poll::Ready(Bite::Idle),
                Phase::Idle if was_watched && this.progress.is_multiplexed() => {
                    *this.has_warned = true;
                    this.timer.set(sleep(WARNED));
                    return Poll::Ready(Bite::Warning);
                }
                Phase::Idle if was_watched => return Poll::Ready(Bite::Idle),
                // Something happened since, or is happening; look again later.
                Phase::Idle | Phase::Busy | Phase::Upgraded => this.timer.set(sleep(*this.idle_timeout)),
            }
        }
    }
}
