//! A cluster: every slot finds its node, also while slots move and nodes die, and what passes stays exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::{Charge, Cost, Decision, LimitId, Store as _};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};

use super::nodes::Nodes;
use super::server::{Kind, in_step};
use super::sharing::{ask, charge};
use crate::slots::slot_of;
use crate::{FailureKind, RedisOptions, RedisStore, StoreError};

fn patient(url: &str) -> RedisStore {
    let options = RedisOptions { deadline: Duration::from_secs(10), ..RedisOptions::default() };
    RedisStore::new(url, options).unwrap()
}

fn slot(store: &RedisStore, key: &[u8]) -> u16 {
    slot_of(&store.names.bucket(&charge("1/s", key)))
}

async fn remaining(store: &RedisStore, limit: &str, key: &[u8]) -> u64 {
    let look = Charge { cost: Cost::ZERO, ..charge(limit, key) };
    ask(store, look).await.unwrap().remaining()
}

fn two<'a>(limit: &str, key: &'a [u8]) -> [Charge<'a>; 2] {
    let first = charge(limit, key);
    [first, Charge { limit: LimitId::of("test", "second"), ..first }]
}

#[tokio::test]
async fn br_087_limits_of_one_key_are_one_call_whatever_the_key() {
    for kind in [Kind::Redis7, Kind::Valkey9] {
        let nodes = Nodes::start(kind);
        let store = patient(&nodes.url());
        for key in [&b"alice"[..], b"bob", b"user{1}", b"a}b{c", b"{}", b"", b"{", b"}{", &[0; 300]] {
            let charges = two("3/day", key);
            let mut passed = 0;
            for _ in 0..5 {
                let mut decisions = [Decision::unmade(&charges[0].quota); 2];
                passed += usize::from(store.decide(&charges, &mut decisions).await.unwrap().allowed);
            }
            assert_eq!(passed, 3, "{kind:?}, {key:?}");
        }
        let state = store.state();
        assert_eq!((state.nodes, state.nodes_up, state.complaint), (3, 3, None));
        assert!(nodes.servers.iter().all(|server| server.text(&["INFO", "keyspace"]).contains("db0:")));
    }
}

#[tokio::test]
async fn of_many_tasks_and_many_keys_exactly_the_burst_of_each_passes() {
    let nodes = Nodes::start(Kind::Redis8);
    let store = patient(&nodes.url());
    let mut tasks = JoinSet::new();
    for i in 0..2_000_u32 {
        let store = store.clone();
        tasks.spawn(async move { ask(&store, charge("10/h", &(i % 40).to_be_bytes())).await.unwrap().is_allowed() });
    }
    assert_eq!(tasks.join_all().await.into_iter().filter(|passed| *passed).count(), 400);
    let state = store.state();
    assert_eq!((state.waiting, state.in_flight, state.answered), (0, 0, 2_000));
}

/// Asks about each key as often as there is time, until told to end; counts what passed.
async fn drain(store: RedisStore, keys: Vec<Vec<u8>>, limit: &'static str, ends: Arc<AtomicBool>) -> Vec<u64> {
    let mut passed = vec![0; keys.len()];
    while !ends.load(Ordering::Relaxed) {
        for (passed, key) in passed.iter_mut().zip(&keys) {
            let charges = two(limit, key);
            let mut decisions = [Decision::unmade(&charges[0].quota); 2];
            let verdict = store.decide(&charges, &mut decisions).await.unwrap();
            *passed += u64::from(verdict.allowed);
        }
        sleep(Duration::from_millis(1)).await;
    }
    passed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passes_is_exact_while_slots_move() {
    for kind in [Kind::Redis7, Kind::Valkey9] {
        let nodes = Arc::new(Nodes::start(kind));
        let store = patient(&nodes.url());
        let keys: Vec<_> = (0..8_u8).map(|i| vec![b'k', i]).collect();
        let slots: Vec<_> = keys.iter().map(|key| slot(&store, key)).collect();
        let ends = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            // More than can be asked for in the time, so that every token that is lost or doubled shows.
            tasks.spawn(drain(store.clone(), keys.clone(), "1000000/day", Arc::clone(&ends)));
        }
        let moved = Arc::clone(&nodes);
        spawn_blocking(move || {
            for round in 0..6 {
                for slot in &slots {
                    let from = (Nodes::home(*slot) + round) % 3;
                    moved.begin_to_move(*slot, from, (from + 1) % 3);
                    moved.finish_moving(*slot, from, (from + 1) % 3);
                }
            }
        })
        .await
        .unwrap();
        ends.store(true, Ordering::Relaxed);
        let counts = tasks.join_all().await;
        for (i, key) in keys.iter().enumerate() {
            let passed: u64 = counts.iter().map(|counts| counts[i]).sum();
            let left = remaining(&store, "1000000/day", key).await;
            // A day's million gives a token back every 86 ms.
            let owed = 1_000_000 - left;
            assert!(passed > 20 && owed <= passed && passed - owed < 300, "{kind:?}: {passed} passed, {owed} are owed");
        }
        assert_eq!(store.state().complaint, None);
    }
}

