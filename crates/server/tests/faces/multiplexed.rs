//! Upstreams that speak HTTP/2: many requests on one connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::iter;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use tokio::sync::Barrier;

use crate::support::{Client, Scene, Stage, eventually, http2_upstream, raw_upstream};

fn scene() -> Scene {
    Scene::of(&["h2c://UPSTREAM"])
}

/// An upstream that does with each request whatever it likes. It is told how many came before, on all connections.
async fn bare_upstream<H, F>(builder: h2::server::Builder, handler: H) -> (SocketAddr, Arc<AtomicUsize>)
where
    H: Fn(usize, Request<RecvStream>, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let opened = Arc::clone(&connections);
    let address = raw_upstream(move |socket| {
        let (builder, handler, requests) = (builder.clone(), handler.clone(), Arc::clone(&requests));
        opened.fetch_add(1, SeqCst);
        async move {
            let mut connection = builder.handshake::<_, Bytes>(socket).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(handler(requests.fetch_add(1, SeqCst), request, respond));
            }
        }
    })
    .await;
    (address, connections)
}

fn respond_ok(mut respond: SendResponse<Bytes>) {
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    body.send_data(Bytes::from("ok"), true).unwrap();
}

#[tokio::test]
async fn requests_at_once_share_a_connection() {
    let all = Arc::new(Barrier::new(20));
    let (upstream, log) = http2_upstream(move |_| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            Response::new(Full::<Bytes>::from("ok"))
        }
    })
    .await;
    let stage = scene().before(upstream);
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
    }
    for client in &mut clients {
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text()), (200, "ok"));
    }
    assert_eq!((log.requests(), log.connections()), (20, 1));
}

#[tokio::test]
async fn beyond_what_the_upstream_takes_at_once_there_are_further_connections() {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(2);
    let all = Arc::new(Barrier::new(6));
    let (upstream, connections) = bare_upstream(builder, move |number, _, respond| {
        let all = Arc::clone(&all);
        async move {
            // The first one lets the proxy learn the bound.
            if number > 0 {
                all.wait().await;
            }
            respond_ok(respond);
        }
    })
    .await;
    let stage = scene().before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!(connections.load(SeqCst), 3);
}

#[tokio::test]
async fn a_request_takes_the_form_of_http_2() {
    let (upstream, _) = http2_upstream(|request: Request<Incoming>| async move {
        let mut fields: Vec<String> =
            request.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        fields.sort();
        let head = format!("{} {}\n{}\n\n", request.method(), request.uri(), fields.join("\n"));
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Response::new(Full::<Bytes>::from([head.as_bytes(), &body].concat()))
    })
    .await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    client
        .send(
            "POST /a/../b?c HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive, x-mine\r\nX-Mine: 1\r\n\
             TE: gzip, trailers\r\nKeep-Alive: 5\r\nTransfer-Encoding: chunked\r\nCookie: a=b\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        )
        .await;
    assert_eq!(
        client.answer().await.text(),
        "POST http://example.org/a/../b?c\ncookie: a=b\nte: trailers\nx-forwarded-for: 127.0.0.1\n\
         x-forwarded-host: example.org\nx-forwarded-proto: http\n\nhi"
    );
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
    let text = client.answer().await;
    assert!(text.text().contains("\ncontent-length: 5\n") && text.text().ends_with("\n\nhello"), "{text:?}");
    client.send("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(client.answer().await.text().starts_with("OPTIONS "));
}

#[tokio::test]
async fn a_host_that_http_2_cannot_carry_is_a_400() {
    let (upstream, log) = http2_upstream(|_| async { Response::new(Full::<Bytes>::default()) }).await;
    let stage = scene().before(upstream);
    for host in ["a b", "a/b", "a@b", ""] {
        let mut client = Client::to(stage.address).await;
        client.send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
        assert_eq!(client.answer().await.status, 400, "{host:?}");
    }
    assert_eq!(log.requests(), 0);
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let (upstream, _) = http2_upstream(|request: Request<Incoming>| async move {
        let body = request.into_body().collect().await.unwrap();
        let sum = body.trailers().and_then(|trailers| trailers.get("x-sum")).cloned().unwrap();
        let trailers = HeaderMap::from_iter([(http::HeaderName::from_static("x-sum"), sum)]);
        let frames = [Ok::<_, std::io::Error>(Frame::data(body.to_bytes())), Ok(Frame::trailers(trailers))];
        let mut answer = Response::new(StreamBody::new(iter(frames)));
        answer.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        answer
    })
    .await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    client
        .send(
            "POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n",
        )
        .await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(client.until(b"\r\n\r\n").await, b"5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n");
}

/// Answers with what comes, as it comes.
async fn echo(_: usize, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let mut answer = respond.send_response(Response::new(()), false).unwrap();
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        answer.send_data(data, false).unwrap();
    }
    answer.send_data(Bytes::new(), true).unwrap();
}

#[tokio::test]
async fn what_streams_both_ways_is_not_held_back() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), echo).await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    client.head().await;
    for word in ["one", "two", "six"] {
        client.send(format!("3\r\n{word}\r\n")).await;
        assert_eq!(client.exactly(8).await, format!("3\r\n{word}\r\n").as_bytes());
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(client.exactly(5).await, b"0\r\n\r\n");
}

