//! A script in a tiny language, and the bucket that it is run against.
//!
//! A script is a list of lines; `take` costs 1 unless it says otherwise. `xN` asks N times: all are allowed, or all
//! denied, and the numbers are those of the last.
//!
//! ```text
//! t=59.9s  take x10          -> allow, 0 left
//! t=60s    take 2            -> deny, retry 5.9s
//! t=60s    take 11           -> never
//! t=61s    look              -> allow, 3 left, full in 4s
//! t=61s    becomes 5/min
//! t=61s    grant 2
//! ```

use core::time::Duration;

use tidegate_core::{Algorithm, Cost, Decision, Limit, Outcome, Quota, State, Time, carry_over, decide, grant};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000 * MS;
/// No bucket that a script drains holds more.
const DRAIN_MAX: u64 = 100_000;

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
pub(crate) struct Bucket {
    pub(crate) quota: Quota,
    pub(crate) state: State,
}

impl Bucket {
    pub(crate) fn new(limit: &str) -> Self {
        Self { quota: quota(limit), state: State::FULL }
    }

    pub(crate) fn take(&mut self, cost: u64, at_ns: u64) -> Decision {
        let (decision, next) = decide(&self.quota, self.state, Cost::new(cost), Time::from_nanos(at_ns));
        self.state = next;
        decision
    }

    /// Asks for one after the other until one is denied; how many passed.
    pub(crate) fn drain(&mut self, at_ns: u64) -> u64 {
        (0..DRAIN_MAX).find(|_| !self.take(1, at_ns).is_allowed()).expect("the bucket has an end")
    }

    /// Runs one line of a script, `at_ns` being its time; says what came out where the line says what should.
    pub(crate) fn run(&mut self, action: &str, at_ns: u64) -> Option<Decision> {
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

/// `60/min burst 10`, `windows of 60/min` or `counters of 60/min`.
pub(crate) fn quota(limit: &str) -> Quota {
    let (limit, algorithm) = match limit.split_once(" of ") {
        Some(("windows", limit)) => (limit, Algorithm::FixedWindow),
        Some(("counters", limit)) => (limit, Algorithm::SlidingCounter),
        _ => (limit, Algorithm::TokenBucket),
    };
    let limit: Limit = limit.parse().unwrap_or_else(|error| panic!("{error}"));
    limit.quota().expect("a limit that charges").with_algorithm(algorithm).expect("a limit for this algorithm")
}

/// Runs a script against a bucket that was never used.
#[track_caller]
pub(crate) fn check(limit: &str, script: &str) {
    check_shifted(limit, script, 0);
}

/// The same with all times moved on by `shift_ns`.
#[track_caller]
pub(crate) fn check_shifted(limit: &str, script: &str, shift_ns: u64) {
    let mut bucket = Bucket::new(limit);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (call, expected) = line.split_once("->").map_or((line, None), |(call, rest)| (call, Some(rest)));
        let (at, action) = call.trim().split_once(' ').expect("a time and an action");
        let at_ns = nanoseconds(at.strip_prefix("t=").expect("t=")).saturating_add(shift_ns);
        let (action, times) =
            action.rsplit_once(" x").map_or((action, 1), |(action, n)| (action, n.trim().parse().expect("x N")));
        let decisions: Vec<Option<Decision>> = (0..times).map(|_| bucket.run(action, at_ns)).collect();
        let ruling =
            |decision: &Option<Decision>| decision.map(|decision| (decision.is_allowed(), decision.is_never()));
        assert!(
            decisions.windows(2).all(|pair| ruling(&pair[0]) == ruling(&pair[1])),
            "not all {times} the same: {line}"
        );
        let decision = decisions.last().copied().flatten();
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

/// The next of a row of numbers that looks like chance and is the same every time.
pub(crate) fn roll(dice: &mut u64) -> u64 {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *dice >> 11
}
