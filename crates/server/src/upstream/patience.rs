//! Waiting for an answer, but not for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::upstream::failure::Failure;
use crate::upstream::upload::Pace;

/// For how long which side may keep the other waiting before there is an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The upstream, with its answer or with taking the request's body.
    pub(crate) answer: Duration,
    /// The client, with a piece of that body.
    pub(crate) client: Duration,
}

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
        patience: Patience,
    }
}

impl<F> Patient<F> {
    pub(crate) fn new(answer: F, pace: Option<Arc<Pace>>, patience: Patience) -> Self {
        let timer = sleep(if pace.is_some() { patience.client } else { patience.answer });
        Self { answer, timer, pace, frames: 0, patience }
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
            this.timer.set(sleep(if clients_turn { this.patience.client } else { this.patience.answer }));
        }
    }
}
