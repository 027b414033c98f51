//! Many tasks, one bucket: what passes is exact, on the server's clock.

use std::time::Duration;

use redis::{ConnectionLike as _, cmd};
use tidegate_core::{AtBound, Charge, Cost, Decision, Handling, Limit, LimitId, Mode, Quota, Store as _};
use tokio::task::JoinSet;

use super::server::{Kind, Server};
use crate::{RedisOptions, RedisStore};

fn quota(limit: &str) -> Quota {
    limit.parse::<Limit>().unwrap().quota().unwrap()
}

pub(super) fn charge<'a>(limit: &str, key: &'a [u8]) -> Charge<'a> {
    let id = LimitId::of("test", "limit");
    Charge {
        limit: id,
        quota: quota(limit),
        key,
        cost: Cost::ONE,
        mode: Mode::Enforce,
        handling: Handling::default().with_at_bound(AtBound::Displace),
    }
}

pub(super) fn patient(server: &Server) -> RedisStore {
    // The machine that runs the tests may be busy: what is tested here is not the deadline.
    let options = RedisOptions { deadline: Duration::from_secs(5), ..RedisOptions::default() };
    RedisStore::new(&server.url(), options).unwrap()
}

pub(super) async fn ask(store: &RedisStore, charge: Charge<'_>) -> Result<Decision, crate::StoreError> {
    let mut decisions = [Decision::unmade(&charge.quota)];
    store.decide(&[charge], &mut decisions).await.map(|_| decisions[0])
}

#[tokio::test]
async fn br_072_of_many_tasks_at_once_exactly_the_burst_passes() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let store = patient(&server);
        for round in 0..10_u8 {
            let mut tasks = JoinSet::new();
            for _ in 0..200 {
                let store = store.clone();
                tasks.spawn(async move { ask(&store, charge("10/h", &[round])).await.unwrap().is_allowed() });
            }
            let passed = tasks.join_all().await.into_iter().filter(|passed| *passed).count();
            assert_eq!(passed, 10, "{kind:?}, round {round}");
        }
    }
}

#[tokio::test]
async fn br_085_a_server_that_forgot_the_script_is_told_it_again_once() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let mut left = Vec::new();
    for i in 0..6 {
        if i == 3 {
            server.connection().req_command(cmd("SCRIPT").arg("FLUSH")).unwrap();
        }
        left.push(ask(&store, charge("10/h", b"a")).await.unwrap().remaining());
    }
    assert_eq!(left, [9, 8, 7, 6, 5, 4]);

    server.connection().req_command(cmd("SCRIPT").arg("FLUSH")).unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let store = store.clone();
        tasks.spawn(async move { ask(&store, charge("100/h", b"b")).await.unwrap().is_allowed() });
    }
    assert!(tasks.join_all().await.into_iter().all(|passed| passed));
    let look = Charge { cost: Cost::ZERO, ..charge("100/h", b"b") };
    assert_eq!(ask(&store, look).await.unwrap().remaining(), 50);
}

#[tokio::test]
async fn br_139_a_denied_request_costs_nothing_under_the_other_limits() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let a = charge("10/h", b"user");
    let b = Charge { limit: LimitId::of("test", "b"), ..charge("30/h", b"user") };
    for charges in [[a, b], [b, a]] {
        let mut passed = 0;
        for _ in 0..31 {
            let mut decisions = [Decision::unmade(&a.quota); 2];
            passed += usize::from(store.decide(&charges, &mut decisions).await.unwrap().allowed);
        }
        assert_eq!(passed, 10);
        let look = Charge { cost: Cost::ZERO, ..b };
        assert_eq!(ask(&store, look).await.unwrap().remaining(), 20);
        store.reset(a.limit, b"user").await.unwrap();
        store.reset(b.limit, b"user").await.unwrap();
    }
}

#[tokio::test]
async fn a_changed_limit_keeps_what_is_owed() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let ask_times = async |limit: &str, key: &[u8], times: usize| {
        let mut passed = 0;
        for _ in 0..times {
            passed += usize::from(ask(&store, charge(limit, key)).await.unwrap().is_allowed());
        }
        passed
    };
    // br_078: lowered, and raised again.
    assert_eq!(ask_times("10/day", b"lowered", 3).await, 3);
    assert_eq!(ask_times("5/day", b"lowered", 10).await, 2);
    assert_eq!(ask_times("10/day", b"lowered", 10).await, 5);
    // br_081: raised by two. br_074, br_084: the growth is there at once, what is owed stays owed.
    assert_eq!(ask_times("10/day", b"raised", 10).await, 10);
    assert_eq!(ask_times("12/day", b"raised", 12).await, 2);
    assert_eq!(ask_times("50/day", b"raised", 60).await, 38);
}

#[tokio::test]
async fn reset_and_grant_fill_at_most_to_full() {
    let server = Server::start(Kind::Valkey9);
    let store = patient(&server);
    let look = Charge { cost: Cost::ZERO, ..charge("10/day", b"k") };
    let spend = Charge { cost: Cost::new(10), ..look };
    assert!(ask(&store, spend).await.unwrap().is_allowed());
    store.grant(look.limit, &look.quota, b"k", 4).await.unwrap();
    assert_eq!(ask(&store, look).await.unwrap().remaining(), 4);
    store.grant(look.limit, &look.quota, b"k", 400).await.unwrap();
    assert_eq!(ask(&store, look).await.unwrap().remaining(), 10);
    assert!(ask(&store, spend).await.unwrap().is_allowed());
    store.reset(look.limit, b"k").await.unwrap();
    assert_eq!(ask(&store, look).await.unwrap().remaining(), 10);
}

#[tokio::test]
async fn what_can_never_pass_and_what_cannot_be_exact_do_not_reach_the_server() {
    let store = RedisStore::new("redis://127.0.0.1:1", RedisOptions::default()).unwrap();
    let never = Charge { cost: Cost::new(11), ..charge("10/day", b"k") };
    assert!(ask(&store, never).await.unwrap().is_never());
    let fast = ask(&store, charge("1000001/s", b"k")).await.unwrap_err();
    assert_eq!(fast, crate::StoreError::OutOfRange(crate::OutOfRange::Rate));
}
