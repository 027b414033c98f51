//! Waiting for one's turn: first come, first served, bounded, and cancelled without loss.
#![cfg(feature = "wait")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Clock, Limiter, Memory, Time, WaitError};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, timeout};

/// The paused clock of the runtime, so that sleeping and deciding go by the same time.
#[derive(Clone)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}

fn limiter(limit: &str) -> Arc<Limiter<Memory<RuntimeClock>>> {
    let builder = Limiter::builder().limit("limit", limit.parse().unwrap()).keys(1_000);
    Arc::new(builder.clock(RuntimeClock(Instant::now())).build())
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn br_159_each_waiter_passes_with_a_token_or_fails_in_time() {
    let limiter = limiter("10/s");
    let start = Instant::now();
    let mut waiters = JoinSet::new();
    for _ in 0..100 {
        let limiter = Arc::clone(&limiter);
        waiters.spawn(async move {
            let passed = limiter.wait("key", 1, Duration::from_secs(5)).await;
            (passed.map_err(|error| matches!(error, WaitError::TooLong)), start.elapsed())
        });
    }
    let ended = waiters.join_all().await;
    let mut served: Vec<_> = ended.iter().filter(|(passed, _)| passed.is_ok()).map(|(_, at)| at.as_millis()).collect();
    served.sort_unstable();
    assert!((59..=60).contains(&served.len()), "{} were served", served.len());
    assert!(served[..10].iter().all(|at| *at < 2), "ten at once: {served:?}");
    for (i, at) in served[10..].iter().enumerate() {
        let due = (i as u128 + 1) * 100;
        assert!((due..=due + 2).contains(at), "waiter {i} behind the burst passed at {at} ms");
    }
    for (passed, at) in &ended {
        if let Err(is_too_long) = passed {
            assert!(*is_too_long && *at <= Duration::from_millis(5_002));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn br_156_waiters_who_queue_again_are_served_in_turn() {
    let limiter = limiter("300/min burst 1");
    let start = Instant::now();
    let grants = Rc::new(RefCell::new([0_u32; 100]));
    let longest = Rc::new(RefCell::new(Duration::ZERO));
    let local = LocalSet::new();
    for i in 0..100 {
        let (limiter, grants, longest) = (Arc::clone(&limiter), Rc::clone(&grants), Rc::clone(&longest));
        local.spawn_local(async move {
            while start.elapsed() < Duration::from_secs(120) {
                let asked = Instant::now();
                assert!(limiter.wait("key", 1, 5 * MINUTE).await.unwrap().is_allowed());
                grants.borrow_mut()[i] += 1;
                let mut longest = longest.borrow_mut();
                *longest = asked.elapsed().max(*longest);
            }
        });
    }
    local.await;
    let grants = grants.borrow();
    let (least, most) = (grants.iter().min().unwrap(), grants.iter().max().unwrap());
    assert!(most - least <= 2, "between {least} and {most} grants");
    // 100 turns of 200 ms; the timer rounds each up by at most a millisecond.
    assert!(*longest.borrow() <= Duration::from_millis(20_100), "the longest wait was {:?}", longest.borrow());
}

#[tokio::test(start_paused = true)]
async fn br_158_waiting_on_one_key_holds_up_nobody_else_and_a_cancelled_waiter_takes_nothing() {
    let limiter = limiter("1/s burst 1");
    assert!(limiter.check("a").is_allowed());
    let waiter = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.wait("a", 1, MINUTE).await.is_ok() }
    });
    let ticks = tokio::spawn(async {
        for _ in 0..40 {
            sleep(Duration::from_millis(10)).await;
        }
    });
    for i in 0..100 {
        assert!(limiter.wait(&("b", i), 1, Duration::ZERO).await.is_ok(), "another key has its tokens");
    }
    sleep(Duration::from_millis(500)).await;
    assert!(ticks.is_finished());
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    sleep(Duration::from_millis(500)).await;
    assert!(limiter.check("a").is_allowed(), "the token that was waited for is still there");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_the_middle_of_the_line_gives_its_place_to_the_next() {
    let limiter = limiter("1/s burst 1");
    assert!(limiter.check("a").is_allowed());
    let wait = |at_most| {
        let limiter = Arc::clone(&limiter);
        async move { limiter.wait("a", 1, at_most).await.map(|_| Instant::now()) }
    };
    let start = Instant::now();
    let first = tokio::spawn(wait(MINUTE));
    tokio::task::yield_now().await;
    let second = tokio::spawn(wait(MINUTE));
    tokio::task::yield_now().await;
    let third = tokio::spawn(wait(MINUTE));
    sleep(Duration::from_millis(10)).await;
    second.abort();
    let passed = [first.await.unwrap().unwrap(), third.await.unwrap().unwrap()].map(|at| (at - start).as_millis());
    assert!((1_000..1_010).contains(&passed[0]) && (2_000..2_010).contains(&passed[1]), "{passed:?}");
}

#[tokio::test(start_paused = true)]
async fn what_can_never_pass_or_comes_too_late_fails_at_once() {
    let limiter = limiter("60/min burst 5");
    let start = Instant::now();
    assert!(matches!(limiter.wait("a", 6, MINUTE).await, Err(WaitError::Never)));
    assert!(limiter.wait("a", 5, MINUTE).await.is_ok());
    assert!(matches!(limiter.wait("a", 2, Duration::from_millis(1_999)).await, Err(WaitError::TooLong)));
    assert!(start.elapsed() < Duration::from_millis(1), "nobody slept");
    assert_eq!(limiter.peek("a").remaining(), Some(0));
    assert!(limiter.wait("a", 2, Duration::from_secs(2)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn br_043_a_waiter_for_more_than_the_burst_fails_at_once_and_under_no_limit_passes() {
    assert!(matches!(limiter("300/min").wait("a", 301, MINUTE).await, Err(WaitError::Never)));
    assert!(matches!(limiter("0/min").wait("a", 1, MINUTE).await, Err(WaitError::Never)));
    assert!(limiter("unlimited").wait("a", 301, MINUTE).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_cut_by_an_outer_time_out_takes_nothing() {
    let limiter = limiter("1/s burst 1");
    assert!(limiter.check("a").is_allowed());
    for _ in 0..9 {
        assert!(timeout(Duration::from_millis(100), limiter.wait("a", 1, MINUTE)).await.is_err());
    }
    sleep(Duration::from_millis(110)).await;
    assert!(limiter.check("a").is_allowed());
}
