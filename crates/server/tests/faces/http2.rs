//! Requests over HTTP/2, in clear text: what reaches the upstream, and how connections and streams end.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tidegate_server::Bounds;
use tokio::time::timeout;

use crate::frames::*;
use crate::support::{Client, Log, PATIENCE, Scene, Stage, eventually, raw_upstream, upstream};

/// The setting for the window of a stream.
const INITIAL_WINDOW_SIZE: u16 = 4;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// An upstream that says what it got, and the proxy before it.
async fn stage(bounds: Bounds) -> (Stage, Log) {
    let (upstream, log) = upstream(|request: Request<Incoming>| async move {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = format!("{} {} {:?} {:?}", parts.method, parts.uri, parts.headers, body);
        Response::new(Full::<Bytes>::from(text))
    })
    .await;
    (Scene { bounds, ..Scene::default() }.before(upstream), log)
}

fn is(kind: u8) -> impl Fn(&Frame) -> bool {
    move |frame| frame.kind == kind
}

/// The text of the answer on this stream.
async fn text(client: &mut Client, stream: u32) -> String {
    let head = client.frame_that("a head", is(HEADERS)).await;
    assert!(head.is_status(200) && head.stream == stream, "{head:?}");
    let mut text = Vec::new();
    loop {
        let frame = client.frame_that("data", is(DATA)).await;
        text.extend(frame.payload);
        if frame.flags & END_STREAM != 0 {
            return String::from_utf8(text).unwrap();
        }
    }
}

#[tokio::test]
async fn a_request_reaches_the_upstream_as_one_of_http_1() {
    let (stage, _) = stage(Bounds::default()).await;
    let mut client = Client::http2(stage.address, &[]).await;
    let more = [("cookie", "a=1"), ("cookie", "b=2"), ("x-forwarded-proto", "https")];
    client.send(frame(HEADERS, END_HEADERS, 1, &request("POST", "/a?b", &more))).await;
    client.send(frame(DATA, END_STREAM, 1, b"body")).await;
    let text = text(&mut client, 1).await;
    assert!(text.starts_with("POST /a?b ") && text.ends_with(" b\"body\""), "{text}");
    for field in [r#""host": "test""#, r#""cookie": "a=1; b=2""#, r#""x-forwarded-proto": "http""#] {
        assert!(text.contains(field), "{field} in {text}");
    }
    assert_eq!(stage.metric("tidegate_connections_by_protocol_total{version=\"2\",tls=\"no\"}"), 1);
}

#[tokio::test]
async fn the_preface_may_come_byte_by_byte() {
    let (stage, _) = stage(Bounds::default()).await;
    let mut client = Client::to(stage.address).await;
    for byte in PREFACE {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    client.send([frame(SETTINGS, 0, 0, &[]), get(1, "/")].concat()).await;
    assert!(text(&mut client, 1).await.starts_with("GET / "));
}

#[tokio::test]
async fn too_many_fields_are_a_431() {
    let (stage, log) = stage(Bounds::default()).await;
    let mut client = Client::http2(stage.address, &[]).await;
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &request("GET", "/", &[("x", "y"); 101]))).await;
    let head = client.frame_that("a head", is(HEADERS)).await;
    assert!(head.is_status(431), "{head:?}");
    let large = "0123456789".repeat(10);
    let block = request("GET", "/", &[("x-large", large.as_str()); 90]);
    let (stage, _) = self::stage(Bounds { header_bytes_max: 8 * 1024, ..Bounds::default() }).await;
    let mut client = Client::http2(stage.address, &[]).await;
    client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)).await;
    let head = client.frame_that("a head", is(HEADERS)).await;
    assert!(head.is_status(431) && log.requests() == 0, "{head:?}");
}

#[tokio::test]
async fn a_block_without_end_ends_the_connection() {
    let (stage, log) = stage(Bounds::default()).await;
    let mut client = Client::http2(stage.address, &[]).await;
    let fields = request("GET", "/", &[]);
    let endless = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &block(&[("x", "y")])), 100_000);
    let flood: Vec<_> = std::iter::once(frame(HEADERS, END_STREAM, 1, &fields)).chain(endless).flatten().collect();
    // The server closes in the middle of it.
    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.socket, &flood).await;
    client.frame_that("goaway", is(GOAWAY)).await;
    assert_eq!(log.requests(), 0);
}

