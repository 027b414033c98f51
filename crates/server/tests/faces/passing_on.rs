//! What arrives at the upstream, and what comes back.

use crate::support::{Client, Scene, Stage, eventually, raw_upstream, read_head, upstream};
use bytes::Bytes;
use futures_util::stream::iter;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;

/// Answers with the request that it got: its first line and its fields, one a line, sorted, then its body.
async fn echo(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut fields: Vec<String> =
        parts.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    fields.sort();
    let text = format!("{} {}\n{}\n\n{}", parts.method, parts.uri, fields.join("\n"), String::from_utf8_lossy(&body));
    Response::new(Full::from(text))
}

#[tokio::test]
async fn one_connection_to_the_upstream_serves_request_after_request() {
    let (upstream, log) = upstream(echo).await;
    let stage = Stage::before(upstream);
    for _ in 0..3 {
        let mut client = Client::to(stage.address).await;
        for _ in 0..4 {
            assert_eq!(client.get("/").await.status, 200);
        }
    }
    assert_eq!((log.requests(), log.connections()), (12, 1));
    assert_eq!(stage.metric("tidegate_upstream_responses_total{class=\"2xx\"}"), 12);
    assert_eq!(stage.metric("tidegate_upstream_latency_seconds_count"), 12);
    assert_eq!(stage.metric("tidegate_connections_accepted_total"), 3);
}

#[tokio::test]
async fn requests_at_once_get_connections_of_their_own_which_are_kept_up_to_a_bound() {
    let (upstream, log) = upstream(|_| async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Response::new(Full::<Bytes>::from("ok"))
    })
    .await;
    let mut scene = Scene::default();
    scene.bounds.upstream.idle_max = 2;
    let stage = scene.before(upstream);
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!(log.connections(), 5);
    let closed = log.closed.clone();
    eventually("three are closed", || closed.load(std::sync::atomic::Ordering::SeqCst) == 3).await;
}

#[tokio::test]
async fn idle_connections_to_the_upstream_are_closed_after_their_time() {
    let (upstream, log) = upstream(echo).await;
    let mut scene = Scene::default();
    scene.bounds.upstream.idle_timeout = std::time::Duration::from_millis(60);
    let stage = scene.before(upstream);
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    let closed = log.closed.clone();
    eventually("it is closed", || closed.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    assert_eq!(Client::to(stage.address).await.get("/").await.status, 200);
    assert_eq!(log.connections(), 2);
}

#[tokio::test]
async fn fields_of_the_connection_end_at_the_proxy() {
    let (upstream, _) = upstream(echo).await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client
        .send(
            "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive, X-Mine , Content-Length,host\r\n\
             Connection: x-other\r\nX-Mine: 1\r\nX-Other: 2\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
             TE: gzip;q=0.5, trailers\r\nUpgrade: websocket\r\nX-Kept: yes\r\n\r\n",
        )
        .await;
    let seen = client.answer().await;
    assert_eq!(
        seen.text(),
        "GET /a?b=c\nhost: example.org\nte: trailers\nx-forwarded-for: 127.0.0.1\nx-forwarded-host: example.org\n\
         x-forwarded-proto: http\nx-kept: yes\n\n"
    );
}

#[tokio::test]
async fn fields_of_the_upstreams_connection_end_at_the_proxy_too() {
    let upstream = raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        let answer = "HTTP/1.1 203 Quite So\r\nConnection: keep-alive, x-mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\n\
                      Proxy-Connection: close\r\nUpgrade: h2c\r\nX-Kept: yes\r\nContent-Length: 2\r\n\r\nok";
        socket.write_all(answer.as_bytes()).await.unwrap();
        read_head(&mut socket).await;
    })
    .await;
    let stage = Stage::before(upstream);
    let answer = Client::to(stage.address).await.get("/").await;
    let head: Vec<&str> = answer.head.lines().filter(|line| !line.starts_with("date: ")).collect();
    assert_eq!(head, ["HTTP/1.1 203 Quite So", "x-kept: yes", "content-length: 2", ""]);
    assert_eq!(answer.text(), "ok");
}

