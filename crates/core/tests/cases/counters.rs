//! The sliding counter: what was counted in the window before weighs on, exactly.

use crate::script::{Bucket, S, check};

#[test]
fn br_022_the_window_before_weighs_until_the_present_one_is_over() {
    check(
        "counters of 100/180s",
        "t=179s take x100 -> allow, 0 left
         t=300s look      -> allow, 66 left
         t=300s take x66  -> allow, 0 left
         t=300s take      -> deny, retry 600ms
         t=300.599999999s take -> deny, retry 1ns
         t=300.6s take    -> allow",
    );
}

#[test]
fn br_143_remaining_counts_the_window_before() {
    check(
        "counters of 100/100s",
        "t=99s  take 50  -> allow
         t=105s take 10  -> allow
         t=110s look     -> allow, 45 left
         t=110s take x45 -> allow, 0 left
         t=110s take     -> deny, retry 2s",
    );
}

#[test]
fn br_145_a_part_of_a_token_is_not_nothing() {
    check(
        "counters of 1/s",
        "t=990ms  take -> allow
         t=1010ms take -> deny, 0 left, retry 990ms
         t=1500ms take -> deny, 0 left, retry 500ms
         t=2s     take -> allow",
    );
}

#[test]
fn around_an_edge_a_window_passes_118_a_counter_59_and_a_token_bucket_60() {
    for (limit, expected) in [("windows of 59/min", 118), ("counters of 59/min", 59), ("59/min", 60)] {
        let mut bucket = Bucket::new(limit);
        let first = (0..59).filter(|_| bucket.take(1, 59 * S).is_allowed()).count();
        let second = (0..59).filter(|_| bucket.take(1, 61 * S).is_allowed()).count();
        assert_eq!((first, first + second), (59, expected), "{limit}");
    }
}

#[test]
fn who_never_pauses_gets_one_less_than_the_count_in_each_period() {
    let mut bucket = Bucket::new("counters of 20/s");
    let mut passed = |second: u64| (0..10_000).map(|i| bucket.drain(second * S + i * S / 10_000)).sum::<u64>();
    assert_eq!([0, 1, 2, 3, 4].map(&mut passed), [20, 19, 19, 19, 19]);
}
