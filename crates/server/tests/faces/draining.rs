//! Ending without cutting anybody off.

use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tidegate_server::{Drain, Jokes, ListenAddress, Setup, run};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::{Client, PATIENCE, Scene, Stage, eventually, upstream};

/// An upstream that answers when it is told to.
async fn gated() -> (std::net::SocketAddr, Arc<Notify>, crate::support::Log) {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let (address, log) = upstream(move |_| {
        let gate = Arc::clone(&opened);
        async move {
            gate.notified().await;
            Response::new(Full::<Bytes>::from("done"))
        }
    })
    .await;
    (address, gate, log)
}

#[tokio::test]
async fn a_request_in_flight_is_finished_and_idle_connections_are_closed() {
    let (upstream, gate, log) = gated().await;
    let stage = Stage::before(upstream);
    let mut idle = Client::to(stage.address).await;
    gate.notify_one();
    assert_eq!(idle.get("/").await.field("connection"), None);
    let mut fresh = Client::to(stage.address).await;
    let mut busy = Client::to(stage.address).await;
    busy.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("it is in flight", || log.requests() == 2).await;
    eventually("all are accepted", || stage.metric("tidegate_connections") == 3).await;

    stage.drain.start();
    assert_eq!((idle.rest().await, fresh.rest().await), Default::default());
    let address = stage.address;
    eventually("nobody listens", || std::net::TcpStream::connect(address).is_err()).await;
    assert!(!stage.served.is_finished());

    gate.notify_one();
    let answer = busy.answer().await;
    assert_eq!((answer.text(), answer.field("connection")), ("done", Some("close")));
    assert_eq!(busy.rest().await, "");
    timeout(PATIENCE, stage.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn after_the_grace_period_it_ends_anyway() {
    let (upstream, _gate, log) = gated().await;
    let mut scene = Scene::default();
    scene.bounds.grace = Duration::from_millis(50);
    let stage = scene.before(upstream);
    let mut busy = Client::to(stage.address).await;
    busy.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("it is in flight", || log.requests() == 1).await;
    stage.drain.start();
    timeout(PATIENCE, stage.served).await.unwrap().unwrap().unwrap();
    assert_eq!(busy.rest().await, "");
}

#[tokio::test]
async fn draining_before_listening_is_heard() {
    let drain = Drain::new();
    drain.start();
    timeout(PATIENCE, drain.started()).await.unwrap();
    assert!(drain.has_started());
}

#[test]
fn several_workers_serve_one_port_until_they_drain() {
    let address: ListenAddress = "127.0.0.1:0".parse().unwrap();
    let listeners = address.bind(NonZeroUsize::new(3).unwrap()).unwrap();
    let address = listeners[0].local_addr().unwrap().unwrap();
    let listeners = listeners.into_iter().map(|one| vec![one]).collect();
    let (setup, drain) = (Setup::default(), Drain::new());
    std::thread::scope(|scope| {
        let workers = scope.spawn(|| run(listeners, || Jokes::new(|| 0), &setup, &drain));
        for _ in 0..20 {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            client.write_all(b"GET /joke HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        drain.start();
        workers.join().unwrap().unwrap();
    });
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn dropping_the_server_cuts_its_connections() {
    let (upstream, _gate, log) = gated().await;
    let stage = Stage::before(upstream);
    let mut busy = Client::to(stage.address).await;
    busy.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("it is in flight", || log.requests() == 1).await;
    stage.served.abort();
    assert_eq!(busy.rest().await, "");
    assert!(TcpStream::connect(stage.address).await.is_err());
}
