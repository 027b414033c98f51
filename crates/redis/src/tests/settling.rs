//! Reserving and settling, taking ahead, and looking into the store.

use std::time::Duration;

use redis::{ConnectionLike as _, Value, cmd};
use tidegate_core::{
    Algorithm, Charge, Cost, Decision, LimitId, Mode, OPEN_FOR, ReservationId, Settled, State, Store as _, Time,
};
use tokio::task::JoinSet;

use super::server::{Kind, Server};
use super::sharing::{ask, charge, patient};
use super::vectors::Driven;
use crate::reservation::{reserving, settling};
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request, replies};
use crate::{RedisStore, StoreError};

pub(super) const ID: ReservationId = ReservationId::new(0x2a);

impl Driven {
    /// Was it reserved?
    pub(super) fn reserve(&mut self, charge: &Charge<'_>, id: ReservationId, at_us: u64) -> bool {
        let asked = Asked::new(std::slice::from_ref(charge));
        let request = reserving(&self.names, &asked, charge.key, id, OPEN_FOR).unwrap();
        let mut seen = replies(self.call(&request, at_us), &[request.keys.len()]).remove(0).unwrap();
        seen.pop().unwrap() && asked.decide(&[*charge], &seen, &mut [Decision::unmade(&charge.quota)]).unwrap().allowed
    }

    /// Was it open?
    pub(super) fn settle(&mut self, charge: &Charge<'_>, id: ReservationId, actual: u64, at_us: u64) -> bool {
        let request = settling(&self.names, id, &[*charge], &[Cost::new(actual)]).unwrap().unwrap();
        replies(self.call(&request, at_us), &[request.keys.len()]).remove(0).unwrap().first_passed().unwrap()
    }

    pub(super) fn take(&mut self, charge: &Charge<'_>, cost: u64, at_us: u64) -> Decision {
        self.decide(&[charge.with_cost(Cost::new(cost))], at_us).1[0]
    }

    /// Every key, with the milliseconds until it expires.
    pub(super) fn keys(&mut self) -> Vec<(String, i64)> {
        let Value::Array(keys) = self.connection.req_command(cmd("KEYS").arg("*")).unwrap() else { panic!("keys") };
        keys.into_iter()
            .map(|key| {
                let Value::BulkString(key) = key else { panic!("a name") };
                let Value::Int(ms) = self.connection.req_command(cmd("PTTL").arg(&key)).unwrap() else { panic!("ms") };
                (String::from_utf8(key).unwrap(), ms)
            })
            .collect()
    }
}

#[test]
fn br_045_a_debt_is_kept_and_a_repeated_settle_changes_nothing() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let charge = charge("50/50s", b"k").with_cost(Cost::new(50));
        assert!(driven.reserve(&charge, ID, 1_000));
        for is_open in [true, false] {
            assert_eq!(driven.settle(&charge, ID, 60, 1_000), is_open);
            let look = driven.take(&charge, 0, 1_000);
            assert_eq!((look.remaining(), look.reset_after()), (0, Duration::from_secs(60)));
        }
        assert_eq!(driven.take(&charge, 1, 1_000).retry_after(), Some(Duration::from_secs(11)));
        assert!(!driven.take(&charge, 1, 11_000_999).is_allowed());
        assert!(driven.take(&charge, 1, 11_001_000).is_allowed());
        // However much it cost, at most one further burst is owed.
        assert!(driven.reserve(&charge, ID, 200_000_000));
        assert!(driven.settle(&charge, ID, 1_000_000, 200_000_000));
        assert_eq!(driven.take(&charge, 0, 200_000_000).reset_after(), Duration::from_secs(100));
    }
}

