//! Limits that change while they are in use.

use core::time::Duration;

use crate::script::{Bucket, S, check};

#[test]
fn br_074_a_raised_limit_is_there_at_once() {
    check(
        "5/h",
        "t=0   take x5 -> allow, 0 left
         t=60s becomes 50/h
         t=60s take    -> allow, 44 left",
    );
}

#[test]
fn br_076_raised_before_the_first_request() {
    check(
        "10/min",
        "t=0 becomes 100/min
         t=0 take x50 -> allow, 50 left",
    );
}

#[test]
fn br_078_lowered_and_raised_again_refills_nobody() {
    check(
        "10/s",
        "t=0 take x3 -> allow, 7 left
         t=0 becomes 5/s
         t=0 take    -> allow, 1 left
         t=0 take    -> allow, 0 left
         t=0 take x8 -> deny, retry 200ms
         t=0 becomes 10/s
         t=0 take x5 -> allow, 0 left
         t=0 take    -> deny, retry 100ms",
    );
}

#[test]
fn br_079_the_same_file_again_changes_nothing() {
    let mut bucket = Bucket::new("1/min burst 3");
    assert!(bucket.take(3, 0).is_allowed());
    for t in 1..=11 {
        bucket.run("becomes 1/min burst 3", t * S);
        assert_eq!(bucket.take(1, t * S).retry_after(), Some(Duration::from_secs(60 - t)));
    }
}

#[test]
fn br_081_only_the_growth_passes() {
    check(
        "10/s",
        "t=0 take 10  -> allow, 0 left
         t=0 becomes 12/s
         t=0 take x2  -> allow, 0 left
         t=0 take x10 -> deny",
    );
}

#[test]
fn br_083_a_larger_limit_ends_a_denial() {
    check(
        "5/min",
        "t=0 take x5 -> allow
         t=0 take    -> deny, retry 12s
         t=0 becomes 100/min
         t=0 take    -> allow, 94 left",
    );
}

#[test]
fn br_084_what_was_used_stays_used() {
    check(
        "10/h",
        "t=0   take x10 -> allow, 0 left
         t=0   take x40 -> deny
         t=60s becomes 20/h
         t=60s take x10 -> allow, 0 left
         t=60s take x5  -> deny",
    );
}