#[tokio::test]
async fn a_slot_on_its_way_is_asked_for_where_its_keys_are() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = patient(&nodes.url());
    let (old, slot) = (b"old", slot(&store, b"old"));
    let from = Nodes::home(slot);
    let to = (from + 1) % 3;
    assert_eq!(remaining(&store, "10/day", old).await, 10);
    let [first, second] = two("10/day", old);
    assert!(ask(&store, first).await.unwrap().is_allowed());
    nodes.begin_to_move(slot, from, to);
    // One key that is still there, and one that is the other's as it is new.
    assert!(ask(&store, first).await.unwrap().is_allowed());
    assert!(ask(&store, second).await.unwrap().is_allowed());
    assert_eq!(nodes.servers[to].ask(&["DBSIZE"]), redis::Value::Int(1));
    // In one call they cannot be decided over before the slot has moved: whoever asks waits for that.
    let together = [first, second];
    let mut decisions = [Decision::unmade(&first.quota); 2];
    let (verdict, ()) = tokio::join!(store.decide(&together, &mut decisions), async {
        sleep(Duration::from_millis(50)).await;
        nodes.finish_moving(slot, from, to);
    });
    assert!(verdict.unwrap().allowed);
    assert_eq!(decisions.map(|decision| decision.remaining()), [7, 8]);
}

#[tokio::test]
async fn br_089_in_a_cluster_two_more_commands_are_enough() {
    let nodes = Nodes::start(Kind::Valkey9);
    let user = "ACL SETUSER gate on >pw -@all ~tg{* +eval +evalsha +script|load +time +get +set +del +cluster|slots \
                +asking";
    for server in &nodes.servers {
        server.ask(&user.split_whitespace().collect::<Vec<_>>());
    }
    let store = patient(&nodes.url().replace("://", "://gate:pw@"));
    for i in 0..20_u8 {
        assert!(ask(&store, charge("10/day", &[i])).await.unwrap().is_allowed());
    }
    let slot = slot(&store, b"new");
    nodes.begin_to_move(slot, Nodes::home(slot), (Nodes::home(slot) + 1) % 3);
    assert!(ask(&store, charge("10/day", b"new")).await.unwrap().is_allowed());
    assert_eq!(store.state().complaint, None);
}

#[tokio::test]
async fn keys_on_their_way_are_an_error_in_time_and_speak_against_no_node() {
    let nodes = Nodes::start(Kind::Redis7);
    let store = patient(&nodes.url());
    let slot = slot(&store, b"new");
    let from = Nodes::home(slot);
    assert_eq!(remaining(&store, "10/day", b"new").await, 10);
    nodes.begin_to_move(slot, from, (from + 1) % 3);
    let hasty = RedisOptions { deadline: Duration::from_millis(100), ..RedisOptions::default() };
    let hasty = RedisStore::new(&nodes.url(), hasty).unwrap();
    for _ in 0..10 {
        let start = Instant::now();
        let charges = two("10/day", b"new");
        let mut decisions = [Decision::unmade(&charges[0].quota); 2];
        let error = hasty.decide(&charges, &mut decisions).await.unwrap_err();
        assert_eq!(error.kind(), Some(FailureKind::Moved), "{error}");
        assert!(start.elapsed() < Duration::from_millis(500));
    }
    assert_eq!(hasty.state().nodes_up, hasty.state().nodes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_089_a_replica_takes_over_from_a_node_that_died_and_the_others_never_fail() {
    let mut nodes = Nodes::with_replicas(Kind::Valkey9);
    let options = RedisOptions { deadline: Duration::from_millis(200), ..RedisOptions::default() };
    let store = RedisStore::new(&nodes.url(), options).unwrap();
    let keys: Vec<_> = (0..30_u8).map(|i| vec![b'k', i]).collect();
    let (theirs, others): (Vec<_>, Vec<_>) = keys.iter().partition(|key| Nodes::home(slot(&store, key)) == 0);
    for key in &keys {
        assert!(ask(&store, charge("10/day", key)).await.unwrap().is_allowed());
    }
    in_step(&nodes.servers[0], &nodes.servers[3]);
    nodes.servers[0].kill();

    let start = Instant::now();
    let (mut failed, healthy) = (0, AtomicU64::new(0));
    while ask(&store, Charge { cost: Cost::ZERO, ..charge("10/day", theirs[0]) }).await.is_err() {
        failed += 1;
        // The cluster as a whole stops for a moment, until most of its nodes agree on what happened.
        for key in &others {
            healthy.fetch_add(u64::from(ask(&store, charge("1000000/s", key)).await.is_ok()), Ordering::Relaxed);
        }
        assert!(start.elapsed() < Duration::from_secs(20), "nobody took over");
    }
    assert!(failed > 0 && healthy.into_inner() > 0);
    for key in theirs {
        assert_eq!(remaining(&store, "10/day", key).await, 9, "what was replicated is kept");
    }
    let state = store.state();
    assert_eq!((state.nodes, state.nodes_up), (3, 3));
}

#[tokio::test]
async fn a_url_of_the_wrong_kind_of_deployment_is_named_once() {
    let nodes = Nodes::start(Kind::Redis7);
    let alone = RedisStore::new(&nodes.servers[0].url(), RedisOptions::default()).unwrap();
    for i in 0..20_u8 {
        let _ = ask(&alone, charge("10/day", &[i])).await;
    }
    let complaint = alone.complaint().await;
    assert_eq!(complaint.kind(), FailureKind::Deployment);
    assert!(complaint.to_string().contains("redis+cluster://"), "{complaint}");

    let server = super::server::Server::start(Kind::Redis7);
    let store = RedisStore::new(&server.url().replace("redis:", "redis+cluster:"), RedisOptions::default()).unwrap();
    let error = ask(&store, charge("10/day", b"k")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable | StoreError::Deadline), "{error:?}");
    let complaint = store.complaint().await;
    assert_eq!(complaint.kind(), FailureKind::Deployment);
}
