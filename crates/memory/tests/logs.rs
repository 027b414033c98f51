//! Sliding logs beside the table: exact under contention, bounded in memory, charged together with everything else.
#![cfg(not(loom))]

mod common;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use common::{limit_id, quota};
use tidegate_core::{Algorithm, AtBound, Charge, Cost, Decision, LimitId, Mode, Quota, Time};
use tidegate_memory::{LOG_BYTES_MIN, Table, TableOptions};

fn log(limit: &str) -> Quota {
    quota(limit).with_algorithm(Algorithm::SlidingLog).unwrap()
}

fn small(bytes: usize) -> Table {
    let mut options = TableOptions::with_keys(100);
    options.log_bytes = bytes;
    options.seed = Some(7);
    Table::new(options)
}

fn at(second: u64) -> Time {
    Time::from_secs(second)
}

fn charge<'a>(limit: &str, quota: Quota, key: &'a [u8]) -> Charge<'a> {
    Charge::new(LimitId::of("logs", limit), quota, key)
}

fn ask(table: &Table, charges: &[Charge<'_>], now: Time) -> (bool, Vec<Decision>) {
    let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    (table.decide_at(charges, &mut decisions, now).unwrap().allowed, decisions)
}

#[test]
fn br_147_of_fifty_at_once_exactly_five_pass() {
    let table = small(LOG_BYTES_MIN);
    let limit = table.know(limit_id(), &log("5/60s"), AtBound::Deny).unwrap();
    for round in 0..20u64 {
        let barrier = Barrier::new(50);
        let passed: usize = thread::scope(|scope| {
            let one = || {
                barrier.wait();
                usize::from(table.check_at(&limit, &round, Cost::ONE, at(1_000 + round)).is_allowed())
            };
            let threads: Vec<_> = (0..50).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 5);
    }
}

#[test]
fn br_101_requests_of_one_instant_are_as_many_as_they_are() {
    let table = small(LOG_BYTES_MIN);
    let limit = table.know(limit_id(), &log("10/60s"), AtBound::Deny).unwrap();
    let passed = |second| (0..50).filter(|_| table.check_at(&limit, "k", Cost::ONE, at(second)).is_allowed()).count();
    assert_eq!([passed(7), passed(66), passed(67)], [10, 0, 10]);
}

#[test]
fn a_guard_of_a_log_denies_and_takes_nothing() {
    let table = small(LOG_BYTES_MIN);
    let log = charge("log", log("2/min"), b"k").with_cost(Cost::new(2));
    let guard = [log.with_mode(Mode::Guard), charge("bucket", quota("9/min"), b"k")];
    assert!((1..3).all(|left| ask(&table, &guard[..left], at(0)).0) && ask(&table, &guard[..1], at(0)).0);
    assert_eq!(table.live_keys_at(at(0)), 1, "only the bucket was charged");
    assert!(ask(&table, &[log], at(0)).0);
    for charges in [&guard[..1], &guard[..]] {
        assert_eq!([59, 60].map(|second| ask(&table, charges, at(second)).0), [false, true]);
    }
}

#[test]
fn a_log_and_a_bucket_are_charged_together_or_not_at_all() {
    let table = small(LOG_BYTES_MIN);
    let pair = [charge("log", log("3/min"), b"k"), charge("bucket", quota("2/min"), b"k")];
    assert_eq!([0, 0, 0].map(|second| ask(&table, &pair, at(second)).0), [true, true, false]);
    let (_, looks) = ask(&table, &pair.map(|charge| charge.with_cost(Cost::ZERO)), at(0));
    assert_eq!(looks.iter().map(Decision::remaining).collect::<Vec<_>>(), [1, 0]);
    let twice = [charge("log", log("3/min"), b"k"), charge("log", log("3/min"), b"k")];
    assert!(!ask(&table, &twice, at(0)).0, "two more are four");
    assert!(ask(&table, &twice[..1], at(0)).0);
}

#[test]
fn what_is_settled_below_its_estimate_is_as_if_it_had_not_been() {
    let table = small(LOG_BYTES_MIN);
    let five = charge("log", log("10/min"), b"k").with_cost(Cost::new(5));
    assert!(ask(&table, &[five], at(0)).0 && ask(&table, &[five], at(10)).0);
    table.settle_at(&five, at(0), Cost::new(2), at(20)).unwrap();
    let look = |second| ask(&table, &[five.with_cost(Cost::ZERO)], at(second)).1[0].remaining();
    assert_eq!([look(20), look(59), look(60), look(69), look(70)], [3, 3, 5, 5, 10]);
    // What has left already gives nothing back; what was too little is owed.
    assert!(ask(&table, &[five], at(100)).0);
    table.settle_at(&five, at(0), Cost::ZERO, at(110)).unwrap();
    assert_eq!(look(110), 5);
    table.settle_at(&five, at(100), Cost::new(13), at(120)).unwrap();
    assert_eq!([look(120), look(159), look(160), look(180)], [0, 0, 2, 10]);
}

#[test]
fn a_log_can_be_reset_granted_looked_into_and_changed() {
    let table = small(LOG_BYTES_MIN);
    let four = charge("log", log("4/min"), b"k").with_cost(Cost::new(4));
    assert!(ask(&table, &[four], at(0)).0);
    let kept = table.inspect_at(four.limit, four.key, at(10)).unwrap();
    assert_eq!((kept.state.deficit(), kept.quota, kept.expires_in), (4, four.quota, Some(Duration::from_secs(50))));
    assert_eq!((table.live_keys_at(at(59)), table.live_keys_at(at(60))), (1, 0));
    let look = |quota: Quota, second| {
        ask(&table, &[charge("log", quota, b"k").with_cost(Cost::ZERO)], at(second)).1[0].remaining()
    };
    table.grant_at(four.limit, four.key, 3, at(10));
    assert_eq!(look(four.quota, 10), 3);
    assert_eq!([look(log("8/min"), 11), look(log("2/min"), 12), look(log("2/h"), 59)], [7, 1, 1]);
    table.reset(four.limit, four.key);
    assert_eq!((look(four.quota, 60), table.inspect_at(four.limit, four.key, at(60))), (4, None));
}

/// Fills the table's logs with keys of ten requests each, the first of which end first; how many were let in.
fn fill(table: &Table, at_bound: AtBound, keys: u64) -> u64 {
    let limit = table.know(limit_id(), &log("10/h"), at_bound).unwrap();
    (0..keys).filter(|key| table.check_at(&limit, key, Cost::new(10), at(*key)).is_allowed()).count() as u64
}

#[test]
fn at_the_bound_newcomers_are_denied_until_a_log_ends() {
    for at_bound in [AtBound::Deny, AtBound::Pool] {
        let table = small(LOG_BYTES_MIN);
        let passed = fill(&table, at_bound, 2_000);
        assert!(passed < 1_000, "{passed} logs of at least 256 bytes in {} bytes", table.log_bytes_max());
        let limit = table.know(limit_id(), &log("10/h"), at_bound).unwrap();
        let denied = table.check_at(&limit, "newcomer", Cost::ONE, at(2_000));
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(1_600)), "the first ends an hour after it passed");
        assert!(table.check_at(&limit, "newcomer", Cost::ZERO, at(2_000)).is_allowed());
        assert_eq!(table.stats().refused, 2_000 - passed + 1);
        assert!(table.check_at(&limit, "newcomer", Cost::ONE, at(3_600)).is_allowed());
        assert_eq!(table.stats().displaced, 0);
    }
}

