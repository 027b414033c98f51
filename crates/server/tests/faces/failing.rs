//! Upstreams and clients that let each other down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Scene, Stage, eventually, nobody, raw_upstream, read_head, upstream};

fn failures(stage: &Stage, reason: &str) -> u64 {
    stage.metric(&format!("tidegate_upstream_failures_total{{reason=\"{reason}\"}}"))
}

#[tokio::test]
async fn an_upstream_that_refuses_is_a_502_that_says_so() {
    let upstream = nobody().await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    for _ in 0..2 {
        let answer = client.get("/").await;
        assert_eq!(answer.status, 502);
        assert_eq!(answer.problem(), format!("the upstream http://{upstream} refused the connection"));
    }
    assert_eq!(failures(&stage, "connect"), 2);
}

#[tokio::test]
async fn an_upstream_without_an_address_is_a_502_that_says_so() {
    let stage = Scene::of(&["http://name.invalid:1"]).before(nobody().await);
    let answer = Client::to(stage.address).await.get("/").await;
    assert_eq!(answer.status, 502);
    let detail = answer.problem();
    assert!(detail.starts_with("the upstream http://name.invalid:1 cannot be reached: "), "{detail}");
}

#[tokio::test]
async fn an_upstream_that_closes_before_or_within_its_head_is_a_502() {
    for sent in ["", "HTTP/1.1 200 OK\r\nContent-Le"] {
        let upstream = raw_upstream(move |mut socket| async move {
            read_head(&mut socket).await;
            socket.write_all(sent.as_bytes()).await.unwrap();
        })
        .await;
        let stage = Stage::before(upstream);
        let answer = Client::to(stage.address).await.get("/").await;
        assert_eq!(answer.status, 502, "{sent:?}");
        assert_eq!(
            answer.problem(),
            format!("the upstream http://{upstream} closed the connection before it answered")
        );
        assert_eq!(failures(&stage, "closed"), 1);
    }
}

#[tokio::test]
async fn an_upstream_that_resets_is_a_502() {
    let upstream = raw_upstream(|mut socket| async move {
        // Closing with bytes unread makes the kernel reset the connection.
        socket.read_u8().await.unwrap();
    })
    .await;
    let stage = Stage::before(upstream);
    let answer = Client::to(stage.address).await.get("/").await;
    assert_eq!((answer.status, failures(&stage, "closed")), (502, 1));
}

#[tokio::test]
async fn an_upstream_that_sends_no_http_is_a_502() {
    for sent in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        let upstream = raw_upstream(move |mut socket| async move {
            read_head(&mut socket).await;
            socket.write_all(sent.as_bytes()).await.unwrap();
        })
        .await;
        let stage = Stage::before(upstream);
        let answer = Client::to(stage.address).await.get("/").await;
        assert_eq!((answer.status, failures(&stage, "malformed")), (502, 1), "{sent:?}");
        let detail = answer.problem();
        assert_eq!(detail, format!("the upstream http://{upstream} sent something that is not a valid HTTP response"));
    }
}

#[tokio::test]
async fn a_response_head_beyond_the_bound_is_a_502() {
    let upstream = raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        let head = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "a".repeat(100_000));
        let _ = socket.write_all(head.as_bytes()).await;
    })
    .await;
    let stage = Stage::before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 502);
}

fn impatient() -> Scene {
    let mut scene = Scene::default();
    scene.bounds.upstream.answer_timeout = Duration::from_millis(100);
    scene.bounds.upstream.stall_timeout = Duration::from_millis(100);
    scene.bounds.stall_timeout = Duration::from_millis(100);
    scene
}

#[tokio::test]
async fn a_silent_upstream_is_a_504_and_is_let_go() {
    let gone = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&gone);
    let upstream = raw_upstream(move |mut socket| {
        let counter = Arc::clone(&counter);
        async move {
            read_head(&mut socket).await;
            let _ = socket.read_u8().await;
            counter.fetch_add(1, SeqCst);
        }
    })
    .await;
    let stage = impatient().before(upstream);
    let mut client = Client::to(stage.address).await;
    let answer = client.get("/").await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.problem(), format!("the upstream http://{upstream} did not answer in time"));
    assert_eq!(failures(&stage, "timeout"), 1);
    eventually("the connection is closed", || gone.load(SeqCst) == 1).await;
}

