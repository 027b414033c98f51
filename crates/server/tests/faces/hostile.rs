//! Clients that mean no good.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::support::{Client, Log, Scene, Stage, eventually, upstream};

/// An upstream that reads whole requests, and the proxy before it.
async fn stage(scene: Scene) -> (Stage, Log) {
    let (upstream, log) = upstream(|request: Request<Incoming>| async move {
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Response::new(Full::<Bytes>::from(body))
    })
    .await;
    (scene.before(upstream), log)
}

/// What a client gets that sends `bytes` and then waits for the connection to close; how many requests came of it.
async fn sent(bytes: &[u8]) -> (String, usize) {
    let (stage, log) = stage(Scene::default()).await;
    let mut client = Client::to(stage.address).await;
    client.send(bytes).await;
    let answer = client.rest().await;
    // Whatever happened, the next one is served.
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    (answer, log.requests() - 1)
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_never_passed_on() {
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\n host: a\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: a\r\n\r\n",
        b"GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nno colon here\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\na",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 18446744073709551616\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x1\r\n\r\na",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n",
    ] {
        let (answer, requests) = sent(bytes).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 400 ");
        assert!(refused && requests == 0, "{:?} -> {answer:?}, {requests} passed on", String::from_utf8_lossy(bytes));
    }
}

#[tokio::test]
async fn a_coding_that_would_be_lost_on_the_way_is_refused() {
    for coding in ["gzip, chunked", "chunked\r\ntransfer-encoding: chunked", "identity, chunked"] {
        let request =
            format!("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: {coding}\r\n\r\n0\r\n\r\n");
        let (answer, requests) = sent(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 501 ") && requests == 0, "{coding} -> {answer:?}");
    }
}

#[tokio::test]
async fn with_both_length_and_coding_the_coding_counts_and_the_connection_ends() {
    for fields in ["content-length: 4\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 4"]
    {
        let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
        let request = format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n0\r\n\r\n{smuggled}");
        let (answer, requests) = sent(request.as_bytes()).await;
        assert!(requests <= 1 && answer.matches("HTTP/1.1").count() <= 1, "{fields} -> {answer:?}");
    }
}

#[tokio::test]
async fn bare_line_feeds_do_not_make_two_of_one() {
    let (answer, requests) = sent(b"GET / HTTP/1.1\nhost: a\nconnection: close\n\n").await;
    assert!(requests <= 1 && answer.matches("HTTP/1.1 ").count() == 1, "{answer:?}");
}

#[tokio::test]
async fn broken_chunks_end_the_request() {
    for chunks in [
        "fffffffffffffffff\r\n",
        "ffffffffffffffff\r\nabc",
        "-1\r\n\r\n",
        "zz\r\n\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
    ] {
        let (stage, log) = stage(Scene::default()).await;
        let mut client = Client::to(stage.address).await;
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunks}")).await;
        // No more will come of this client.
        tokio::io::AsyncWriteExt::shutdown(&mut client.socket).await.unwrap();
        let answer = client.rest().await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{chunks:?} -> {answer:?}");
        assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
        assert!(log.requests() <= 2, "{chunks:?}");
    }
}

#[tokio::test]
async fn header_sections_beyond_the_bounds_are_a_431_that_arrives() {
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(101));
    let target = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(200_000));
    for request in [long, many, target] {
        let (answer, requests) = sent(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 ") && requests == 0, "{answer:?}");
    }
}

#[tokio::test]
async fn a_header_section_that_does_not_end_is_cut() {
    let mut scene = Scene::default();
    scene.bounds.header_timeout = Duration::from_millis(100);
    let (stage, log) = stage(scene).await;
    let mut first = Client::to(stage.address).await;
    let mut silent = Client::to(stage.address).await;
    let mut second = Client::to(stage.address).await;
    assert_eq!(second.get("/").await.status, 200);
    for client in [&mut first, &mut second] {
        client.send("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    }
    assert_eq!((first.rest().await, second.rest().await, silent.rest().await), Default::default());
    eventually("they are counted", || stage.metric("tidegate_connections_too_slow_total") == 3).await;
    assert_eq!(log.requests(), 1);
}

#[tokio::test]
async fn dripping_bytes_does_not_extend_the_time_for_a_header_section() {
    let mut scene = Scene::default();
    scene.bounds.header_timeout = Duration::from_millis(150);
    let (stage, _) = stage(scene).await;
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.1\r\n").await;
    // The pace is the thing tested, so time has to pass.
    while stage.metric("tidegate_connections_too_slow_total") == 0 {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut client.socket, b"x").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_used_one_is_not() {
    let mut scene = Scene::default();
    scene.bounds.idle_timeout = Duration::from_millis(100);
    scene.bounds.header_timeout = Duration::from_millis(100);
    let (stage, _) = stage(scene).await;
    let mut client = Client::to(stage.address).await;
    for _ in 0..10 {
        assert_eq!(client.get("/").await.status, 200);
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    assert_eq!(client.rest().await, "");
    assert_eq!(stage.metric("tidegate_connections_too_slow_total"), 0);
}

#[tokio::test]
async fn beyond_the_bound_connections_wait_to_be_accepted() {
    let mut scene = Scene::default();
    scene.bounds.connections_max = 2;
    let (stage, _) = stage(scene).await;
    let mut first = Client::to(stage.address).await;
    let mut second = Client::to(stage.address).await;
    assert_eq!((first.get("/").await.status, second.get("/").await.status), (200, 200));
    let mut third = Client::to(stage.address).await;
    third.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let early = tokio::time::timeout(Duration::from_millis(50), third.answer()).await;
    assert!(early.is_err() && stage.metric("tidegate_connections_accepted_total") == 2);
    drop(first);
    assert_eq!(third.answer().await.status, 200);
}
