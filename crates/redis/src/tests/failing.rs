//! Servers that refuse, fall silent, restart or have no room: every decision ends in time, and recovery comes by itself.

use std::time::Duration;

use redis::{ConnectionLike as _, cmd};
use tokio::time::{Instant, sleep};

use super::server::{Kind, Server};
use super::sharing::{ask, charge};
use crate::{FAILURES_MAX, RedisOptions, RedisStore, StoreError};

const DEADLINE: Duration = Duration::from_millis(50);
/// Five times the deadline: the machine may be busy.
const IN_TIME: Duration = Duration::from_millis(250);

fn store(url: &str) -> RedisStore {
    RedisStore::new(url, RedisOptions { deadline: DEADLINE, patience: IN_TIME, ..RedisOptions::default() }).unwrap()
}

/// Asks until the store answers.
async fn recovers(store: &RedisStore, key: &[u8]) {
    let start = Instant::now();
    while ask(store, charge("1000000/s", key)).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(10), "it did not recover");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn fails_in_time(store: &RedisStore, decisions: u32) -> Vec<StoreError> {
    let mut errors = Vec::new();
    for _ in 0..decisions {
        let start = Instant::now();
        errors.push(ask(store, charge("1000000/s", b"k")).await.unwrap_err());
        assert!(start.elapsed() < IN_TIME, "a decision took {:?}", start.elapsed());
    }
    errors
}

#[tokio::test]
async fn br_092_a_refused_connection_fails_at_once() {
    let store = store("redis://127.0.0.1:1");
    let errors = fails_in_time(&store, 100).await;
    assert!(errors.iter().all(|error| matches!(error, StoreError::Unavailable | StoreError::Deadline)));
    assert!(!store.is_up());
}

#[tokio::test]
async fn br_092_a_silent_server_is_left_alone_and_found_again() {
    let server = Server::start(Kind::Redis7);
    let store = store(&server.url());
    recovers(&store, b"k").await;
    server.freeze();
    let errors = fails_in_time(&store, FAILURES_MAX + 95).await;
    let waited = errors.iter().filter(|error| **error == StoreError::Deadline).count();
    assert!((1..=FAILURES_MAX as usize + 1).contains(&waited), "{waited} decisions waited");
    server.thaw();
    recovers(&store, b"k").await;
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again_without_its_buckets_and_its_script() {
    let mut server = Server::start(Kind::Valkey9);
    let store = store(&server.url());
    recovers(&store, b"k").await;
    server.kill();
    fails_in_time(&store, 20).await;
    server.start_again();
    recovers(&store, b"k").await;
}

#[tokio::test]
async fn a_replica_in_the_place_of_the_primary_is_an_error_and_not_a_decision() {
    let server = Server::start(Kind::Redis7);
    let store = store(&server.url());
    recovers(&store, b"k").await;
    server.connection().req_command(cmd("REPLICAOF").arg("127.0.0.1").arg("1")).unwrap();
    for error in fails_in_time(&store, 20).await {
        assert!(!matches!(error, StoreError::Malformed | StoreError::Busy), "{error:?}");
    }
    server.connection().req_command(cmd("REPLICAOF").arg("NO").arg("ONE")).unwrap();
    recovers(&store, b"k").await;
}

#[tokio::test]
async fn a_server_without_memory_is_an_error_and_a_bucket_of_another_kind_too() {
    let server = Server::start(Kind::Redis7);
    let store = store(&server.url());
    recovers(&store, b"k").await;
    let mut connection = server.connection();
    connection.req_command(cmd("CONFIG").arg("SET").arg("maxmemory").arg("1")).unwrap();
    let full = ask(&store, charge("10/h", b"new")).await.unwrap_err();
    assert!(matches!(&full, StoreError::Server(text) if text.contains("OOM")), "{full:?}");
    connection.req_command(cmd("CONFIG").arg("SET").arg("maxmemory").arg("0")).unwrap();
    recovers(&store, b"k").await;

    let name = crate::names::Names::new("tg").bucket(&charge("10/h", b"list"));
    connection.req_command(cmd("LPUSH").arg(&name).arg("x")).unwrap();
    let wrong = ask(&store, charge("10/h", b"list")).await.unwrap_err();
    assert!(matches!(&wrong, StoreError::Server(text) if text.contains("WRONGTYPE")), "{wrong:?}");
    connection.req_command(cmd("SET").arg(&name).arg("x")).unwrap();
    let (wrong, other) = tokio::join!(ask(&store, charge("10/h", b"list")), ask(&store, charge("10/h", b"other")));
    assert!(matches!(wrong.unwrap_err(), StoreError::Server(text) if text.contains("WRONGTYPE")));
    assert!(other.unwrap().is_allowed(), "one bucket's fault is its own, also in a call that is shared");
}

#[tokio::test]
async fn br_026_br_027_no_key_is_left_without_an_expiry() {
    let server = Server::start(Kind::Redis8);
    let store = store(&server.url());
    recovers(&store, b"k").await;
    for i in 0..200_u32 {
        let limit = ["1000/s", "10/min", "1/day"][i as usize % 3];
        let _ = ask(&store, charge(limit, &i.to_be_bytes())).await;
    }
    let mut connection = server.connection();
    let redis::Value::Array(keys) = connection.req_command(cmd("KEYS").arg("*")).unwrap() else { panic!("keys") };
    assert!(!keys.is_empty());
    for key in keys {
        let redis::Value::BulkString(key) = key else { panic!("a name") };
        let ms = connection.req_command(cmd("PTTL").arg(&key)).unwrap();
        assert_ne!(ms, redis::Value::Int(-1), "{} has no expiry", String::from_utf8_lossy(&key));
    }
}