#[test]
fn br_099_what_is_given_back_late_never_fills_beyond_full() {
    for kind in Kind::ALL {
        for algorithm in Algorithm::ALL {
            let server = Server::start(kind);
            let mut driven = Driven::new(&server);
            let quota = charge("5/s", b"k").quota.with_algorithm(algorithm).unwrap();
            let charge = Charge { quota, ..charge("5/s", b"k") };
            for id in 0..5 {
                assert!(driven.reserve(&charge, ReservationId::new(id), 0));
            }
            for (id, is_open) in (0..5).map(|id| (id, true)).chain((0..5).map(|id| (id, false))) {
                assert_eq!(driven.settle(&charge, ReservationId::new(id), 0, 1_500_000), is_open);
            }
            let passed = (0..10).filter(|_| driven.take(&charge, 1, 1_500_000).is_allowed()).count();
            assert_eq!(passed, 5, "{kind:?} {algorithm}");
            assert!(driven.keys().iter().all(|(_, ms)| *ms > 0));
        }
    }
}

#[test]
fn a_window_that_is_over_gives_nothing_back_to_a_later_one() {
    let server = Server::start(Kind::Redis7);
    let mut driven = Driven::new(&server);
    let quota = charge("5/s", b"k").quota.with_algorithm(Algorithm::FixedWindow).unwrap();
    let charge = Charge { quota, ..charge("5/s", b"k") }.with_cost(Cost::new(5));
    assert!(driven.reserve(&charge, ID, 900_000));
    assert!(driven.take(&charge, 5, 1_100_000).is_allowed());
    assert!(driven.settle(&charge, ID, 0, 1_200_000));
    assert!(!driven.take(&charge, 1, 1_200_000).is_allowed());
    // In the window in which it was taken it is given back.
    assert!(driven.reserve(&charge, ID, 2_100_000));
    assert!(driven.settle(&charge, ID, 3, 2_200_000));
    assert_eq!(driven.take(&charge, 0, 2_200_000).remaining(), 2);
}

#[test]
fn br_027_every_branch_leaves_an_expiry_or_nothing() {
    const HOUR_US: u64 = 3_600_000_000;
    let acts = |charge: &Charge<'_>| {
        let terms = |act, tokens| Terms::of(&charge.quota).unwrap().pack(act, Cost::new(tokens), true);
        let shadow = Act::Charge(Mode::Shadow);
        let enforce = Act::Charge(Mode::Enforce);
        [(enforce, 1), (enforce, 10), (enforce, 0), (shadow, 1), (shadow, 10), (Act::Give, 1), (Act::Give, 99)]
            .into_iter()
            .chain([(Act::Owe, 1), (Act::Owe, 99), (Act::Share { need: 1 }, 7), (Act::Share { need: 7 }, 7)])
            .chain([(Act::Show, 0)])
            .map(|(act, tokens)| terms(act, tokens))
            .collect::<Vec<_>>()
    };
    let server = Server::start(Kind::Valkey9);
    let mut driven = Driven::new(&server);
    let mut seen = 0;
    for algorithm in Algorithm::ALL {
        let quota = |text| charge(text, b"k").quota.with_algorithm(algorithm).unwrap();
        let (this, other) = (quota("10/h"), quota("10/day"));
        // Empty, in use, exhausted, in debt, under another limit, and with a clock that stepped back.
        let warm: [&[(Act, u64)]; 5] = [
            &[],
            &[(Act::Charge(Mode::Enforce), 3)],
            &[(Act::Charge(Mode::Enforce), 10)],
            &[(Act::Charge(Mode::Enforce), 10), (Act::Owe, 5)],
            &[(Act::Owe, 20)],
        ];
        for (quota, at_us) in [(this, HOUR_US), (other, HOUR_US), (this, 0)] {
            for before in warm {
                let charge = Charge { quota: this, ..charge("10/h", b"k") };
                for terms in acts(&Charge { quota, ..charge }) {
                    driven.connection.req_command(&cmd("FLUSHALL")).unwrap();
                    before.iter().for_each(|(act, tokens)| driven.correct(&charge, *act, *tokens, HOUR_US));
                    let key = driven.names.bucket(&charge);
                    driven.call(&Request { keys: vec![key], terms: vec![terms] }, at_us);
                    for (key, ms) in driven.keys() {
                        assert!((1..=3_600_000).contains(&ms), "{key} expires in {ms} ms");
                        seen += 1;
                    }
                }
                driven.connection.req_command(&cmd("FLUSHALL")).unwrap();
                let reserved = driven.reserve(&charge.with_cost(Cost::new(4)), ID, at_us);
                for actual in [0, 9] {
                    driven.settle(&charge.with_cost(Cost::new(4)), ID, actual, at_us);
                    assert!(driven.keys().iter().all(|(_, ms)| *ms > 0), "reserved {reserved}, settled {actual}");
                }
            }
        }
    }
    assert!(seen > 200, "only {seen} keys were seen");
}

