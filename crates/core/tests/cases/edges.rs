//! Bursts at the edge of a window, and after idle time.

use core::time::Duration;

use crate::script::{Bucket, MS, S, check, check_shifted};

#[test]
fn br_001_no_second_burst_behind_a_calendar_edge() {
    for shift_ns in [0, 1, 17 * MS, 99 * MS, 12_345 * MS, 3_600_000 * MS] {
        check_shifted(
            "10/min",
            "t=59.9s take x10 -> allow, 0 left
             t=60s   take     -> deny, retry 5.9s
             t=60s   take x9  -> deny, retry 5.9s",
            shift_ns,
        );
    }
}

#[test]
fn br_003_the_worst_minute_is_what_is_stated() {
    let mut bucket = Bucket::new("60/min");
    let passed = bucket.drain(0) + (1..60).map(|t| u64::from(bucket.take(1, t * S).is_allowed())).sum::<u64>();
    assert_eq!((passed, bucket.quota.most_within(Duration::from_secs(60))), (119, 120));

    let mut bucket = Bucket::new("60/min burst 1");
    let passed = (0..60).map(|t| bucket.drain(t * S)).sum::<u64>();
    assert_eq!((passed, bucket.quota.most_within(Duration::from_secs(60))), (60, 61));
}

#[test]
fn br_005_idle_time_brings_no_more_than_the_burst() {
    check(
        "5/s",
        "t=0  take x5 -> allow, 0 left
         t=0  take    -> deny, retry 200ms
         t=2s take x5 -> allow, 0 left
         t=2s take    -> deny, retry 200ms",
    );
}

#[test]
fn br_006_a_batch_is_as_much_as_its_parts() {
    check(
        "20/s burst 5",
        "t=0     take 5 -> allow, 0 left
         t=250ms take 5 -> allow, 0 left
         t=250ms take   -> deny, retry 50ms
         t=300ms take   -> allow
         t=300ms take   -> deny, retry 50ms",
    );
}

#[test]
fn br_008_after_an_hour_exactly_one_burst() {
    check(
        "10/s",
        "t=0      take x10 -> allow, 0 left
         t=1h     take     -> allow, 9 left
         t=1h     take x9  -> allow, 0 left
         t=1h     take x40 -> deny, retry 100ms",
    );
}

#[test]
fn fifty_nine_at_0_59_and_fifty_nine_at_1_01() {
    check(
        "windows of 59/min",
        "t=59s take x59 -> allow, 0 left
         t=59s take     -> deny, retry 1s
         t=61s take x59 -> allow, 0 left
         t=61s take     -> deny, retry 59s",
    );
    let mut bucket = Bucket::new("59/min");
    assert_eq!(bucket.drain(59 * S) + bucket.drain(61 * S), 60);
}
