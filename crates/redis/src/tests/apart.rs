//! Decisions over several slots of a cluster: all or nothing, also when a node is silent or the caller leaves.

use std::time::Duration;

use tidegate_core::{Charge, Cost, Decision, LimitId, Mode, ReservationId, Settled, Store as _, Verdict};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::nodes::Nodes;
use super::server::Kind;
use super::sharing::{ask, charge};
use crate::slots::slot_of;
use crate::{RedisOptions, RedisStore, StoreError};

fn store(nodes: &Nodes, deadline: Duration) -> RedisStore {
    RedisStore::new(&nodes.url(), RedisOptions { deadline, ..RedisOptions::default() }).unwrap()
}

fn patient(nodes: &Nodes) -> RedisStore {
    store(nodes, Duration::from_secs(10))
}

/// A key that starts like this, and whose buckets this node keeps.
fn key_at(store: &RedisStore, node: usize, start: &str) -> Vec<u8> {
    let mut keys = (0..).map(|i| format!("{start}{i}").into_bytes());
    keys.find(|key| Nodes::home(slot_of(&store.names.bucket(&charge("1/s", key)))) == node).unwrap()
}

fn keys(store: &RedisStore, start: &str) -> [Vec<u8>; 3] {
    [0, 1, 2].map(|node| key_at(store, node, start))
}

async fn decide(store: &RedisStore, charges: &[Charge<'_>]) -> Result<(Verdict, Vec<Decision>), StoreError> {
    let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let verdict = store.decide(charges, &mut decisions).await?;
    Ok((verdict, decisions))
}

async fn left(store: &RedisStore, charge: Charge<'_>) -> u64 {
    ask(store, charge.with_cost(Cost::ZERO)).await.unwrap().remaining()
}

async fn is_soon(store: &RedisStore, charge: Charge<'_>, remaining: u64) {
    let start = Instant::now();
    while left(store, charge).await != remaining {
        assert!(start.elapsed() < Duration::from_secs(10), "{} are left, not {remaining}", left(store, charge).await);
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn br_087_limits_of_several_keys_are_all_charged_or_none() {
    for kind in [Kind::Redis7, Kind::Valkey9] {
        let nodes = Nodes::start(kind);
        let store = patient(&nodes);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let keys = keys(&store, &format!("{order:?}"));
            let each = [charge("10/day", &keys[0]), charge("5/day", &keys[1]), charge("7/day", &keys[2])];
            let charges = order.map(|place| each[place]);
            let mut passed = 0;
            for _ in 0..12 {
                let (verdict, decisions) = decide(&store, &charges).await.unwrap();
                passed += u64::from(verdict.allowed);
                let binding = verdict.binding.unwrap();
                assert_eq!(order[binding], 1, "the fewest are left of the second");
                assert_eq!(decisions[binding].is_allowed(), verdict.allowed);
                let shown: Vec<_> = order.iter().map(|place| [10, 5, 7][*place] - passed).collect();
                assert_eq!(decisions.iter().map(Decision::remaining).collect::<Vec<_>>(), shown);
            }
            assert_eq!(passed, 5, "{kind:?}, {order:?}");
            for (charge, remaining) in each.into_iter().zip([5, 0, 2]) {
                assert_eq!(left(&store, charge).await, remaining, "{kind:?}, {order:?}");
            }
        }
    }
}

#[tokio::test]
async fn of_many_at_once_what_passes_is_what_is_charged() {
    let nodes = Nodes::start(Kind::Redis8);
    let store = patient(&nodes);
    let keys = keys(&store, "k");
    let mut tasks = JoinSet::new();
    for i in 0..300_usize {
        let (store, keys) = (store.clone(), keys.clone());
        tasks.spawn(async move {
            let (a, b) = (&keys[i % 3], &keys[(i + 1) % 3]);
            decide(&store, &[charge("50/day", a), charge("50/day", b)]).await.unwrap().0.allowed
        });
    }
    let passed = tasks.join_all().await.into_iter().filter(|passed| *passed).count() as u64;
    let mut owed = 0;
    for key in &keys {
        owed += 50 - left(&store, charge("50/day", key)).await;
    }
    assert_eq!(owed, 2 * passed);
    // A neighbour may be denied what is given back an instant later, so not all of it need pass.
    assert!((40..=75).contains(&passed), "{passed}");
}

#[tokio::test]
async fn limits_in_shadow_are_charged_in_other_slots_too_and_only_if_the_others_allowed() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = patient(&nodes);
    let keys = keys(&store, "k");
    let enforced = [charge("3/day", &keys[0]), charge("5/day", &keys[1])];
    let shadow = Charge { limit: LimitId::of("test", "shadow"), ..charge("2/day", &keys[2]) }.with_mode(Mode::Shadow);
    let beside = Charge { limit: shadow.limit, key: &keys[0], ..charge("9/day", b"") }.with_mode(Mode::Shadow);
    let charges = [shadow, enforced[0], beside, enforced[1]];
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (verdict, decisions) = decide(&store, &charges).await.unwrap();
        assert_ne!(verdict.binding, Some(0));
        seen.push((verdict.allowed, decisions[0].is_allowed()));
    }
    assert_eq!(seen[..3], [(true, true), (true, true), (true, false)]);
    assert!(seen[3..].iter().all(|(passed, _)| !passed));
    let remaining = [left(&store, shadow).await, left(&store, beside).await];
    assert_eq!(remaining, [0, 6]);
    assert_eq!([left(&store, enforced[0]).await, left(&store, enforced[1]).await], [0, 2]);
}