#[tokio::test]
async fn an_upload_that_makes_progress_may_take_longer_than_the_answer_timeout() {
    let (upstream, _) = upstream(|request: Request<Incoming>| async move {
        let length = request.into_body().collect().await.unwrap().to_bytes().len();
        Response::new(Full::<Bytes>::from(length.to_string()))
    })
    .await;
    let mut scene = impatient();
    scene.bounds.stall_timeout = Duration::from_secs(5);
    let stage = scene.before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n").await;
    // The pace is the thing tested, so time has to pass: 500 ms, five times the time-out.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.send("x").await;
    }
    assert_eq!(client.answer().await.text(), "10");
}

#[tokio::test]
async fn a_client_that_stalls_in_its_body_is_a_408() {
    let (upstream, log) = upstream(|request: Request<Incoming>| async move {
        let _ = request.into_body().collect().await;
        Response::new(Full::<Bytes>::default())
    })
    .await;
    let stage = impatient().before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nx").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.problem().as_str()), (408, "the request's body did not come in time"));
    eventually("the upstream is let go", || log.closed.load(SeqCst) == 1).await;
    assert_eq!(failures(&stage, "timeout"), 0);
}

#[tokio::test]
async fn a_response_that_stalls_or_breaks_off_is_cut_and_never_looks_whole() {
    for stalls in [true, false] {
        let upstream = raw_upstream(move |mut socket| async move {
            read_head(&mut socket).await;
            socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n").await.unwrap();
            if stalls {
                let _ = socket.read_u8().await;
            }
        })
        .await;
        let stage = impatient().before(upstream);
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let answer = client.rest().await;
        assert!(answer.ends_with("5\r\nhello\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    let (started, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (starts, closes) = (Arc::clone(&started), Arc::clone(&closed));
    let upstream = raw_upstream(move |mut socket| {
        let (starts, closes) = (Arc::clone(&starts), Arc::clone(&closes));
        async move {
            read_head(&mut socket).await;
            starts.fetch_add(1, SeqCst);
            // Nothing more comes: the end of the connection does.
            assert!(socket.read_u8().await.is_err());
            closes.fetch_add(1, SeqCst);
        }
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("it has reached the upstream", || started.load(SeqCst) == 1).await;
    drop(client);
    eventually("the upstream's connection is closed", || closed.load(SeqCst) == 1).await;
    eventually("the client's connection is closed", || stage.metric("tidegate_connections") == 0).await;
}

#[tokio::test]
async fn an_upstream_that_answers_before_the_body_is_sent_is_heard() {
    let upstream = raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        socket.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig").await.unwrap();
        // It reads on, or its close would be a reset.
        let _ = socket.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\nstart").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text()), (413, "big"));
    assert_eq!(client.rest().await, "");
}

/// An upstream that answers one request per connection and closes at the next one, having read its head.
async fn closes_at_the_second() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let heads = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&heads);
    let address = raw_upstream(move |mut socket| {
        let counter = Arc::clone(&counter);
        async move {
            read_head(&mut socket).await;
            counter.fetch_add(1, SeqCst);
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            if !read_head(&mut socket).await.is_empty() {
                counter.fetch_add(1, SeqCst);
            }
        }
    })
    .await;
    (address, heads)
}

#[tokio::test]
async fn a_get_that_meets_a_closing_connection_is_sent_again() {
    let (upstream, heads) = closes_at_the_second().await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    assert_eq!(client.get("/").await.status, 200);
    assert_eq!(client.get("/").await.status, 200);
    assert_eq!(heads.load(SeqCst), 3);
}

#[tokio::test]
async fn a_post_that_meets_a_closing_connection_is_not_sent_again() {
    let (upstream, heads) = closes_at_the_second().await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    assert_eq!(client.get("/").await.status, 200);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 502);
    assert_eq!(heads.load(SeqCst), 2);
}

#[tokio::test]
async fn a_connection_that_the_upstream_closed_while_idle_is_not_used() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let upstream = raw_upstream(move |mut socket| {
        counter.fetch_add(1, SeqCst);
        async move {
            read_head(&mut socket).await;
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        }
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    for _ in 0..3 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(client.answer().await.status, 200);
        // The end of the upstream's connection has to arrive first; on one machine it takes microseconds.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(connections.load(SeqCst), 3);
}
