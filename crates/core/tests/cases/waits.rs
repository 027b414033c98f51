//! What a denial says about the time.

use core::time::Duration;

use tidegate_core::Outcome;

use crate::script::{Bucket, S, check, roll};

/// The wait in whole seconds, as a header field says it: rounded up.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[test]
fn br_051_the_wait_is_never_short() {
    check(
        "3/min burst 1",
        "t=0     take -> allow
         t=500ms take -> deny, retry 19.5s
         t=19.6s take -> deny, retry 400ms
         t=20.5s take -> allow",
    );
    let (mut bucket, mut now_ns, mut dice) = (Bucket::new("3/min burst 1"), 0, 51u64);
    for _ in 0..10_000 {
        assert!(bucket.take(1, now_ns).is_allowed());
        now_ns += roll(&mut dice) % (20 * S);
        let wait_s = whole_seconds(bucket.take(1, now_ns).retry_after().expect("less than a token's time has passed"));
        assert!((1..=20).contains(&wait_s));
        now_ns += wait_s * S;
    }
}

#[test]
fn br_053_the_wait_is_for_one_token_not_for_all() {
    check(
        "1/s burst 5",
        "t=0 take x5 -> allow, 0 left
         t=0 take    -> deny, retry 1s, full in 5s, next in 1s",
    );
}

#[test]
fn br_055_a_wait_is_a_span_whatever_the_date() {
    check(
        "20/min",
        "t=1771404500s take x20 -> allow, 0 left
         t=1771404500s take     -> deny, retry 3s",
    );
}

#[test]
fn br_056_the_next_token_and_not_the_end_of_a_window() {
    check(
        "5/min",
        "t=0     take -> allow
         t=400ms take -> allow
         t=800ms take -> allow
         t=1.2s  take -> allow
         t=1.6s  take -> allow
         t=2s    take -> deny, retry 10s",
    );
}

#[test]
fn br_058_a_little_left_is_never_nothing() {
    check(
        "1/5ms",
        "t=0        take -> allow
         t=100us    take -> deny, retry 4.9ms
         t=4ms      take -> deny, retry 1ms
         t=4.6ms    take -> deny, retry 400us
         t=4.999999ms take -> deny, retry 1ns
         t=5ms      take -> allow",
    );
}

#[test]
fn br_060_allowed_denied_and_never_are_three_things() {
    let mut bucket = Bucket::new("1/300ms");
    assert_eq!(bucket.take(1, 0).retry_after(), None);
    assert_eq!(bucket.take(1, 0).outcome(), Outcome::Denied { retry_after: Duration::from_millis(300) });
    assert_eq!(bucket.take(2, 0).outcome(), Outcome::Never);
}

#[test]
fn br_137_a_wait_of_2300_ms() {
    check(
        "1/2300ms",
        "t=0 take -> allow
         t=0 take -> deny, retry 2300ms",
    );
}
