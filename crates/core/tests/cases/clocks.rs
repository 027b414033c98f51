//! Clocks that step back.

use crate::script::{Bucket, S, check, roll};

#[test]
fn br_028_a_clock_that_steps_back_gives_and_takes_nothing() {
    check(
        "1/s burst 10",
        "t=20s     take x3 -> allow, 7 left
         t=11s     take    -> allow, 6 left
         t=20.001s take    -> allow, 5 left",
    );
    check(
        "1/s burst 10",
        "t=20s     take x3 -> allow, 7 left
         t=9s      take    -> allow, 6 left
         t=20.001s take    -> allow, 9 left",
    );
}

#[test]
fn br_030_two_days_back_is_repaired_by_a_denial() {
    check(
        "5/s",
        "t=200000s take x5 -> allow, 0 left
         t=27200s  take    -> deny, retry 200ms
         t=27201s  take x5 -> allow, 0 left",
    );
}

/// The wait is at most the time to fill and that of the cost, and true on a clock that then runs steadily.
///
/// Between two steps of its stamp a bucket can show a deficit above its burst, as one that is in debt does. Where the
/// clock steps back the core takes the one for the other, so that no debt is lost: up to a step is waited for twice.
#[test]
fn br_032_a_jumping_clock_never_locks_anyone_out() {
    let steps_ns = [1_000_000, S, 60 * S, S].map(u128::from);
    let limits = ["2000/s burst 5000", "1999/s burst 5000", "59/min burst 2", "999999937/s burst 5"];
    for (limit, step_ns) in limits.into_iter().zip(steps_ns) {
        for seed in 0..20 {
            let (mut bucket, mut now_ns, mut dice) = (Bucket::new(limit), 3_600 * S, seed);
            let fill_ns = bucket.quota.time_to_fill().as_nanos();
            let cost_ns = fill_ns / u128::from(bucket.quota.burst()) + 2;
            let wait_max = fill_ns + cost_ns + 2 * step_ns.min(fill_ns);
            for call in 0..5_000 {
                now_ns = (now_ns + roll(&mut dice) % (20 * S)).saturating_sub(10 * S).max(100 * S);
                if call % 10 == 0 {
                    let left = bucket.take(0, now_ns).remaining();
                    assert!(bucket.take(left, now_ns).is_allowed());
                }
                let Some(wait) = bucket.take(1, now_ns).retry_after() else { continue };
                assert!(wait.as_nanos() <= wait_max, "{limit}: wait {wait:?}");
                let then_ns = now_ns + u64::try_from(wait.as_nanos()).expect("at most the bound");
                let state = bucket.state;
                assert!(!bucket.take(1, then_ns - 1).is_allowed());
                assert!(bucket.take(1, then_ns).is_allowed());
                bucket.state = state;
            }
        }
    }
    let (mut fresh, mut now_ns) = (Bucket::new("2000/s burst 5000"), 50 * S);
    for step_s in [9, -10, 3, 10, -1, -9, 0, 7, -7, -10] {
        now_ns = now_ns.saturating_add_signed(step_s * 1_000_000_000);
        assert!(fresh.take(1, now_ns).is_allowed());
    }
}

#[test]
fn br_033_the_ends_of_time() {
    check(
        "10/s",
        "t=1s    take     -> allow, 9 left
         t=999ms take     -> allow, 8 left
         t=0     take     -> allow, 7 left
         t=end   take     -> allow, 9 left
         t=0     take     -> allow, 8 left
         t=1s    take x10 -> allow, 0 left",
    );
}