async fn left(store: &RedisStore, charge: Charge<'_>) -> u64 {
    ask(store, charge.with_cost(Cost::ZERO)).await.unwrap().remaining()
}

#[tokio::test]
async fn of_two_settles_at_once_one_has_effect() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let store = patient(&server);
        let charge = charge("1000/day", b"k").with_cost(Cost::new(100));
        for round in 1..=5_u64 {
            let id = ReservationId::new(u128::from(round));
            let verdict = store.reserve(&[charge], &mut [Decision::unmade(&charge.quota)], id, OPEN_FOR).await.unwrap();
            assert!(verdict.allowed);
            let mut settles = JoinSet::new();
            for _ in 0..20 {
                let store = store.clone();
                settles.spawn(async move {
                    let charge = super::sharing::charge("1000/day", b"k").with_cost(Cost::new(100));
                    store.settle(id, &[charge], &[Cost::new(60)]).await.unwrap()
                });
            }
            let settled = settles.join_all().await.into_iter().filter(|one| *one == Settled::Settled).count();
            assert_eq!((settled, left(&store, charge).await), (1, 1000 - 60 * round), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_denied_reservation_and_one_of_an_id_that_is_open_take_nothing() {
    let server = Server::start(Kind::Redis8);
    let store = patient(&server);
    let a = charge("10/day", b"k").with_cost(Cost::new(6));
    let b = Charge { limit: LimitId::of("test", "b"), ..charge("100/day", b"other").with_cost(Cost::new(6)) };
    let mut decisions = [Decision::unmade(&a.quota); 2];
    assert!(store.reserve(&[a, b], &mut decisions, ID, OPEN_FOR).await.unwrap().allowed);
    assert_eq!(decisions.map(|decision| decision.remaining()), [4, 94]);
    let again = store.reserve(&[b], &mut decisions[..1], ReservationId::new(7), OPEN_FOR).await.unwrap();
    assert!(again.allowed);
    let twice = store.reserve(&[b], &mut decisions[..1], ReservationId::new(7), OPEN_FOR).await;
    assert_eq!(twice, Err(StoreError::AlreadyOpen));
    assert!(!store.reserve(&[b, a], &mut decisions, ReservationId::new(8), OPEN_FOR).await.unwrap().allowed);
    assert_eq!(store.settle(ReservationId::new(8), &[b, a], &[Cost::ZERO; 2]).await, Ok(Settled::Unknown));
    assert_eq!((left(&store, a).await, left(&store, b).await), (4, 88));
    // One limit was charged more than it cost, the other less.
    assert_eq!(store.settle(ID, &[a, b], &[Cost::new(2), Cost::new(20)]).await, Ok(Settled::Settled));
    assert_eq!((left(&store, a).await, left(&store, b).await), (8, 74));
}

#[tokio::test]
async fn charges_on_one_bucket_are_settled_by_their_sum() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let charge = charge("10/day", b"k").with_cost(Cost::new(3));
    let mut decisions = [Decision::unmade(&charge.quota); 2];
    assert!(store.reserve(&[charge, charge], &mut decisions, ID, OPEN_FOR).await.unwrap().allowed);
    let actual = [Cost::ZERO, Cost::new(5)];
    assert_eq!(store.settle(ID, &[charge, charge], &actual).await, Ok(Settled::Settled));
    assert_eq!(left(&store, charge).await, 5);
}

#[tokio::test]
async fn tokens_are_taken_ahead_as_many_as_there_are() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let store = patient(&server);
        for limit in ["100/day", "4294967291/year burst 100", "7/day burst 100"] {
            let key = limit.as_bytes();
            let charge = charge(limit, key);
            let taken = async |need: u64, most: u64| {
                let ahead = store.take_ahead(&charge, Cost::new(need), Cost::new(most)).await.unwrap();
                assert_eq!(ahead.decision.is_allowed(), ahead.taken > 0);
                ahead.taken
            };
            if limit.starts_with("4294967291") {
                // It refills 136 times in a second: what is taken is what the core, from the same numbers, says.
                assert!(taken(1, 60).await == 60 && taken(30, 60).await >= 30);
                continue;
            }
            assert_eq!([taken(1, 60).await, taken(1, 60).await, taken(1, 60).await], [60, 20, 10], "{kind:?}, {limit}");
            assert_eq!([taken(8, 60).await, taken(8, 60).await], [8, 0], "not below what is needed");
            assert_eq!([taken(2, 2).await, taken(1, 500).await, taken(1, 5).await], [2, 0, 0]);
        }
    }
}

