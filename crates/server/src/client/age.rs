//! The greatest age of a connection: clients that keep theirs for ever would stay with those processes that were there
//! first, also when others have come since.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::Bounds;
use crate::client::chance::spread;

/// What has come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aged {
    /// It is to end after the requests that it has.
    Old,
    /// It had its time for that.
    Over,
}

/// How old a connection may become; any age if nothing is said.
pub(crate) struct Age {
    timer: Option<Pin<Box<Sleep>>>,
    grace: Duration,
    is_old: bool,
}

impl Age {
    /// The age of a connection that begins now.
    pub(crate) fn new(bounds: &Bounds) -> Self {
        let timer = bounds.connection_age.map(|age| Box::pin(sleep(spread(age * 4 / 5, age))));
        Self { timer, grace: bounds.grace, is_old: false }
    }

    /// Ready when something has to be done. Call it whenever the connection is pending, from the same task.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Aged> {
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        if std::mem::replace(&mut self.is_old, true) {
            self.timer = None;
            return Poll::Ready(Aged::Over);
        }
        self.timer = Some(Box::pin(sleep(self.grace)));
        Poll::Ready(Aged::Old)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_told_first_and_cut_later() {
        let bounds = Bounds { connection_age: Some(Duration::from_secs(10)), ..Bounds::default() };
        let (mut age, start) = (Age::new(&bounds), tokio::time::Instant::now());
        assert_eq!(poll_fn(|cx| age.poll(cx)).await, Aged::Old);
        let old = start.elapsed();
        assert!((Duration::from_secs(8)..=Duration::from_millis(10_001)).contains(&old), "{old:?}");
        assert_eq!(poll_fn(|cx| age.poll(cx)).await, Aged::Over);
        assert!(start.elapsed() - old >= bounds.grace);
        assert!(poll_fn(|cx| Poll::Ready(age.poll(cx))).await.is_pending());
        assert!(poll_fn(|cx| Poll::Ready(Age::new(&Bounds::default()).poll(cx))).await.is_pending());
    }
}
