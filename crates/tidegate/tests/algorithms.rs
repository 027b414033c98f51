//! The algorithms side by side, as users of a limiter meet them.

use std::time::Duration;

use tidegate::{Algorithm, Limit, Limiter, ManualClock, Memory, Time};

fn limiter(limit: &str, algorithm: Algorithm) -> (Limiter<Memory<ManualClock>>, ManualClock) {
    let quota = limit.parse::<Limit>().unwrap().quota().unwrap().with_algorithm(algorithm).unwrap();
    let clock = ManualClock::new();
    (Limiter::builder().keys(1_000).limit("limit", quota.into()).clock(clock.clone()).build(), clock)
}

fn passed(limiter: &Limiter<Memory<ManualClock>>, asked: usize) -> usize {
    (0..asked).filter(|_| limiter.check("key").is_allowed()).count()
}

#[test]
fn of_59_at_0_59_and_59_at_1_01_each_algorithm_passes_what_it_says() {
    let expected = [
        (Algorithm::FixedWindow, 118),
        (Algorithm::SlidingLog, 59),
        (Algorithm::SlidingCounter, 59),
        (Algorithm::TokenBucket, 60),
    ];
    for (algorithm, expected) in expected {
        let (limiter, clock) = limiter("59/min", algorithm);
        clock.set(Time::from_secs(59));
        let first = passed(&limiter, 59);
        clock.set(Time::from_secs(61));
        assert_eq!((first, first + passed(&limiter, 59)), (59, expected), "{algorithm}");
    }
}

#[test]
fn br_022_the_window_before_weighs_until_the_present_one_is_over() {
    let (limiter, clock) = limiter("100/180s", Algorithm::SlidingCounter);
    clock.set(Time::from_secs(179));
    assert_eq!(passed(&limiter, 100), 100);
    clock.set(Time::from_secs(300));
    assert_eq!(passed(&limiter, 70), 66);
    assert_eq!(limiter.check("key").retry_after(), Some(Duration::from_millis(600)));
}

#[test]
fn br_061_the_wait_of_a_log_ends_when_the_oldest_leaves() {
    let (limiter, clock) = limiter("3/10s", Algorithm::SlidingLog);
    for second in [0, 4, 8] {
        clock.set(Time::from_secs(second));
        assert!(limiter.check("key").is_allowed());
    }
    clock.set(Time::from_secs(9));
    assert_eq!(limiter.check("key").retry_after(), Some(Duration::from_secs(1)));
    clock.set(Time::from_secs(10));
    assert!(limiter.check("key").is_allowed());
    assert_eq!(limiter.check("key").retry_after(), Some(Duration::from_secs(4)));
}