/// An upstream that begins an answer if it should, and counts the resets that it sees.
async fn waits_for_reset(answers: bool) -> (SocketAddr, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (came, reset) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (comes, resets) = (Arc::clone(&came), Arc::clone(&reset));
    let (address, _) = bare_upstream(h2::server::Builder::new(), move |_, _request, mut respond| {
        let (comes, resets) = (Arc::clone(&comes), Arc::clone(&resets));
        async move {
            comes.fetch_add(1, SeqCst);
            let reason = if answers {
                let mut body = respond.send_response(Response::new(()), false).unwrap();
                std::future::poll_fn(|cx| body.poll_reset(cx)).await
            } else {
                std::future::poll_fn(|cx| respond.poll_reset(cx)).await
            };
            assert_eq!(reason.unwrap(), Reason::CANCEL);
            resets.fetch_add(1, SeqCst);
        }
    })
    .await;
    (address, came, reset)
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along_and_no_other() {
    for (answers, body) in [(false, "content-length: 0"), (false, "content-length: 9"), (true, "content-length: 0")] {
        let (upstream, came, reset) = waits_for_reset(answers).await;
        let stage = scene().before(upstream);
        let mut leaves = Client::to(stage.address).await;
        let mut stays = Client::to(stage.address).await;
        for client in [&mut leaves, &mut stays] {
            client.send(format!("POST / HTTP/1.1\r\nhost: a\r\n{body}\r\n\r\n")).await;
        }
        eventually("both are there", || came.load(SeqCst) == 2).await;
        drop(leaves);
        eventually("the upstream knows of it", || reset.load(SeqCst) == 1).await;
        drop(stays);
        eventually("and of the other", || reset.load(SeqCst) == 2).await;
    }
}

#[tokio::test]
async fn a_silent_upstream_is_a_504_and_its_stream_is_reset() {
    let (upstream, _, reset) = waits_for_reset(false).await;
    let mut scene = scene();
    scene.bounds.upstream.answer_timeout = Duration::from_millis(100);
    let stage = scene.before(upstream);
    let answer = Client::to(stage.address).await.get("/").await;
    assert_eq!(
        (answer.status, answer.problem()),
        (504, format!("the upstream h2c://{upstream} did not answer in time"))
    );
    eventually("the stream is reset", || reset.load(SeqCst) == 1).await;
}

/// More than all buffers on the way hold together.
const LONG: u64 = 32 * 1024 * 1024;
const ON_THE_WAY_MAX: u64 = LONG / 2;

async fn standstill(counter: &AtomicU64) -> u64 {
    loop {
        let before = counter.load(SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if before > 0 && counter.load(SeqCst) == before {
            return before;
        }
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_stops_the_upstream_and_nobody_else() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let (upstream, connections) = bare_upstream(h2::server::Builder::new(), move |_, request, mut respond| {
        let counter = Arc::clone(&counter);
        async move {
            if request.uri().path() != "/long" {
                return respond_ok(respond);
            }
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            while counter.load(SeqCst) < LONG {
                body.reserve_capacity(16 * 1024);
                let Some(Ok(room)) = std::future::poll_fn(|cx| body.poll_capacity(cx)).await else { return };
                body.send_data(Bytes::from(vec![7; room]), false).unwrap();
                counter.fetch_add(room as u64, SeqCst);
            }
            body.send_data(Bytes::new(), true).unwrap();
        }
    })
    .await;
    let stage = scene().before(upstream);
    let mut slow = Client::to(stage.address).await;
    slow.send("GET /long HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let taken = standstill(&sent).await;
    assert!(taken < ON_THE_WAY_MAX, "{taken} bytes were taken from the upstream");
    // The same connection serves others meanwhile.
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    assert_eq!(connections.load(SeqCst), 1);
    assert!(slow.answer().await.body.len() as u64 >= LONG);
}

#[tokio::test]
async fn an_upstream_that_takes_nothing_stops_the_client() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), |_, request, _respond| async move {
        let _held = request;
        std::future::pending::<()>().await;
    })
    .await;
    let stage = scene().before(upstream);
    let (_read, mut write) = Client::to(stage.address).await.socket.into_split();
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        write
            .write_all(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LONG}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        for _ in 0..LONG / 4096 {
            write.write_all(&[7; 4096]).await.unwrap();
            counter.fetch_add(4096, SeqCst);
        }
    });
    let taken = standstill(&sent).await;
    assert!(taken < ON_THE_WAY_MAX, "{taken} bytes were taken from the client");
}

