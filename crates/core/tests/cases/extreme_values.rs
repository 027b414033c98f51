//! The ends of every range.

use tidegate_core::State;

use crate::script::{Bucket, MS, check};

#[test]
fn br_036_long_idle_and_a_cost_of_the_whole_burst() {
    for idle in ["43200s", "1year", "100year"] {
        check(
            "1000000/s",
            &format!(
                "t=0      take 1000000 -> allow, 0 left
                 t={idle} take 1000000 -> allow, 0 left
                 t={idle} take         -> deny, retry 1000ns"
            ),
        );
    }
}

#[test]
fn br_038_fast_rates_are_exact() {
    let mut bucket = Bucket::new("8000/s burst 2");
    let calls = (0..5_000).flat_map(|t| [t * MS; 20]);
    assert_eq!(calls.filter(|at_ns| bucket.take(1, *at_ns).is_allowed()).count(), 10_000);
    for (limit, per_ms) in [("2000000/s burst 2000", 2_000), ("1000000000/s burst 2", 2)] {
        let mut bucket = Bucket::new(limit);
        assert_eq!((0..50).map(|t| bucket.drain(t * MS)).sum::<u64>(), 50 * per_ms);
    }
    let mut fastest = Bucket::new("1000000000/s burst 1");
    assert!((0..1_000).all(|at_ns| fastest.take(1, at_ns).is_allowed() && !fastest.take(1, at_ns).is_allowed()));
}

#[test]
fn br_040_zero_denies_from_the_first_request() {
    for limit in ["0/h", "windows of 0/h"] {
        check(
            limit,
            "t=0  take -> never, 0 left, full in 0
             t=0  look -> allow, 0 left
             t=2h take -> never",
        );
    }
}

#[test]
fn br_043_above_the_burst_is_never_and_takes_nothing() {
    for limit in ["300/min", "windows of 300/min"] {
        check(
            limit,
            "t=0 take 301 -> never, 300 left
             t=0 take     -> allow, 299 left",
        );
    }
}

#[test]
fn br_046_cost_zero_is_a_look() {
    check(
        "10/min",
        "t=0 look    -> allow, 10 left
         t=0 take 10 -> allow, 0 left
         t=0 look    -> allow, 0 left, full in 60s, next in 6s
         t=6s take   -> allow, 0 left",
    );
    let mut unused = Bucket::new("10/min");
    assert!(unused.take(0, 5).is_allowed());
    assert_eq!(unused.state, State::FULL);
}

#[test]
fn br_048_half_the_period_brings_half_the_count() {
    check(
        "2/min",
        "t=0       take -> allow, full in 30s
         t=0       take -> allow, full in 60s
         t=0       take -> deny, retry 30s
         t=29.999s take -> deny, retry 1ms
         t=30s     take -> allow",
    );
}

#[test]
fn br_050_the_largest_burst() {
    check(
        "1/s burst 4294967296",
        "t=0 look            -> allow, 4294967296 left
         t=0 take 4294967297 -> never
         t=0 take 4294967296 -> allow, 0 left, full in 4294967296s
         t=0 take            -> deny, retry 1s",
    );
}
