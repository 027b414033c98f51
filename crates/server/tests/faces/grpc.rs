//! gRPC calls: what they are told when the upstream fails them, and how long they may be silent.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;

use crate::support::{Answer, Client, Scene, Stage, nobody, raw_upstream, read_head};

async fn call(stage: &Stage, fields: &str) -> Answer {
    let mut client = Client::to(stage.address).await;
    let head = "POST /greet.Greeter/Hello HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\n";
    client.send(format!("{head}{fields}content-length: 0\r\n\r\n")).await;
    client.answer().await
}

fn status(answer: &Answer) -> (u16, Option<&str>, Option<&str>) {
    assert_eq!(answer.field("content-type"), Some("application/grpc"));
    (answer.status, answer.field("grpc-status"), answer.field("grpc-message"))
}

/// An upstream that says nothing.
async fn silent() -> std::net::SocketAddr {
    raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        read_head(&mut socket).await;
    })
    .await
}

#[tokio::test]
async fn a_call_that_fails_on_its_way_is_told_so_in_grpcs_own_shape() {
    let upstream = nobody().await;
    let stage = Stage::before(upstream);
    let unavailable = call(&stage, "").await;
    let message = format!("the upstream http://{upstream} refused the connection");
    assert_eq!(status(&unavailable), (200, Some("14"), Some(&*message)));
    assert_eq!(stage.metric("tidegate_upstream_failures_total{reason=\"connect\"}"), 1);

    let stage = Scene::of(&["/other=http://127.0.0.1:1"]).before(upstream);
    let unimplemented = call(&stage, "").await;
    assert_eq!(status(&unimplemented), (200, Some("12"), Some("no upstream is there for this host and path")));
}

#[tokio::test]
async fn a_call_beyond_its_deadline_is_told_so() {
    let stage = Stage::before(silent().await);
    let answer = call(&stage, "grpc-timeout: 100m\r\n").await;
    assert_eq!((answer.status, answer.field("grpc-status")), (200, Some("4")));
    assert_eq!(stage.metric("tidegate_upstream_failures_total{reason=\"timeout\"}"), 1);
}

#[tokio::test]
async fn a_call_may_be_silent_for_longer_than_other_requests() {
    let (upstream, _) = crate::support::upstream(|_| async {
        // The pace is the thing tested, so time has to pass: four times the time-outs of other requests.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Response::new(Full::<Bytes>::from("late"))
    })
    .await;
    let mut scene = Scene::default();
    scene.bounds.upstream.answer_timeout = Duration::from_millis(50);
    scene.bounds.upstream.stall_timeout = Duration::from_millis(50);
    scene.bounds.stall_timeout = Duration::from_millis(50);
    let stage = scene.before(upstream);
    assert_eq!(call(&stage, "").await.text(), "late");
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 504);
}

#[tokio::test]
async fn an_event_stream_may_be_silent_for_longer_than_other_answers_but_not_for_ever() {
    for (kind, expected) in [("text/event-stream", "late"), ("text/plain", "early")] {
        let upstream = raw_upstream(move |mut socket| async move {
            use tokio::io::AsyncWriteExt as _;
            read_head(&mut socket).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\nearly");
            socket.write_all(head.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            let _ = socket.write_all(b", late").await;
            let _ = read_head(&mut socket).await;
        })
        .await;
        let mut scene = Scene::default();
        scene.bounds.upstream.stall_timeout = Duration::from_millis(50);
        scene.bounds.upstream.stream_timeout = Duration::from_millis(400);
        let stage = scene.before(upstream);
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let all = client.rest().await;
        let last = all.trim_end().lines().last().unwrap();
        assert!(last.ends_with(expected), "{kind}: {all}");
    }
}