#[tokio::test]
async fn what_can_never_pass_reserves_nothing() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = patient(&nodes);
    let keys = keys(&store, "k");
    let (verdict, decisions) =
        decide(&store, &[charge("3/day", &keys[0]), charge("5/day", &keys[1]).with_cost(Cost::new(6))]).await.unwrap();
    assert!(!verdict.allowed && decisions[1].is_never());
    assert!(nodes.servers.iter().all(|server| server.ask(&["DBSIZE"]) == redis::Value::Int(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_silent_node_a_decision_fails_in_time_and_the_others_get_back_what_they_gave() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = store(&nodes, Duration::from_millis(100));
    let keys = keys(&store, "k");
    let charges = [charge("10/day", &keys[0]), charge("10/day", &keys[1])];
    let start = Instant::now();
    while decide(&store, &charges).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    is_soon(&store, charges[0], 9).await;
    nodes.servers[1].freeze();
    for _ in 0..3 {
        let start = Instant::now();
        let error = decide(&store, &charges).await.unwrap_err();
        assert!(matches!(error, StoreError::Deadline | StoreError::Unavailable), "{error:?}");
        assert!(start.elapsed() < Duration::from_millis(500));
    }
    is_soon(&store, charges[0], 9).await;
    nodes.servers[1].thaw();
    // What may have been reserved behind the silence is given back as well.
    let start = Instant::now();
    while ask(&store, charges[1].with_cost(Cost::ZERO)).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    is_soon(&store, charges[1], 9).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave_take_nothing_with_them() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = patient(&nodes);
    let keys = keys(&store, "k");
    let first = charge("1000/day", &keys[0]);
    assert!(decide(&store, &[first, charge("1000/day", &keys[1])]).await.unwrap().0.allowed);
    nodes.servers[1].freeze();
    let mut tasks = JoinSet::new();
    for _ in 0..200 {
        let (store, keys) = (store.clone(), keys.clone());
        tasks.spawn(async move { decide(&store, &[charge("1000/day", &keys[0]), charge("1000/day", &keys[1])]).await });
    }
    is_soon(&store, first, 799).await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    is_soon(&store, first, 999).await;
    nodes.servers[1].thaw();
    is_soon(&store, charge("1000/day", &keys[1]), 999).await;
    let start = Instant::now();
    while store.state().waiting + store.state().in_flight > 0 {
        assert!(start.elapsed() < Duration::from_secs(10));
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_reservation_over_several_slots_is_settled_once_in_each() {
    let nodes = Nodes::start(Kind::Valkey9);
    let store = patient(&nodes);
    let keys = keys(&store, "k");
    let charges = [0, 1, 2].map(|place| charge("10/day", &keys[place]).with_cost(Cost::new(4)));
    let id = ReservationId::new(7);
    let mut decisions = [Decision::unmade(&charges[0].quota); 3];
    let reserve =
        async |decisions: &mut [Decision]| store.reserve(&charges, decisions, id, Duration::from_secs(60)).await;
    assert!(reserve(&mut decisions).await.unwrap().allowed);
    assert_eq!(decisions.map(|decision| decision.remaining()), [6, 6, 6]);
    for (settled, remaining) in [(Settled::Settled, [9, 6, 4]), (Settled::Unknown, [9, 6, 4])] {
        let actual = [Cost::new(1), Cost::new(4), Cost::new(6)];
        assert_eq!(store.settle(id, &charges, &actual).await, Ok(settled));
        for (charge, remaining) in charges.into_iter().zip(remaining) {
            assert_eq!(left(&store, charge).await, remaining);
        }
    }
}
