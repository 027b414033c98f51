//! Whoever stops waiting leaves nothing behind, whoever asks from elsewhere is answered, and a server that fails is asked
//! for one connection at a time.

use std::time::Duration;

use redis::{ConnectionLike as _, cmd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::proxy::{OPEN, Proxy, Way};
use super::server::{Kind, Server};
use super::sharing::{ask, charge};
use crate::{FAILURES_MAX, FailureKind, RedisOptions, RedisStore, StoreError};

const DEADLINE: Duration = Duration::from_millis(50);
/// Five times the deadline: the machine may be busy.
const IN_TIME: Duration = Duration::from_millis(250);

fn store(url: &str) -> RedisStore {
    RedisStore::new(url, RedisOptions { deadline: DEADLINE, patience: IN_TIME, ..RedisOptions::default() }).unwrap()
}

fn patient(url: &str) -> RedisStore {
    RedisStore::new(url, RedisOptions { deadline: Duration::from_secs(10), ..RedisOptions::default() }).unwrap()
}

async fn recovers(store: &RedisStore) {
    let start = Instant::now();
    while ask(store, charge("1000000/s", b"recovers")).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(10), "it did not recover");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn of_a_thousand_who_stop_waiting_nothing_is_left() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server.url());
    recovers(&store).await;
    for round in 0..5 {
        server.freeze();
        let mut tasks = JoinSet::new();
        for i in 0..1_000_u32 {
            let store = store.clone();
            tasks.spawn(async move { ask(&store, charge("10/day", &i.to_be_bytes())).await.map(|_| ()) });
        }
        while store.state().waiting + store.state().in_flight < 1_000 {
            sleep(Duration::from_millis(1)).await;
        }
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        server.thaw();
        recovers(&store).await;
        let state = store.state();
        assert_eq!((state.waiting, state.in_flight), (0, 0), "round {round}");
    }
    // At most those whose call was under way were charged.
    let redis::Value::Int(keys) = server.ask(&["DBSIZE"]) else { panic!("a number") };
    assert!(keys < 200, "{keys}");
}

#[test]
fn tasks_of_other_runtimes_are_answered_and_their_deadline_holds() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    let server = Server::start(Kind::Redis7);
    let url = server.url();
    let home = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            sender.send(store(&url)).unwrap();
            let _ = ended.await;
        });
    });
    let store = receiver.recv().unwrap();
    let elsewhere = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    std::thread::scope(|threads| {
        for i in 0..3_u8 {
            let store = &store;
            threads.spawn(move || {
                elsewhere().block_on(async {
                    recovers(store).await;
                    assert!(ask(store, charge("10/day", &[i])).await.unwrap().is_allowed());
                });
            });
        }
    });
    server.freeze();
    elsewhere().block_on(async {
        let start = Instant::now();
        assert_eq!(ask(&store, charge("10/day", b"k")).await, Err(StoreError::Deadline));
        assert!(start.elapsed() < IN_TIME);
    });
    server.thaw();
    // And when the runtime of the store is gone, nobody waits for it.
    drop(ends);
    home.join().unwrap();
    let start = std::time::Instant::now();
    let error = elsewhere().block_on(ask(&store, charge("10/day", b"k"))).unwrap_err();
    assert_eq!(error, StoreError::Unavailable);
    assert!(start.elapsed() < IN_TIME);
}

/// A server that takes scripts and lets none of them read the clock.
async fn without_clock(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut bytes = vec![0; 64 * 1_024];
            while let Ok(count) = stream.read(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                let answer: &[u8] = match () {
                    () if count == 0 => return,
                    () if text.contains("ROLE") => b"-ERR unknown command\r\n",
                    () if text.contains("LOAD") => b"$40\r\n0000000000000000000000000000000000000000\r\n",
                    () => b"-ERR This Redis command is not allowed from script script: ab, on @user_script:17.\r\n",
                };
                stream.write_all(answer).await.unwrap();
            }
        });
    }
}

#[tokio::test]
async fn br_090_a_server_that_keeps_its_clock_to_itself_is_named_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = store(&format!("redis://{}", listener.local_addr().unwrap()));
    tokio::spawn(without_clock(listener));
    let error = store.probe().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Clock), "{error}");
    for i in 0..50_u8 {
        assert!(ask(&store, charge("10/day", &[i])).await.is_err(), "nobody else's clock is used");
    }
    let complaint = store.complaint().await;
    assert!(complaint.to_string().contains("read the clock"), "{complaint}");
    assert!(timeout(Duration::from_millis(300), store.complaint()).await.is_err(), "it is told once");
}

