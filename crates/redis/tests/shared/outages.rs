//! What the network does to a store, and what the store does to the network meanwhile.

use std::time::Duration;

use tidegate_redis::{FAILURES_MAX, RedisStore, StoreError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::given::proxy::{OPEN, Proxy, Way};
use crate::given::{ask, charge, options};
use crate::server::{Kind, Server};

const DEADLINE: Duration = Duration::from_millis(50);
/// Five times the deadline: the machine may be busy.
const IN_TIME: Duration = Duration::from_millis(250);

/// A store behind a proxy, which has answered.
async fn behind(proxy: &Proxy) -> RedisStore {
    let store = RedisStore::new(&proxy.url(), options(DEADLINE)).unwrap();
    recovers(&store).await;
    store
}

/// Asks until the store answers; how long did it take?
async fn recovers(store: &RedisStore) -> Duration {
    let start = Instant::now();
    while ask(store, charge("1000000/s", b"k")).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(10), "it did not recover");
        sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn br_092_a_network_that_swallows_everything_is_left_alone() {
    let server = Server::start(Kind::Redis7);
    let proxy = Proxy::before(server.port());
    let store = behind(&proxy).await;
    proxy.set(Way::Swallow);
    let before = proxy.bytes()[0];
    let mut waited = 0;
    for _ in 0..100 {
        let start = Instant::now();
        let error = ask(&store, charge("1000000/s", b"k")).await.unwrap_err();
        assert!(start.elapsed() < IN_TIME, "a decision took {:?}", start.elapsed());
        waited += u32::from(error == StoreError::Deadline);
    }
    assert!((1..=FAILURES_MAX + 1).contains(&waited), "{waited} decisions waited");
    let script_bytes = 8_192;
    assert!(proxy.bytes()[0] - before < 1_000 + 2 * script_bytes, "the others asked nothing");
    proxy.set(OPEN);
    recovers(&store).await;
}

#[tokio::test]
async fn a_refused_connection_is_made_again_when_somebody_listens() {
    let server = Server::start(Kind::Valkey9);
    let proxy = Proxy::before(server.port());
    let store = behind(&proxy).await;
    proxy.set(Way::Refuse);
    while ask(&store, charge("1000000/s", b"k")).await.is_ok() {
        sleep(Duration::from_millis(1)).await;
    }
    proxy.set(OPEN);
    recovers(&store).await;
}

#[tokio::test]
async fn an_answer_that_comes_after_the_deadline_is_an_error_and_the_store_comes_back() {
    let server = Server::start(Kind::Redis8);
    let proxy = Proxy::before(server.port());
    let store = behind(&proxy).await;
    proxy.set(Way::Pass(Duration::from_millis(200)));
    for _ in 0..20 {
        let start = Instant::now();
        assert!(ask(&store, charge("1000000/s", b"k")).await.is_err());
        assert!(start.elapsed() < IN_TIME, "a decision took {:?}", start.elapsed());
    }
    proxy.set(OPEN);
    recovers(&store).await;
}

#[tokio::test]
async fn br_096_five_hundred_lost_calls_make_few_attempts_to_connect() {
    let server = Server::start(Kind::Redis7);
    let proxy = Proxy::before(server.port());
    let store = RedisStore::new(&proxy.url(), options(Duration::from_secs(5))).unwrap();
    recovers(&store).await;
    // Slow enough that all are under way, or wait for it.
    proxy.set(Way::Pass(Duration::from_millis(200)));
    let mut calls = JoinSet::new();
    for _ in 0..500 {
        let store = store.clone();
        calls.spawn(async move { ask(&store, charge("1000000/s", b"k")).await.is_ok() });
    }
    sleep(Duration::from_millis(100)).await;
    let before = proxy.connections();
    proxy.set(Way::HangUp);
    let passed = calls.join_all().await.into_iter().filter(|passed| *passed).count();
    assert_eq!(passed, 0, "all of them were cut");
    let down = Instant::now();
    while down.elapsed() < Duration::from_secs(3) {
        let _ = ask(&store, charge("1000000/s", b"k")).await;
        sleep(Duration::from_millis(5)).await;
    }
    let attempts = proxy.connections() - before;
    assert!((2..=10).contains(&attempts), "{attempts} attempts to connect in three seconds");
    proxy.set(OPEN);
    recovers(&store).await;
    let (settled, stable) = (proxy.connections(), Instant::now());
    while stable.elapsed() < stable_for() {
        assert!(ask(&store, charge("1000000/s", b"k")).await.is_ok());
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(proxy.connections(), settled, "the new connection stays");
}

fn stable_for() -> Duration {
    Duration::from_secs(if std::env::var_os("TIDEGATE_LONG").is_some() { 10 } else { 1 })
}