#[test]
fn at_the_bound_the_log_that_ends_first_is_displaced() {
    let table = small(LOG_BYTES_MIN);
    assert_eq!(fill(&table, AtBound::Displace, 2_000), 2_000);
    let displaced = table.stats().displaced;
    let live = table.live_keys_at(at(2_000)) as u64;
    assert_eq!((displaced + live, displaced > 1_000), (2_000, true));
    let limit = table.know(limit_id(), &log("10/h"), AtBound::Displace).unwrap();
    let remaining = |key: u64| table.check_at(&limit, &key, Cost::ZERO, at(2_000)).remaining();
    assert_eq!((remaining(0), remaining(1_999), remaining(2_000 - live)), (10, 0, 0));
}

#[test]
fn a_thread_that_comes_late_does_not_find_a_forgotten_log_fresh_at_its_old_time() {
    let table = small(LOG_BYTES_MIN);
    let limit = table.know(limit_id(), &log("10/s"), AtBound::Deny).unwrap();
    let take = |key: u64, ms| table.check_at(&limit, &key, Cost::new(10), Time::from_millis(ms));
    let last = (0..).find(|key| !take(*key, 0).is_allowed()).unwrap();
    assert!(!take(0, 999).is_allowed());
    // A newcomer needs the room of one that has ended, and the first key asks once more, as of before.
    assert!(take(last, 1_000).is_allowed());
    let late = (0..last).map(|key| take(key, 500)).find(Decision::is_allowed).unwrap();
    assert_eq!(late.decided_at(), Time::from_millis(1_000));
}

#[test]
fn logs_of_one_decision_do_not_displace_each_other() {
    let table = small(LOG_BYTES_MIN);
    let all = ["a", "b"].map(|limit| charge(limit, log("10000/h"), b"k"));
    // The ring of either takes 160 kB in the end, and both do not fit.
    let mut last = ask(&table, &all, at(0));
    let passed = (1..10_000).take_while(|second| {
        last = ask(&table, &all, Time::from_millis(*second));
        last.0
    });
    let passed = passed.count() as u64;
    assert!((4_000..9_000).contains(&passed), "{passed}");
    let waits: Vec<_> = last.1.iter().filter_map(Decision::retry_after).collect();
    assert_eq!(waits, [Duration::from_secs(3_600) - Duration::from_millis(1)], "the other ends with its newest");
    assert_eq!(table.stats().displaced, 0);
    assert_eq!(ask(&table, &all.map(|charge| charge.with_cost(Cost::ZERO)), at(9)).1[0].remaining(), 9_999 - passed);
}

#[test]
fn a_log_grows_up_to_its_count() {
    let table = small(LOG_BYTES_MIN);
    let limit = table.know(limit_id(), &log("10000/h"), AtBound::Deny).unwrap();
    let passed = |from: u64| {
        let ask = |i: &u64| table.check_at(&limit, "k", Cost::ONE, Time::from_millis(from + i)).is_allowed();
        (0..11_000).filter(ask).count()
    };
    assert_eq!(passed(0), 10_000);
    assert_eq!(passed(3_600_000), 10_000, "each millisecond one leaves and one passes");
}
