//! What is counted, and what is not.

use crate::script::{check, check_shifted};

#[test]
fn br_062_the_start_of_the_clock_does_not_matter() {
    for start_ns in [1, 7, 999_999_937] {
        check_shifted(
            "1/90ms burst 2",
            "t=0     take -> allow, 1 left
             t=1.7ms take -> allow, 0 left
             t=3.4ms take -> deny, retry 86.6ms
             t=90ms  take -> allow, 0 left",
            start_ns,
        );
    }
}

#[test]
fn br_069_a_request_that_can_never_pass_leaves_the_others_alone() {
    check(
        "10/min",
        "t=0 take 20  -> never, 10 left
         t=0 take x10 -> allow, 0 left",
    );
}

#[test]
fn br_163_used_and_remaining_stop_at_the_ends() {
    check(
        "5/min",
        "t=0 take x5 -> allow, 0 left
         t=0 take    -> deny, 0 left",
    );
}

#[test]
fn br_188_the_numbers_of_cl_throttle() {
    check(
        "30/min burst 16",
        "t=0 take     -> allow, 15 left, full in 2s
         t=0 take x15 -> allow, 0 left, full in 32s
         t=0 take     -> deny, 0 left, retry 2s, full in 32s",
    );
    check(
        "2/s burst 1",
        "t=0 take -> allow, 0 left, full in 500ms
         t=0 take -> deny, 0 left, retry 500ms, full in 500ms",
    );
}

#[test]
fn a_grant_gives_back_at_most_to_full() {
    for limit in ["10/min", "windows of 10/min"] {
        check(
            limit,
            "t=0 take 10 -> allow, 0 left
             t=0 grant 4
             t=0 take 5  -> deny, 4 left
             t=0 grant 100
             t=0 look    -> allow, 10 left, full in 0",
        );
    }
}
