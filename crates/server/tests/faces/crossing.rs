//! Clients that speak HTTP/2, in front of upstreams that speak either version.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use futures_util::stream::iter;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderName, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::support::{Scene, Stage, eventually, http2_upstream, raw_upstream, read_head, upstream};

/// A client that speaks HTTP/2 on clear text.
struct Multiplexed(SendRequest<Bytes>);

impl Multiplexed {
    async fn to(stage: &Stage) -> Self {
        let socket = TcpStream::connect(stage.address).await.unwrap();
        let (sender, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        Self(sender)
    }

    async fn begin(&mut self, request: Request<()>, is_all: bool) -> (ResponseFuture, SendStream<Bytes>) {
        self.0.clone().ready().await.unwrap().send_request(request, is_all).unwrap()
    }

    /// The status, the body and the trailers that come of a request without a body.
    async fn ask(&mut self, request: Request<()>) -> (u16, String, Option<HeaderMap>) {
        let (answer, _) = self.begin(request, true).await;
        whole(answer).await
    }
}

async fn whole(answer: ResponseFuture) -> (u16, String, Option<HeaderMap>) {
    let answer = answer.await.unwrap();
    let (status, mut body, mut text) = (answer.status().as_u16(), answer.into_body(), Vec::new());
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        text.extend_from_slice(&data);
    }
    (status, String::from_utf8(text).unwrap(), body.trailers().await.unwrap())
}

fn post(path: &str) -> http::request::Builder {
    Request::post(format!("http://shop.example{path}"))
}

/// Answers with the head that it got, and gives the body and the trailers back.
async fn echo(request: Request<Incoming>) -> Response<impl http_body::Body<Data = Bytes, Error = std::io::Error>> {
    let mut fields: Vec<String> =
        request.headers().iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
    fields.sort();
    let head = format!("{} {}\n{}\n\n", request.method(), request.uri(), fields.join("\n"));
    let body = request.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned();
    let frames = [Frame::data(Bytes::from(head)), Frame::data(body.to_bytes())].into_iter();
    let frames: Vec<_> = frames.chain(trailers.map(Frame::trailers)).map(Ok).collect();
    let mut answer = Response::new(StreamBody::new(iter(frames)));
    answer.headers_mut().insert("trailer", "x-sum".parse().unwrap());
    answer
}

#[tokio::test]
async fn a_request_crosses_to_either_version_with_its_trailers() {
    let introduced = "x-forwarded-for: 127.0.0.1\nx-forwarded-host: shop.example\nx-forwarded-proto: http\n\nhello";
    let (http1, _) = upstream(echo).await;
    let (http2, _) = http2_upstream(echo).await;
    for (stage, expected) in [
        (
            Stage::before(http1),
            format!(
                "POST /a?b\ncookie: a=b; c=d\nhost: shop.example\nte: trailers\ntrailer: x-sum\n\
                 transfer-encoding: chunked\n{introduced}"
            ),
        ),
        (
            Scene::of(&["h2c://UPSTREAM"]).before(http2),
            format!("POST http://shop.example/a?b\ncookie: a=b; c=d\nte: trailers\ntrailer: x-sum\n{introduced}"),
        ),
    ] {
        let mut client = Multiplexed::to(&stage).await;
        let request = post("/a?b").header("te", "trailers").header("trailer", "x-sum");
        let request = request.header("cookie", "a=b").header("cookie", "c=d").body(()).unwrap();
        let (answer, mut body) = client.begin(request, false).await;
        body.send_data(Bytes::from("hel"), false).unwrap();
        body.send_data(Bytes::from("lo"), false).unwrap();
        body.send_trailers(HeaderMap::from_iter([(HeaderName::from_static("x-sum"), "7".parse().unwrap())])).unwrap();
        let (status, text, trailers) = whole(answer).await;
        assert_eq!((status, text), (200, expected));
        assert_eq!(trailers.unwrap()["x-sum"], "7");
    }
}

#[tokio::test]
async fn a_body_with_a_length_keeps_it() {
    let (http1, _) = upstream(echo).await;
    let stage = Stage::before(http1);
    let mut client = Multiplexed::to(&stage).await;
    let (answer, mut body) = client.begin(post("/").header("content-length", 5).body(()).unwrap(), false).await;
    body.send_data(Bytes::from("hello"), true).unwrap();
    let (_, text, _) = whole(answer).await;
    assert!(text.contains("\ncontent-length: 5\n") && !text.contains("transfer-encoding"), "{text}");
}

#[tokio::test]
async fn one_host_is_named_and_connect_is_refused() {
    let (http1, log) = upstream(echo).await;
    let stage = Stage::before(http1);
    let mut client = Multiplexed::to(&stage).await;
    let (status, text, _) = client.ask(post("/").header("host", "other.example").body(()).unwrap()).await;
    assert!(status == 400 && text.contains("the request names two hosts"), "{status} {text}");
    assert_eq!(client.ask(Request::connect("shop.example:443").body(()).unwrap()).await.0, 501);
    assert_eq!(log.requests(), 0);
    assert_eq!(client.ask(post("/").header("host", "SHOP.example").body(()).unwrap()).await.0, 200);
}

#[tokio::test]
async fn a_body_of_another_length_than_was_said_does_not_shift_what_follows() {
    for sent in ["four", "more than it"] {
        // What comes on each connection, to its end.
        let came = Arc::new(std::sync::Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicUsize::new(0));
        let (notes, ends) = (Arc::clone(&came), Arc::clone(&ended));
        let address = raw_upstream(move |mut socket| {
            let (notes, ends) = (Arc::clone(&notes), Arc::clone(&ends));
            async move {
                let mut all = Vec::new();
                let _ = socket.read_to_end(&mut all).await;
                notes.lock().unwrap().push(String::from_utf8(all).unwrap());
                ends.fetch_add(1, SeqCst);
            }
        })
        .await;
        let stage = Stage::before(address);
        let mut client = Multiplexed::to(&stage).await;
        let (answer, mut body) = client.begin(post("/").header("content-length", 5).body(()).unwrap(), false).await;
        body.send_data(Bytes::from(sent), true).unwrap();
        assert!(answer.await.is_err(), "{sent}");
        eventually("the upstream's connection has ended", || {
            // It may not have been opened at all.
            let connections = came.lock().unwrap().len();
            ended.load(SeqCst) == connections
        })
        .await;
        for all in came.lock().unwrap().iter() {
            let body = all.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            assert!(body.len() < 5, "{all}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_its_client_resets_ends_at_the_upstream() {
    let closed = Arc::new(AtomicUsize::new(0));
    let (came, seen) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&closed));
    let comes = Arc::clone(&came);
    let http1 = raw_upstream(move |mut socket| {
        let (comes, seen) = (Arc::clone(&comes), Arc::clone(&seen));
        async move {
            read_head(&mut socket).await;
            comes.fetch_add(1, SeqCst);
            let _ = socket.read_to_end(&mut Vec::new()).await;
            seen.fetch_add(1, SeqCst);
        }
    })
    .await;
    let stage = Stage::before(http1);
    let mut client = Multiplexed::to(&stage).await;
    let (_answer, mut body) = client.begin(post("/").body(()).unwrap(), false).await;
    eventually("it is there", || came.load(SeqCst) == 1).await;
    body.send_reset(Reason::CANCEL);
    eventually("it has ended", || closed.load(SeqCst) == 1).await;
    // The client's connection goes on.
    assert_eq!(client.ask(Request::connect("a:1").body(()).unwrap()).await.0, 501);
}
