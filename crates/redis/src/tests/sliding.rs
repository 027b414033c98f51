//! Sliding counters and logs: what the vectors do not say of them.

use std::time::Duration;

use redis::{ConnectionLike as _, cmd};
use tidegate_core::{Algorithm, Charge, Cost, Decision, Mode, Store as _};
use tokio::task::JoinSet;

use super::server::{Kind, Server};
use super::settling::ID;
use super::sharing::{ask, charge, patient};
use super::vectors::Driven;

const SLIDING: [Algorithm; 2] = [Algorithm::SlidingCounter, Algorithm::SlidingLog];

fn charge_of(limit: &str, algorithm: Algorithm) -> Charge<'static> {
    let quota = charge(limit, b"k").quota.with_algorithm(algorithm).unwrap();
    Charge { quota, ..charge(limit, b"k") }
}

#[test]
fn a_sliding_counter_gives_back_to_the_window_in_which_it_was_taken() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let charge = charge_of("5/s", Algorithm::SlidingCounter).with_cost(Cost::new(5));
        assert!(driven.reserve(&charge, ID, 900_000));
        assert!(driven.take(&charge, 1, 1_200_000).is_allowed());
        assert_eq!(driven.take(&charge, 0, 1_500_000).remaining(), 1);
        // Of the earlier count, which weighs a half now, four are as if they had not been.
        assert!(driven.settle(&charge, ID, 1, 1_500_000));
        assert_eq!(driven.take(&charge, 0, 1_500_000).remaining(), 3);
        // The window in which it was taken is over, and weighs nothing.
        assert!(driven.reserve(&charge.with_cost(Cost::new(3)), ID, 1_500_000), "{kind:?}");
        assert!(driven.take(&charge, 5, 3_100_000).is_allowed());
        assert!(driven.settle(&charge.with_cost(Cost::new(3)), ID, 0, 3_200_000));
        assert_eq!(driven.take(&charge, 0, 3_200_000).remaining(), 0);
        assert!(driven.keys().iter().all(|(_, ms)| *ms > 0));
    }
}

#[test]
fn a_sliding_log_gives_back_what_passed_as_if_it_had_not() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let five = charge_of("10/min", Algorithm::SlidingLog).with_cost(Cost::new(5));
        let second = |second: u64| second * 1_000_000;
        assert!(driven.reserve(&five, ID, 0) && driven.take(&five, 5, second(10)).is_allowed());
        assert!(driven.settle(&five, ID, 2, second(20)));
        let mut look = |at: u64| driven.take(&five, 0, second(at)).remaining();
        assert_eq!([look(20), look(59), look(60), look(69), look(70)], [3, 3, 5, 5, 10], "{kind:?}");
        // What has left already gives nothing back; what was too little is owed.
        assert!(driven.reserve(&five, ID, second(100)) && driven.take(&five, 5, second(165)).is_allowed());
        assert!(driven.settle(&five, ID, 0, second(170)));
        assert_eq!(driven.take(&five, 0, second(170)).remaining(), 5);
        assert!(driven.reserve(&five, ID, second(170)) && driven.settle(&five, ID, 13, second(180)));
        let mut look = |at: u64| driven.take(&five, 0, second(at)).remaining();
        assert_eq!([look(180), look(229), look(230), look(240)], [0, 0, 2, 10]);
        assert!(driven.keys().iter().all(|(_, ms)| *ms > 0));
    }
}

#[test]
fn a_changed_limit_keeps_what_a_log_remembers() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let of = |limit| charge_of(limit, Algorithm::SlidingLog);
        let second = |second: u64| second * 1_000_000;
        assert!(driven.take(&of("5/min"), 2, second(0)).is_allowed());
        assert!(driven.take(&of("5/min"), 3, second(1)).is_allowed());
        assert_eq!(driven.take(&of("8/min"), 0, second(2)).remaining(), 3);
        assert_eq!(driven.take(&of("5/h"), 0, second(59)).remaining(), 0);
        // Lowered, the newest four of five are kept: one of the first two.
        assert_eq!(driven.take(&of("4/min"), 1, second(2)).retry_after(), Some(Duration::from_secs(58)));
        assert_eq!(driven.take(&of("4/min"), 0, second(60)).remaining(), 1, "{kind:?}");
        assert_eq!(driven.take(&of("4/min"), 4, second(61)).remaining(), 0);
    }
}

