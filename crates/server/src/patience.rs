//! Waiting for an answer, but not for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::failure::Failure;
use crate::upload::Pace;

pin_project! {
    /// An answer that fails when it is overdue. As long as the request's body makes progress it is not.
    pub(crate) struct Patient<F> {
        #[pin]
        answer: F,
        #[pin]
        timer: Sleep,
        pace: Option<Arc<Pace>>,
        // The pace when the timer was set.
        frames: u32,
        answer_timeout: Duration,
        client_stall: Duration,
    }
}

impl<F> Patient<F> {
    pub(crate) fn new(answer: F, pace: Option<Arc<Pace>>, answer_timeout: Duration, client_stall: Duration) -> Self {
        let timer = sleep(if pace.is_some() { client_stall } else { answer_timeout });
        Self { answer, timer, pace, frames: 0, answer_timeout, client_stall }
    }
}

impl<F: Future> Future for Patient<F> {
    type Output = Result<F::Output, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(answer) = this.answer.poll(cx) {
            return Poll::Ready(Ok(answer));
        }
        loop {
            ready!(this.timer.as_mut().poll(cx));
            let Some(pace) = this.pace else { return Poll::Ready(Err(Failure::Silent)) };
            let clients_turn = pace.waits_for_client();
            if pace.frames() == *this.frames {
                return Poll::Ready(Err(if clients_turn { Failure::ClientStalled } else { Failure::Silent }));
            }
            *this.frames = pace.frames();
            this.timer.set(sleep(if clients_turn { *this.client_stall } else { *this.answer_timeout }));
        }
    }
}
