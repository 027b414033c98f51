//! A client that waits for its turn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate::{Clock, Limiter, Time, WaitError};
use tidegate_http::{WaitLayer, WaitServiceError};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::given::{Hello, get};

/// The runtime's clock, which a paused runtime moves on when all tasks sleep.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Time {
        Time::ZERO.saturating_add(self.0.elapsed())
    }
}

fn limiter(limit: &str) -> Arc<Limiter<tidegate::Memory<Paused>>> {
    Arc::new(Limiter::builder().limit("out", limit.parse().unwrap()).clock(Paused(Instant::now())).build())
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_when_their_turn_comes() {
    let hello = Hello::default();
    let service = WaitLayer::new(limiter("10/s burst 1"), (), Duration::from_secs(5)).layer(hello.clone());
    let start = Instant::now();
    let sent = join_all((0..5).map(|_| {
        let service = service.clone();
        async move {
            service.oneshot(get("/")).await.unwrap();
            start.elapsed().as_millis()
        }
    }));
    let sent = sent.await;
    assert_eq!(sent, [0, 100, 200, 300, 400]);
    assert_eq!(hello.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn br_159_whoever_would_wait_too_long_fails_and_sends_nothing() {
    let hello = Hello::default();
    let service = WaitLayer::new(limiter("10/s burst 10"), (), Duration::from_secs(5)).layer(hello.clone());
    let answers = join_all((0..100).map(|_| service.clone().oneshot(get("/")))).await;
    let served = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(matches!(served, 59 | 60), "{served}");
    assert_eq!(hello.count(), served);
    let late = answers.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(late, WaitServiceError::Wait(WaitError::TooLong)), "{late:?}");
    assert_eq!(late.to_string(), "the request was not sent: its turn did not come");
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_sent_fails_at_once() {
    let hello = Hello::default();
    let service = WaitLayer::new(limiter("0/s"), (), Duration::from_secs(5)).layer(hello.clone());
    let start = Instant::now();
    let error = service.oneshot(get("/")).await.unwrap_err();
    assert!(matches!(error, WaitServiceError::Wait(WaitError::Never)), "{error:?}");
    assert_eq!((start.elapsed(), hello.count()), (Duration::ZERO, 0));
}
