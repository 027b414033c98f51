//! Faults that users of other limiters reported, as scenarios: arrivals written out, and what they are told.
//!
//! Named by the id of the report.

use std::time::Duration;

use tidegate_core::{Algorithm, Cost, Limit, Time};

use super::engine::Course;
use super::keeper::{Keeper, One};
use super::tally::Tally;
use super::{Arrival, Keyed, Pace, Random, Reply, Route, Traffic};

/// Arrivals as they are written, of one client.
struct Script {
    arrivals: std::vec::IntoIter<Arrival>,
    replies: Vec<Reply>,
}

impl Script {
    /// Of instants in milliseconds, each with a cost.
    fn new(at_ms: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let arrival =
            |(ms, cost)| Arrival { at: Time::from_millis(ms), client: 0, cost: Cost::new(cost), route: Route::Api };
        Self { arrivals: at_ms.into_iter().map(arrival).collect::<Vec<_>>().into_iter(), replies: Vec::new() }
    }
}

impl Iterator for Script {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.arrivals.next()
    }
}

impl Traffic for Script {
    fn clients(&self) -> u32 {
        1
    }

    fn told(&mut self, _: &Arrival, reply: Reply) {
        self.replies.push(reply);
    }
}

/// `count` times the same instant.
fn volley(ms: u64, count: usize) -> impl Iterator<Item = (u64, u64)> {
    std::iter::repeat_n((ms, 1), count)
}

/// Runs a script under a limit; gives back what was told, and what was counted.
fn run(limit: &str, script: impl IntoIterator<Item = (u64, u64)>) -> (Vec<Reply>, Tally) {
    run_by(Algorithm::TokenBucket, limit, script)
}

fn run_by(algorithm: Algorithm, limit: &str, script: impl IntoIterator<Item = (u64, u64)>) -> (Vec<Reply>, Tally) {
    let quota = limit.parse::<Limit>().unwrap().quota().unwrap().with_algorithm(algorithm).unwrap();
    let promises = vec![Pace::new(quota.rate().count(), quota.rate().period())];
    let mut script = Script::new(script);
    let course = Course::new(promises, Keyed::Client, Time::MAX);
    let tally = course.run(&mut One::new(quota, 1), &mut script, None).unwrap();
    (script.replies, tally)
}

fn passed(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| **reply == Reply::Passed).count()
}

const fn wait(ms: u64) -> Reply {
    Reply::Wait(Duration::from_millis(ms))
}

#[test]
fn br_001_an_edge_of_the_clock_lets_no_second_volley_through() {
    for shift in [0, 1, 137, 29_950, 59_999] {
        let script = volley(59_900 + shift, 10).chain(volley(60_000 + shift, 10));
        let (replies, tally) = run("10/min", script);
        assert_eq!(passed(&replies[..10]), 10, "shifted by {shift} ms");
        assert_eq!(replies[10..], vec![wait(5_900); 10], "shifted by {shift} ms");
        assert_eq!(tally.worst_minute().cost, 10);
    }
    let (_, tally) = run_by(Algorithm::FixedWindow, "10/min", volley(59_900, 10).chain(volley(60_000, 10)));
    assert_eq!((tally.worst_minute().cost, tally.overshoot()), (20, Some(10)), "the trap itself");
}

#[test]
fn br_003_a_full_bucket_may_pass_nearly_twice_its_count_and_the_report_says_so() {
    let steady = (1..60).map(|s| (s * 1_000, 1));
    let (_, tally) = run("60/min", volley(0, 60).chain(steady.clone()));
    assert_eq!((tally.admitted, tally.worst_minute().cost, tally.overshoot()), (119, 119, Some(59)));
    let (_, tally) = run("60/min burst 1", volley(0, 60).chain(steady));
    assert_eq!((tally.admitted, tally.worst_minute().cost, tally.overshoot()), (60, 60, Some(0)));
    let stated = |limit: &str| limit.parse::<Limit>().unwrap().quota().unwrap().most_within(Duration::from_secs(60));
    assert_eq!([stated("60/min"), stated("60/min burst 1")], [120, 61]);
}