#[test]
fn a_guard_of_a_sliding_limit_denies_and_takes_nothing() {
    for (kind, algorithm) in Kind::ALL.into_iter().flat_map(|kind| SLIDING.map(|algorithm| (kind, algorithm))) {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let three = charge_of("3/s", algorithm).with_cost(Cost::new(3));
        let guard = [three.with_mode(Mode::Guard)];
        let ask = |driven: &mut Driven, at_us| driven.decide(&guard, at_us).1[0];
        assert_eq!([1, 2].map(|at_us| ask(&mut driven, at_us).remaining()), [3, 3], "{kind:?} {algorithm}");
        assert!(driven.keys().is_empty());
        assert!(driven.take(&three, 1, 10).is_allowed());
        let waits = [20, 30].map(|at_us| ask(&mut driven, at_us).retry_after());
        let ends_us = if algorithm == Algorithm::SlidingLog { 1_000_010 } else { 2_000_000 };
        assert_eq!(waits, [20, 30].map(|at_us| Some(Duration::from_micros(ends_us - at_us))));
        assert!(!ask(&mut driven, ends_us - 1).is_allowed() && ask(&mut driven, ends_us).is_allowed());
    }
}

#[test]
fn a_full_log_is_read_in_parts_and_written_at_its_ends() {
    let server = Server::start(Kind::Redis7);
    let mut driven = Driven::new(&server);
    let log = charge_of("1000/s", Algorithm::SlidingLog);
    assert!((0..1_000).all(|us| driven.take(&log, 1, us * 1_000).is_allowed()));
    // For the last of a thousand all the others have to leave first.
    let wait = driven.take(&log, 1_000, 999_000).retry_after();
    assert_eq!(wait, Some(Duration::from_secs(1)));
    assert_eq!(driven.take(&log, 500, 1_498_999).retry_after(), Some(Duration::from_micros(1)));
    assert!(driven.take(&log, 500, 1_499_000).is_allowed());
    let key = driven.names.bucket(&log);
    let kept = driven.connection.req_command(cmd("LLEN").arg(&key)).unwrap();
    assert_eq!(kept, redis::Value::Int(1 + 500 + 1), "its terms, what has not left, and the newest");
}

#[tokio::test]
async fn br_147_of_fifty_at_once_exactly_five_pass() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let store = patient(&server);
        let mut tasks = JoinSet::new();
        for _ in 0..50 {
            let store = store.clone();
            tasks.spawn(
                async move { ask(&store, charge_of("5/60s", Algorithm::SlidingLog)).await.unwrap().is_allowed() },
            );
        }
        let passed = tasks.join_all().await.into_iter().filter(|passed| *passed).count();
        assert_eq!(passed, 5, "{kind:?}");
    }
}

#[tokio::test]
async fn a_log_and_a_bucket_are_charged_together_and_a_log_can_be_reset() {
    let server = Server::start(Kind::Valkey9);
    let store = patient(&server);
    let log = charge_of("3/h", Algorithm::SlidingLog);
    let both = [log, Charge { limit: tidegate_core::LimitId::of("test", "bucket"), ..charge("2/h", b"k") }];
    let mut decisions = both.map(|charge| Decision::unmade(&charge.quota));
    let mut passed = Vec::new();
    for _ in 0..3 {
        passed.push(store.decide(&both, &mut decisions).await.unwrap().allowed);
    }
    assert_eq!((passed, decisions[0].remaining()), (vec![true, true, false], 1));
    assert_eq!(store.inspect(log.limit, &log.quota, b"k").await.unwrap().unwrap().state.deficit(), 2);
    store.grant(log.limit, &log.quota, b"k", 1).await.unwrap();
    assert_eq!(ask(&store, log.with_cost(Cost::ZERO)).await.unwrap().remaining(), 2);
    store.reset(log.limit, b"k").await.unwrap();
    assert_eq!(ask(&store, log.with_cost(Cost::ZERO)).await.unwrap().remaining(), 3);
}