#[tokio::test]
async fn br_045_nothing_is_taken_ahead_of_a_bucket_in_debt() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let charge = charge("50/day", b"k").with_cost(Cost::new(50));
    assert!(store.reserve(&[charge], &mut [Decision::unmade(&charge.quota)], ID, OPEN_FOR).await.unwrap().allowed);
    assert_eq!(store.settle(ID, &[charge], &[Cost::new(60)]).await, Ok(Settled::Settled));
    let ahead = store.take_ahead(&charge, Cost::ONE, Cost::new(10)).await.unwrap();
    assert_eq!((ahead.taken, ahead.decision.remaining()), (0, 0));
    assert!(ahead.decision.retry_after().is_some());
    let never = store.take_ahead(&charge, Cost::new(51), Cost::new(60)).await.unwrap();
    assert!(never.decision.is_never());
    let kept = store.inspect(charge.limit, &charge.quota, b"k").await.unwrap().unwrap();
    assert_eq!(kept.state.deficit(), 60);
}

#[tokio::test]
async fn a_bucket_is_shown_as_it_is_kept() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let store = patient(&server);
        for algorithm in Algorithm::ALL {
            let quota = charge("60/min", b"k").quota.with_algorithm(algorithm).unwrap();
            let charge = Charge { quota, ..charge("60/min", b"k") }.with_cost(Cost::new(7));
            assert_eq!(store.inspect(charge.limit, &quota, b"k").await, Ok(None));
            let decision = ask(&store, charge).await.unwrap();
            let kept = store.inspect(charge.limit, &quota, b"k").await.unwrap().unwrap();
            let at = if algorithm == Algorithm::TokenBucket { decision.decided_at() } else { kept.state.stamp() };
            let fill = Duration::from_secs(if algorithm == Algorithm::SlidingCounter { 120 } else { 60 });
            assert_eq!(kept.state, State::from_parts(7, at), "{kind:?} {algorithm}");
            assert_eq!((kept.quota.burst(), kept.quota.time_to_fill()), (60, fill));
            assert!(kept.expires_in.is_some_and(|expires_in| expires_in <= decision.reset_after() + MILLISECONDS));
            assert!(kept.state.stamp() > Time::ZERO);
        }
    }
}

/// A bucket is kept a little longer than it takes to fill.
const MILLISECONDS: Duration = Duration::from_millis(3);
