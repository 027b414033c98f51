//! Faults that users of other limiters reported, each as a script that shows it does not happen here.
//!
//! A script is a list of lines; `take` costs 1 unless it says otherwise, and `x N` asks N times with the same answer:
//!
//! ```text
//! t=59.9s  take x10          -> allow, 0 left      the last of the ten leaves none
//! t=60s    take 2            -> deny, retry 5.9s
//! t=60s    take 11           -> never
//! t=61s    look              -> allow, 3 left, full in 4s
//! t=61s    becomes 5/min
//! t=61s    grant 2
//! ```

use core::time::Duration;

use tidegate_core::{Algorithm, Cost, Decision, Limit, Outcome, Quota, State, Time, carry_over, decide, grant};

mod several;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// `5.9s`, `100ms`, `1ns`, `0`, `end` for the last instant.
fn nanoseconds(text: &str) -> u64 {
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let unit_ns: u64 = match unit {
        "end" => return u64::MAX,
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => MS,
        "s" => S,
        "min" => 60 * S,
        "h" => 3_600 * S,
        "year" => 365 * 86_400 * S,
        _ => panic!("no unit of time: {text}"),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |digits: &str| if digits.is_empty() { 0 } else { digits.parse::<u64>().expect("digits") };
    let parts = 10u64.pow(u32::try_from(fraction.len()).expect("few digits"));
    number(whole) * unit_ns + number(fraction) * unit_ns / parts
}

/// A bucket under test, and its quota, which a script may change.
struct Bucket {
    quota: Quota,
    state: State,
}

impl Bucket {
    fn new(limit: &str) -> Self {
        Self { quota: quota(limit), state: State::FULL }
    }

    fn take(&mut self, cost: u64, at_ns: u64) -> Decision {
        let (decision, next) = decide(&self.quota, self.state, Cost::new(cost), Time::from_nanos(at_ns));
        self.state = next;
        decision
    }

    /// Asks for one after the other until one is denied; how many passed.
    fn drain(&mut self, at_ns: u64) -> u64 {
        (0..).find(|_| !self.take(1, at_ns).is_allowed()).unwrap_or(0)
    }

    /// Runs one line of a script, `at_ns` being its time; says what came out where the line says what should.
    fn run(&mut self, action: &str, at_ns: u64) -> Option<Decision> {
        let now = Time::from_nanos(at_ns);
        match action.split_whitespace().collect::<Vec<_>>()[..] {
            ["take"] => Some(self.take(1, at_ns)),
            ["take", cost] => Some(self.take(cost.parse().expect("a cost"), at_ns)),
            ["look"] => Some(self.take(0, at_ns)),
            ["grant", tokens] => {
                self.state = grant(&self.quota, self.state, tokens.parse().expect("tokens"), now);
                None
            }
            ["becomes", ..] => {
                let new = quota(action.trim_start_matches("becomes").trim());
                self.state = carry_over(&self.quota, &new, self.state, now);
                self.quota = new;
                None
            }
            _ => panic!("no action: {action}"),
        }
    }
}

/// `60/min burst 10`, or `windows of 60/min`.
fn quota(limit: &str) -> Quota {
    let (limit, algorithm) = match limit.strip_prefix("windows of ") {
        Some(limit) => (limit, Algorithm::FixedWindow),
        None => (limit, Algorithm::TokenBucket),
    };
    let limit: Limit = limit.parse().unwrap_or_else(|error| panic!("{error}"));
    limit.quota().expect("a limit that charges").with_algorithm(algorithm).expect("a limit for this algorithm")
}

/// Runs a script against a bucket that was never used.
#[track_caller]
fn check(limit: &str, script: &str) {
    check_shifted(limit, script, 0);
}

/// The same with all times moved on by `shift_ns`.
#[track_caller]
fn check_shifted(limit: &str, script: &str, shift_ns: u64) {
    let mut bucket = Bucket::new(limit);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (call, expected) = line.split_once("->").map_or((line, None), |(call, rest)| (call, Some(rest)));
        let (at, action) = call.trim().split_once(' ').expect("a time and an action");
        let at_ns = nanoseconds(at.strip_prefix("t=").expect("t=")).saturating_add(shift_ns);
        let (action, times) =
            action.rsplit_once(" x").map_or((action, 1), |(action, n)| (action, n.trim().parse().expect("x N")));
        let decision = (0..times).map(|_| bucket.run(action, at_ns)).last().flatten();
        match (expected, decision) {
            (Some(expected), Some(decision)) => check_answer(line, expected, &decision),
            (None, None) => {}
            _ => panic!("an answer belongs to a request: {line}"),
        }
    }
}

#[track_caller]
fn check_answer(line: &str, expected: &str, decision: &Decision) {
    for claim in expected.split(',').map(str::trim) {
        let true_ = match claim.split_whitespace().collect::<Vec<_>>()[..] {
            ["allow"] => decision.is_allowed(),
            ["deny"] => !decision.is_allowed() && !decision.is_never(),
            ["never"] => decision.outcome() == Outcome::Never && decision.retry_after().is_none(),
            [left, "left"] => decision.remaining() == left.parse::<u64>().expect("a number"),
            ["retry", wait] => decision.retry_after() == Some(Duration::from_nanos(nanoseconds(wait))),
            ["full", "in", span] => decision.reset_after() == Duration::from_nanos(nanoseconds(span)),
            ["next", "in", span] => decision.next_token_after() == Duration::from_nanos(nanoseconds(span)),
            _ => panic!("no claim: {claim}"),
        };
        assert!(
            true_,
            "{line}: it was {:?}, {} left, full in {:?}, next in {:?}",
            decision.outcome(),
            decision.remaining(),
            decision.reset_after(),
            decision.next_token_after(),
        );
    }
}

// Bursts at an edge.

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

// Precision.

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
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now_ns += (dice >> 11) % (3_600 * S);
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

// Clocks.

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
#[test]
fn br_032_a_jumping_clock_never_locks_anyone_out() {
    for limit in ["2000/s burst 5000", "1999/s burst 5000", "59/min burst 2", "999999937/s burst 5"] {
        for seed in 0..20 {
            let (mut bucket, mut now_ns, mut dice) = (Bucket::new(limit), 3_600 * S, seed);
            let cost_ns = bucket.quota.time_to_fill().as_nanos() / u128::from(bucket.quota.burst()) + 2;
            let wait_max = bucket.quota.time_to_fill().as_nanos() + cost_ns;
            for call in 0..5_000 {
                dice = u64::wrapping_mul(dice, 6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                now_ns = (now_ns + (dice >> 11) % (20 * S)).saturating_sub(10 * S).max(100 * S);
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

// Extreme values.

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

// Waits.

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
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now_ns += (dice >> 11) % (20 * S);
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

// Counting.

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

// Changes of the configuration.

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

// The two algorithms side by side.

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