/// The fields about the client that the upstream sees when a client sends `fields`.
async fn introduced(trust: &'static str, fields: &str) -> Vec<String> {
    let (upstream, _) = upstream(echo).await;
    let stage = Scene { trust, ..Scene::default() }.before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send(format!("GET / HTTP/1.1\r\nhost: shop\r\n{fields}\r\n")).await;
    let answer = client.answer().await;
    let about = |line: &&str| line.contains("forwarded") || line.contains("real-ip");
    answer.text().lines().filter(about).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_a_stranger_says_of_the_client_is_replaced() {
    let claims = "x-forwarded-for: 203.0.113.7\r\nx-forwarded-for: 203.0.113.8\r\nx-forwarded-proto: https\r\n\
                  x-forwarded-host: bank\r\nx-forwarded-port: 1\r\nforwarded: for=203.0.113.7\r\nx-real-ip: 203.0.113.7\r\n";
    let expected = ["x-forwarded-for: 127.0.0.1", "x-forwarded-host: shop", "x-forwarded-proto: http"];
    assert_eq!(introduced("", claims).await, expected);
    assert_eq!(introduced("", "").await, expected);
    // A trusted peer that says nothing is introduced itself.
    assert_eq!(introduced("*", "").await, expected);
}

#[tokio::test]
async fn what_a_trusted_peer_says_of_the_client_is_kept_and_added_to() {
    let claims = "x-forwarded-for: 203.0.113.7\r\nx-forwarded-for: 10.0.0.1, 10.0.0.2\r\nx-forwarded-proto: https\r\n\
                  forwarded: for=203.0.113.7\r\n";
    assert_eq!(
        introduced("loopback", claims).await,
        [
            "forwarded: for=203.0.113.7",
            "x-forwarded-for: 203.0.113.7, 10.0.0.1, 10.0.0.2, 127.0.0.1",
            "x-forwarded-host: shop",
            "x-forwarded-proto: https",
        ]
    );
}

/// The first line that the upstream gets, and its Host, for a client's head.
async fn target(path: &'static str, head: &str) -> String {
    let (upstream, _) = upstream(echo).await;
    let stage = Scene { path, ..Scene::default() }.before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send(format!("{head}\r\n\r\n")).await;
    let answer = client.answer().await;
    if answer.status != 200 {
        return format!("{} {}", answer.status, answer.problem());
    }
    let host = answer.text().lines().find(|line| line.starts_with("host: ")).unwrap().to_owned();
    format!("{} {}", answer.text().lines().next().unwrap(), host.replace(&upstream.to_string(), "UPSTREAM"))
}

#[tokio::test]
async fn targets_in_every_form() {
    for (path, head, expected) in [
        ("", "GET /a/../b?c HTTP/1.1\r\nhost: x", "GET /a/../b?c host: x"),
        ("", "GET http://y:81/a?b HTTP/1.1\r\nhost: x", "GET /a?b host: y:81"),
        ("", "GET http://y HTTP/1.1\r\nhost: x", "GET / host: y"),
        ("", "GET http://u@y/ HTTP/1.1\r\nhost: x", "400 the request's target names no valid host"),
        ("", "OPTIONS * HTTP/1.1\r\nhost: x", "OPTIONS * host: x"),
        ("/base/", "GET /a?b HTTP/1.1\r\nhost: x", "GET /base/a?b host: x"),
        ("/base", "GET http://y/a HTTP/1.1\r\nhost: x", "GET /base/a host: y"),
        ("/base", "OPTIONS * HTTP/1.1\r\nhost: x", "OPTIONS * host: x"),
        ("", "GET / HTTP/1.1", "400 the request has no Host field"),
        ("", "GET / HTTP/1.1\r\nhost: x\r\nhost: x", "400 the request has more than one Host field"),
        ("", "GET / HTTP/1.0", "GET / host: UPSTREAM"),
        ("", "CONNECT y:443 HTTP/1.1\r\nhost: y:443", "501 CONNECT is not supported: this is not a forward proxy"),
    ] {
        assert_eq!(target(path, head).await, expected, "{path} {head}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x", "a".repeat(9000));
    assert_eq!(target("", &long).await, "414 the request's target is too long");
}

#[tokio::test]
async fn a_chunked_body_of_any_method_arrives_chunked() {
    let (upstream, _) = upstream(echo).await;
    let stage = Stage::before(upstream);
    for method in ["POST", "GET", "DELETE"] {
        let mut client = Client::to(stage.address).await;
        client
            .send(format!(
                "{method} / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
            ))
            .await;
        let answer = client.answer().await;
        assert!(answer.text().contains("\ntransfer-encoding: chunked\n"), "{answer:?}");
        assert!(answer.text().ends_with("\n\nhello world"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_body_with_a_length_keeps_it() {
    let (upstream, _) = upstream(echo).await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
    let answer = client.answer().await;
    assert!(answer.text().contains("\ncontent-length: 5\n") && answer.text().ends_with("\n\nhello"), "{answer:?}");
}

#[tokio::test]
async fn a_chunked_response_arrives_chunked_with_its_trailers() {
    let (upstream, log) = upstream(|_| async {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", "15".parse().unwrap());
        let frames = [Ok::<_, std::io::Error>(Frame::data(Bytes::from("hello"))), Ok(Frame::trailers(trailers))];
        let mut answer = Response::new(StreamBody::new(iter(frames)));
        answer.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        answer
    })
    .await;
    let stage = Stage::before(upstream);
    for _ in 0..2 {
        let mut client = Client::to(stage.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\n\r\n").await;
        let head = client.head().await;
        assert!(head.contains("transfer-encoding: chunked\r\n") && head.contains("trailer: x-sum\r\n"), "{head}");
        assert_eq!(client.until(b"\r\n\r\n").await, b"5\r\nhello\r\n0\r\nx-sum: 15\r\n\r\n");
    }
    assert_eq!(log.connections(), 1);
}

#[tokio::test]
async fn request_trailers_arrive() {
    let (upstream, _) = upstream(|request: Request<Incoming>| async move {
        let collected = request.into_body().collect().await.unwrap();
        let sum = collected.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
        Response::new(Full::<Bytes>::from(format!("{sum:?}")))
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 7\r\n\r\n")
        .await;
    assert_eq!(client.answer().await.text(), "Some(\"7\")");
}

#[tokio::test]
async fn answers_without_a_body_are_framed_as_such() {
    let (upstream, log) = upstream(|request: Request<Incoming>| async move {
        let mut answer = Response::new(Empty::<Bytes>::new());
        *answer.status_mut() = StatusCode::from_u16(request.uri().path()[1..].parse().unwrap()).unwrap();
        if answer.status() != 204 {
            answer.headers_mut().insert("content-length", "99".parse().unwrap());
        }
        answer
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    for (request, length) in
        [("HEAD /200", Some("99")), ("GET /304", None), ("GET /204", None), ("HEAD /404", Some("99"))]
    {
        client.send(format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {}", &request[request.len() - 3..])), "{head}");
        let found = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(found, length, "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
    assert_eq!((log.requests(), log.connections()), (4, 1));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (upstream, _) = upstream(|request: Request<Incoming>| async move {
        Response::new(Full::<Bytes>::from(request.uri().path().to_owned()))
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    let requests: String = (0..20).map(|i| format!("GET /{i} HTTP/1.1\r\nhost: a\r\n\r\n")).collect();
    client.send(requests).await;
    for i in 0..20 {
        assert_eq!(client.answer().await.text(), format!("/{i}"));
    }
}

#[tokio::test]
async fn a_client_that_waits_for_100_gets_it() {
    let (upstream, _) = upstream(echo).await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    assert!(client.answer().await.text().ends_with("\n\nhello"));
}

#[tokio::test]
async fn an_http_1_0_client_is_answered_and_closed() {
    let (upstream, _) = upstream(|_| async {
        let frames = [Ok::<_, std::io::Error>(Frame::data(Bytes::from("hello")))];
        Response::new(StreamBody::new(iter(frames)))
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[tokio::test]
async fn a_response_that_lasts_until_the_upstream_closes_is_passed_on_whole() {
    let upstream = raw_upstream(|mut socket| async move {
        read_head(&mut socket).await;
        socket.write_all(b"HTTP/1.0 200 OK\r\nx-a: b\r\n\r\nuntil the end").await.unwrap();
    })
    .await;
    let stage = Stage::before(upstream);
    let mut client = Client::to(stage.address).await;
    for _ in 0..2 {
        assert_eq!(client.get("/").await.text(), "until the end");
    }
}