#[test]
fn br_005_idling_never_brings_more_than_the_burst() {
    let (replies, _) = run("5/s", volley(0, 6).chain(volley(2_000, 6)));
    for round in replies.chunks(6) {
        assert_eq!((passed(round), round[5]), (5, wait(200)));
    }
}

#[test]
fn br_006_a_batch_takes_no_more_than_its_units() {
    let (replies, _) = run("20/s burst 5", [(0, 5), (250, 5), (250, 1), (300, 1), (300, 1)]);
    assert_eq!(replies, [Reply::Passed, Reply::Passed, wait(50), Reply::Passed, wait(50)]);
    let (units, _) = run("20/s burst 5", volley(0, 5).chain(volley(250, 6)).chain(volley(300, 2)));
    assert_eq!(passed(&units), 11, "as many as the batches and what passed beside them");
}

#[test]
fn br_008_an_hour_of_silence_brings_a_burst_and_no_more() {
    let (replies, tally) = run("10/s", volley(0, 10).chain(volley(3_600_000, 50)));
    assert_eq!((passed(&replies[10..]), tally.worst_second().cost), (10, 10));
}

#[test]
fn br_010_the_wait_that_is_told_is_exact() {
    let (replies, _) = run("1/h", [(0, 1), (3_599_999, 1), (3_600_000, 1)]);
    assert_eq!(replies, [Reply::Passed, wait(1), Reply::Passed]);

    let quota = "1/h".parse::<Limit>().unwrap().quota().unwrap();
    let (mut keeper, mut random, mut now) = (One::new(quota, 1), Random::new(10), Time::ZERO);
    let mut ask = |at| keeper.ask(0, &Arrival { at, client: 0, cost: Cost::ONE, route: Route::Api });
    assert_eq!(ask(now), Reply::Passed);
    for round in 0..10_000 {
        now = now.saturating_add(Duration::from_nanos(random.below(3_600_000_000_000)));
        let Reply::Wait(wait) = ask(now) else { panic!("round {round} passed at {now:?}") };
        let then = now.saturating_add(wait);
        let early = Time::from_nanos(then.as_nanos() - 1);
        assert_eq!((ask(early), ask(then)), (Reply::Wait(Duration::from_nanos(1)), Reply::Passed), "round {round}");
        now = then;
    }
}

#[test]
fn br_012_asking_often_loses_no_refill() {
    let (replies, _) = run("10/s", volley(0, 10).chain((1..=100).map(|i| (i * 10, 1))));
    let at = replies[10..].iter().zip(1..).filter(|(reply, _)| **reply == Reply::Passed).map(|(_, i)| i * 10);
    assert_eq!(at.collect::<Vec<_>>(), (1..=10).map(|i| i * 100).collect::<Vec<_>>());
}

#[test]
fn br_014_under_heavy_load_all_that_may_pass_does() {
    let (_, tally) = run("1000/s", (0..10_000).flat_map(|ms| volley(ms, 5)));
    assert_eq!((tally.arrivals, tally.admitted), (50_000, 10_999));
}

#[test]
fn br_015_a_denial_does_not_push_the_refill_back() {
    let (replies, _) = run("1/s", (0..9).map(|i| (i * 600, 1)));
    let alternating: Vec<_> = replies.iter().map(|reply| *reply == Reply::Passed).collect();
    assert_eq!(alternating, (0..9).map(|i| i % 2 == 0).collect::<Vec<_>>());
}

/// What a false denial is, by hand.
#[test]
fn a_denial_is_false_while_the_client_has_never_asked_for_more_than_its_rate() {
    // 20 at once are within 60 a minute, and more than the burst: ten denials are false.
    let (_, tally) = run("60/min burst 10", volley(0, 20));
    assert_eq!((tally.denied, tally.false_denials), (10, 10));
    // With 61 in a minute the client has asked for more, and no denial is false from then on.
    let (_, tally) = run("60/min burst 10", volley(0, 60).chain(volley(50_000, 1)).chain(volley(300_000, 20)));
    assert_eq!((tally.denied, tally.false_denials), (50 + 10, 50));
    // After a whole minute they are others.
    let (_, tally) = run("60/min burst 10", volley(0, 60).chain(volley(60_000, 20)));
    assert_eq!((tally.denied, tally.false_denials), (60, 60));
}