#[tokio::test]
async fn a_stop_lets_streams_end() {
    let (upstream, log) = upstream(|request: Request<Incoming>| async move {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Response::new(Full::<Bytes>::from(body))
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::http2(stage.address, &[]).await;
    client.send(frame(HEADERS, END_HEADERS, 1, &request("POST", "/", &[]))).await;
    eventually("it is in flight", || log.requests() == 1).await;
    stage.drain.start();
    assert_eq!(client.frame_that("goaway", is(GOAWAY)).await.code(), 0);
    client.send(frame(DATA, END_STREAM, 1, b"late")).await;
    assert_eq!(text(&mut client, 1).await, "late");
    while client.frame().await.is_some() {}
    timeout(PATIENCE, stage.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_told_before_it_ends() {
    let short = Duration::from_millis(50);
    let (stage, _) = stage(Bounds { idle_timeout: short, header_timeout: short, ..Bounds::default() }).await;
    let mut fresh = Client::http2(stage.address, &[]).await;
    let mut used = Client::http2(stage.address, &[]).await;
    used.send(get(1, "/")).await;
    text(&mut used, 1).await;
    for client in [&mut fresh, &mut used] {
        assert_eq!(client.frame_that("goaway", is(GOAWAY)).await.code(), 0);
    }
    assert_eq!(stage.metric("tidegate_connections_too_slow_total"), 0);
}

#[tokio::test]
async fn a_preface_that_does_not_end_is_cut() {
    let (stage, _) = stage(Bounds { header_timeout: Duration::from_millis(50), ..Bounds::default() }).await;
    let mut client = Client::to(stage.address).await;
    client.send(&PREFACE[..20]).await;
    assert_eq!(client.rest().await, "");
    eventually("it is counted", || stage.metric("tidegate_connections_too_slow_total") == 1).await;
}

#[tokio::test]
async fn a_stream_that_takes_nothing_is_reset_alone() {
    let (stage, _) = stage(Bounds { stall_timeout: Duration::from_millis(100), ..Bounds::default() }).await;
    let mut client = Client::http2(stage.address, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    client.send(get(1, "/")).await;
    let reset = client.frame_that("a reset", is(RST_STREAM)).await;
    assert_eq!((reset.stream, reset.code()), (1, CANCEL));
    client.send(get(3, "/")).await;
    client.send(frame(WINDOW_UPDATE, 0, 3, &10_000u32.to_be_bytes())).await;
    assert!(text(&mut client, 3).await.starts_with("GET / "));
}

/// A request that its client gives up at once.
fn given_up(i: u32) -> Vec<u8> {
    [get(2 * i + 1, "/"), frame(RST_STREAM, 0, 2 * i + 1, &CANCEL.to_be_bytes())].concat()
}

#[tokio::test]
async fn who_gives_up_on_all_that_it_has_in_flight_keeps_its_connection() {
    let (stage, _) = stage(Bounds::default()).await;
    let mut client = Client::http2(stage.address, &[]).await;
    // All that may be in flight, and those that are sent in their place: in one piece, so that they are read as one.
    let all: Vec<_> = (0..500).flat_map(given_up).chain(get(1001, "/last")).collect();
    client.send(all).await;
    let head = client.frame_that("a head", |frame| frame.kind == GOAWAY || frame.stream == 1001).await;
    assert!(head.is_status(200), "{head:?}");
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let (stage, _) = stage(Bounds::default()).await;
    let mut client = Client::http2(stage.address, &[]).await;
    // The server may close in the middle of it.
    let flood: Vec<_> = (0..10_000).flat_map(given_up).collect();
    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.socket, &flood).await;
    assert_eq!(client.frame_that("goaway", is(GOAWAY)).await.code(), ENHANCE_YOUR_CALM);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
}

/// As a client does that has not read yet how many it may send.
#[tokio::test]
async fn what_is_sent_beyond_the_bound_at_first_is_refused_alone() {
    let silent = raw_upstream(|socket| async move {
        let _open = socket;
        std::future::pending().await
    });
    let silent = silent.await;
    let stage = Stage::before(silent);
    let mut client = Client::http2(stage.address, &[]).await;
    let all: Vec<_> = (0..500).flat_map(|i| get(2 * i + 1, "/")).collect();
    client.send(all).await;
    for i in 128..500 {
        let frame = client.frame_that("a refusal", |frame| matches!(frame.kind, GOAWAY | RST_STREAM)).await;
        assert_eq!((frame.kind, frame.stream, frame.code()), (RST_STREAM, 2 * i + 1, REFUSED_STREAM));
    }
}
