//! Nothing is lost to rounding, and nothing is made up.

use crate::script::{Bucket, MS, S, check, roll};

#[test]
fn br_010_the_wait_is_exact_to_the_nanosecond() {
    check(
        "1/h",
        "t=0       take -> allow
         t=3599.999s take -> deny, retry 1ms
         t=1h      take -> allow",
    );
    let (mut bucket, mut now_ns, mut dice) = (Bucket::new("1/h"), 0, 10u64);
    for _ in 0..10_000 {
        assert!(bucket.take(1, now_ns).is_allowed());
        now_ns += roll(&mut dice) % (3_600 * S);
        let wait = bucket.take(1, now_ns).retry_after().expect("less than a period has passed");
        now_ns += u64::try_from(wait.as_nanos()).expect("less than an hour");
        assert!(!bucket.take(1, now_ns - 1).is_allowed());
    }
}

#[test]
fn br_012_polling_does_not_change_what_comes_back() {
    let mut bucket = Bucket::new("10/s");
    assert!(bucket.take(10, 0).is_allowed());
    let passed: Vec<u64> = (1..=100).map(|t| 10 * t).filter(|t| bucket.take(1, t * MS).is_allowed()).collect();
    assert_eq!(passed, (1..=10).map(|n| 100 * n).collect::<Vec<_>>());
}

#[test]
fn br_014_a_saturated_run_admits_exactly_what_the_law_permits() {
    let mut bucket = Bucket::new("1000/s");
    let offered = (0..10_000).flat_map(|t| [t * MS; 5]);
    assert_eq!(offered.filter(|at_ns| bucket.take(1, *at_ns).is_allowed()).count(), 10_999);
}

#[test]
fn br_015_a_denial_does_not_push_the_refill_back() {
    let mut bucket = Bucket::new("1/s");
    let passed: Vec<bool> = (0..9).map(|n| bucket.take(1, n * 600 * MS).is_allowed()).collect();
    assert_eq!(passed, [true, false, true, false, true, false, true, false, true]);
}

#[test]
fn br_024_what_is_denied_does_not_prolong_the_denial() {
    let mut slow = Bucket::new("10/min");
    assert!((0..360).all(|n| slow.take(1, n * 10 * S).is_allowed()));
    check(
        "10/min",
        "t=0   take x10 -> allow, 0 left
         t=0   take     -> deny, retry 6s",
    );
    let mut late = Bucket::new("10/min");
    assert_eq!(late.drain(0), 10);
    assert!((1..=360).all(|n| late.take(1, n * 10 * S).is_allowed()));
}