#[tokio::test]
async fn br_092_a_network_that_swallows_everything_is_left_alone_and_found_again() {
    let server = Server::start(Kind::Redis7);
    let proxy = Proxy::before(server.port());
    let store = store(&proxy.url());
    recovers(&store).await;
    proxy.set(Way::Swallow);
    let mut waited = 0;
    for _ in 0..100 {
        let start = Instant::now();
        waited += u32::from(ask(&store, charge("1000000/s", b"k")).await == Err(StoreError::Deadline));
        assert!(start.elapsed() < IN_TIME);
    }
    assert!((1..=FAILURES_MAX + 1).contains(&waited), "{waited} decisions waited");
    let asked = proxy.bytes()[0];
    for _ in 0..100 {
        assert_eq!(ask(&store, charge("1000000/s", b"k")).await, Err(StoreError::Unavailable));
    }
    assert!(proxy.bytes()[0] - asked < 200, "no decision goes to the network");
    proxy.set(OPEN);
    let start = Instant::now();
    recovers(&store).await;
    // Two seconds, and the machine may be busy.
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn br_094_another_primary_behind_the_same_address_is_found() {
    let old = Server::start(Kind::Redis7);
    let store = store(&old.url());
    recovers(&store).await;
    old.connection().req_command(cmd("CONFIG").arg("SET").arg("replica-read-only").arg("yes")).unwrap();
    // A replica keeps the connections that it had, and answers that it may not be written to.
    old.connection().req_command(cmd("REPLICAOF").arg("127.0.0.1").arg("1")).unwrap();
    let error = ask(&store, charge("10/day", b"k")).await.unwrap_err();
    let expected = [Some(FailureKind::ReadOnly), Some(FailureKind::Unavailable), Some(FailureKind::MasterDown)];
    assert!(expected.contains(&error.kind()), "{error}");
    for _ in 0..20 {
        assert!(ask(&store, charge("10/day", b"k")).await.is_err());
    }
    assert!(!store.is_up(), "it is asked no more");
    old.connection().req_command(cmd("REPLICAOF").arg("NO").arg("ONE")).unwrap();
    recovers(&store).await;
}

#[tokio::test]
async fn br_096_one_connection_is_tried_for_at_a_time_however_many_wait() {
    let server = Server::start(Kind::Redis7);
    let proxy = Proxy::before(server.port());
    let store = patient(&proxy.url());
    recovers(&store).await;
    let before = store.state().reconnects;
    let mut tasks = JoinSet::new();
    for _ in 0..500 {
        let store = store.clone();
        tasks.spawn(async move { ask(&store, charge("1000000/s", b"k")).await.is_ok() });
    }
    proxy.set(Way::Refuse);
    proxy.cut();
    tasks.join_all().await;
    sleep(Duration::from_secs(3)).await;
    let tried = store.state().reconnects - before;
    assert!((3..=11).contains(&tried), "{tried} attempts in three seconds");
    proxy.set(OPEN);
    recovers(&store).await;
    let stable = store.state().reconnects;
    sleep(Duration::from_secs(2)).await;
    assert!(store.is_up());
    assert_eq!(store.state().reconnects, stable, "it stays");
}

#[tokio::test]
async fn a_server_without_memory_is_left_alone_and_asked_again_now_and_then() {
    let server = Server::start(Kind::Redis8);
    let store = store(&server.url());
    recovers(&store).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let start = Instant::now();
    let mut answered = 0_u32;
    while start.elapsed() < Duration::from_secs(2) {
        let error = ask(&store, charge("10/h", b"new")).await.unwrap_err();
        answered += u32::from(error.kind() == Some(FailureKind::OutOfMemory));
        sleep(Duration::from_millis(1)).await;
    }
    assert!((FAILURES_MAX..FAILURES_MAX + 15).contains(&answered), "{answered} decisions reached it");
    let counted = store.state().failures().find(|(kind, _)| *kind == FailureKind::OutOfMemory).unwrap().1;
    assert_eq!(counted, u64::from(answered));
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    recovers(&store).await;
}
