//! Upgrades through the proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Client, Scene, Stage, eventually, raw_upstream, read_head, upstream};

const ASK: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const AGREE: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nx-kept: yes\r\n\r\n";

/// An upstream that agrees, and gives back what it gets until the other side has ended.
async fn echo(mut socket: TcpStream) {
    read_head(&mut socket).await;
    socket.write_all(AGREE).await.unwrap();
    let (mut read, mut write) = socket.split();
    tokio::io::copy(&mut read, &mut write).await.unwrap();
    write.write_all(b"bye").await.unwrap();
}

async fn upgraded(stage: &Stage) -> Client {
    let mut client = Client::to(stage.address).await;
    client.send(ASK).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    client
}

fn open(stage: &Stage) -> u64 {
    stage.metric("tidegate_upgraded_connections")
}

#[tokio::test]
async fn both_sides_talk_and_each_may_end_first() {
    let stage = Stage::before(raw_upstream(echo).await);
    let mut client = Client::to(stage.address).await;
    client.send(ASK).await;
    let head = client.head().await;
    for field in ["connection: upgrade\r\n", "upgrade: websocket\r\n", "x-kept: yes\r\n"] {
        assert!(head.contains(field), "{head}");
    }
    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"), "{head}");
    for word in ["one", "two", "six"] {
        client.send(word).await;
        assert_eq!(client.exactly(3).await, word.as_bytes());
    }
    assert_eq!(open(&stage), 1);
    // The client has no more to say, and hears the rest.
    client.socket.shutdown().await.unwrap();
    assert_eq!(client.rest().await, "bye");
    eventually("the tunnel is closed", || open(&stage) == 0 && stage.metric("tidegate_connections") == 0).await;
    assert_eq!(stage.metric("tidegate_upstream_responses_total{class=\"1xx\"}"), 1);
}

#[tokio::test]
async fn an_upstream_that_ends_first_still_hears_the_client() {
    let heard = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&heard);
    let upstream = raw_upstream(move |mut socket| {
        let counter = Arc::clone(&counter);
        async move {
            read_head(&mut socket).await;
            socket.write_all(AGREE).await.unwrap();
            socket.shutdown().await.unwrap();
            let mut all = Vec::new();
            socket.read_to_end(&mut all).await.unwrap();
            counter.store(all.len(), SeqCst);
        }
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = upgraded(&stage).await;
    assert_eq!(client.rest().await, "");
    client.send("still here").await;
    client.socket.shutdown().await.unwrap();
    eventually("it was heard", || heard.load(SeqCst) == 10).await;
}

#[tokio::test]
async fn what_comes_right_behind_the_head_is_not_lost() {
    let upstream = raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        socket.write_all(&[AGREE, b"first"].concat()).await.unwrap();
        let mut all = vec![0; 5];
        socket.read_exact(&mut all).await.unwrap();
        socket.write_all(&all).await.unwrap();
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send([ASK.as_bytes(), b"hasty"].concat()).await;
    client.head().await;
    assert_eq!(client.rest().await, "firsthasty");
}

/// The first line and the fields of the connection that the upstream gets for a head.
async fn seen(head: &str) -> String {
    let upstream = raw_upstream(|mut socket| async move {
        let head = read_head(&mut socket).await;
        let about = |line: &&str| line.starts_with("connection") || line.starts_with("upgrade") || line.contains("2-");
        let text = head.lines().filter(about).collect::<Vec<_>>().join(", ");
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        socket.write_all(answer.as_bytes()).await.unwrap();
        read_head(&mut socket).await;
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send(format!("{head}\r\n\r\n")).await;
    client.answer().await.text().to_owned()
}

#[tokio::test]
async fn only_what_is_meant_for_the_upstream_is_asked_of_it() {
    let both = "connection: upgrade, upgrade: ";
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket", format!("{both}websocket")),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: a/1, b", format!("{both}a/1, b")),
        ("GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket", String::new()),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade", String::new()),
        ("GET / HTTP/1.0\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket", String::new()),
        // Requests inside of these would pass by unseen.
        (
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA",
            String::new(),
        ),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: H2C, websocket", format!("{both}websocket")),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: TLS/1.2, HTTP/2.0", String::new()),
    ] {
        assert_eq!(seen(head).await, expected, "{head}");
    }
}

#[tokio::test]
async fn any_other_answer_passes_as_usual_and_the_connection_goes_on() {
    let (upstream, log) = upstream(|_| async {
        let answer = http::Response::builder().status(403).header("x-why", "not here");
        answer.body(http_body_util::Full::<bytes::Bytes>::from("no")).unwrap()
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send(ASK).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text(), answer.field("x-why")), (403, "no", Some("not here")));
    assert_eq!(client.get("/").await.status, 403);
    assert_eq!((log.requests(), open(&stage)), (2, 0));
}

#[tokio::test]
async fn a_change_that_was_not_asked_for_is_a_502() {
    for protocol in ["h2c", "websocket, h2c", ""] {
        let upstream = raw_upstream(move |mut socket| async move {
            read_head(&mut socket).await;
            let head =
                format!("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n");
            socket.write_all(head.as_bytes()).await.unwrap();
            let _ = read_head(&mut socket).await;
        })
        .await;
        let stage = Stage::before(upstream);
        let mut client = Client::to(stage.address).await;
        client.send(ASK).await;
        let answer = client.answer().await;
        let detail = format!("the upstream http://{upstream} changed to a protocol that was not asked for");
        assert_eq!((answer.status, answer.problem()), (502, detail), "{protocol}");
    }
}

#[tokio::test]
async fn an_upstream_that_speaks_http_2_only_upgrades_nothing() {
    let stage = Scene::of(&["h2c://UPSTREAM"]).before("127.0.0.1:1".parse().unwrap());
    let mut client = Client::to(stage.address).await;
    client.send(ASK).await;
    let answer = client.answer().await;
    let detail = "the upstream h2c://127.0.0.1:1 speaks HTTP/2 only, where no connection is upgraded";
    assert_eq!((answer.status, answer.problem().as_str()), (501, detail));
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_passes_is_closed_after_its_time() {
    let mut scene = Scene::default();
    scene.bounds.upstream.stream_timeout = Duration::from_millis(100);
    let stage = scene.before(raw_upstream(echo).await);
    let mut client = upgraded(&stage).await;
    // The pace is the thing tested, so time has to pass: six times the time, with a word now and then.
    for _ in 0..10 {
        client.send("x").await;
        assert_eq!(client.exactly(1).await, b"x");
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let _ = client.rest().await;
    eventually("it is closed", || open(&stage) == 0).await;
}

#[tokio::test]
async fn a_stop_waits_for_a_tunnel_and_cuts_it_after_the_grace_period() {
    let mut scene = Scene::default();
    scene.bounds.grace = Duration::from_millis(200);
    let stage = scene.before(raw_upstream(echo).await);
    let mut client = upgraded(&stage).await;
    stage.drain.start();
    client.send("x").await;
    assert_eq!(client.exactly(1).await, b"x");
    assert_eq!(client.rest().await, "");
    stage.served.await.unwrap().unwrap();
}