#[tokio::test]
async fn a_connection_that_goes_away_is_replaced_and_ends_what_it_has() {
    let connections = Arc::new(AtomicUsize::new(0));
    let opened = Arc::clone(&connections);
    let upstream = raw_upstream(move |socket| {
        opened.fetch_add(1, SeqCst);
        async move {
            let mut connection = h2::server::handshake(socket).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                if request.uri().path() == "/last" {
                    connection.graceful_shutdown();
                }
                respond_ok(respond);
            }
        }
    })
    .await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    for (path, expected) in [("/", 1), ("/last", 1), ("/", 2), ("/", 2), ("/last", 2), ("/last", 3), ("/", 4)] {
        client.send(format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi")).await;
        assert_eq!(client.answer().await.status, 200, "{path}");
        assert_eq!(connections.load(SeqCst), expected, "{path}");
    }
}

#[tokio::test]
async fn what_the_upstream_did_nothing_with_is_sent_again_unless_it_has_a_body() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), |number, _, mut respond| async move {
        match number {
            0 | 1 | 3 => respond.send_reset(Reason::REFUSED_STREAM),
            _ => respond_ok(respond),
        }
    })
    .await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("DELETE / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 200);
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi").await;
    let answer = client.answer().await;
    let detail = format!("the upstream h2c://{upstream} refused the request without looking at it");
    assert_eq!((answer.status, answer.problem()), (502, detail));
    assert_eq!(stage.metric("tidegate_upstream_failures_total{reason=\"closed\"}"), 1);
}

#[tokio::test]
async fn a_stream_that_is_reset_is_a_502_and_is_not_sent_again() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), |number, _, mut respond| async move {
        assert_eq!(number, 0);
        respond.send_reset(Reason::INTERNAL_ERROR);
    })
    .await;
    let stage = scene().before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 502);
}

#[tokio::test]
async fn a_body_of_another_length_than_was_said_never_looks_whole() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), |_, _, mut respond| async move {
        let head = Response::builder().header("content-length", 5).body(()).unwrap();
        let mut body = respond.send_response(head, false).unwrap();
        body.send_data(Bytes::from("four"), true).unwrap();
    })
    .await;
    let stage = scene().before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let rest = client.rest().await;
    let body = rest.split_once("\r\n\r\n").map_or("", |(head, body)| {
        assert!(head.contains("content-length: 5"), "{rest}");
        body
    });
    assert!(["", "four"].contains(&body), "{rest}");
}

#[tokio::test]
async fn a_header_section_beyond_the_bound_is_a_502() {
    let (upstream, _) = bare_upstream(h2::server::Builder::new(), |_, _, mut respond| async move {
        let head = Response::builder().header("x-long", "a".repeat(40_000)).body(()).unwrap();
        let _ = respond.send_response(head, true);
    })
    .await;
    let stage = scene().before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 502);
}

#[tokio::test]
async fn an_upstream_that_speaks_no_http_2_is_a_502() {
    let (upstream, _) = crate::support::upstream(|_| async { Response::new(Full::<Bytes>::default()) }).await;
    let stage = scene().before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 502);
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_time() {
    let (upstream, log) = http2_upstream(|_| async { Response::new(Full::<Bytes>::default()) }).await;
    let mut scene = scene();
    scene.bounds.upstream.idle_timeout = Duration::from_millis(60);
    let stage = scene.before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    eventually("it is closed", || log.closed.load(SeqCst) == 1).await;
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    assert_eq!(log.connections(), 2);
}

#[tokio::test]
async fn an_upstream_that_refuses_is_a_502_for_all_who_wait() {
    let stage = scene().before(crate::support::nobody().await);
    for _ in 0..3 {
        assert_eq!(Client::to(stage.address).await.get("/").await.status, 502);
    }
    assert_eq!(Stage::metric(&stage, "tidegate_upstream_failures_total{reason=\"connect\"}"), 3);
}
