//! The layer behind real connections.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{client::conn as client, server::conn as server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tidegate::{ManualClock, Memory};
use tidegate_http::{ByKey, LimitBody, LimitLayer};
use tokio::io::{DuplexStream, duplex};
use tower::{Layer, Service, service_fn};

use crate::given::{block_on, limiter};

const PIPE_BYTES: usize = 64 * 1024;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

/// What is served.
trait App:
    Service<Request<Incoming>, Response = Response<LimitBody<Full<Bytes>>>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> App for S where
    S: Service<Request<Incoming>, Response = Response<LimitBody<Full<Bytes>>>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// A service limited by `x-api-key`.
fn limited() -> impl App {
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Incoming>> = LimitLayer::new(limiter("10/min").0);
    let key = |request: &Request<Incoming>| Some(request.headers().get("x-api-key")?.as_bytes().to_vec());
    layer.key(key).layer(service_fn(hello))
}

/// The client's end of a connection that is served.
fn connect(app: impl App, http2: bool) -> DuplexStream {
    let (ours, theirs) = duplex(PIPE_BYTES);
    let (io, service) = (TokioIo::new(theirs), TowerToHyperService::new(app));
    tokio::spawn(async move {
        match http2 {
            true => server::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await,
            false => server::http1::Builder::new().serve_connection(io, service).await,
        }
    });
    ours
}

async fn http1(app: impl App) -> client::http1::SendRequest<Full<Bytes>> {
    let (sender, connection) = client::http1::handshake(TokioIo::new(connect(app, false))).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(i: usize) -> Request<Full<Bytes>> {
    Request::get("http://a.example/").header("x-api-key", ["A", "B"][i % 2]).body(Full::default()).unwrap()
}

/// Counts an answer in `[A passed, B passed, denied]`, once it is read to its end.
async fn count(counts: &mut [usize; 3], i: usize, answer: Response<Incoming>) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status == 200, body == "hello");
    assert!(matches!(status, 200 | 429));
    counts[if status == 200 { i % 2 } else { 2 }] += 1;
}

const EXPECT: [usize; 3] = [10, 10, 80];

#[test]
fn br_132_one_http_2_connection_carries_the_streams_of_several_keys() {
    block_on(async {
        let io = TokioIo::new(connect(limited(), true));
        let (sender, connection) = client::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let answers = join_all((0..100).map(|i| sender.clone().send_request(request(i)))).await;
        let mut counts = [0; 3];
        for (i, answer) in answers.into_iter().enumerate() {
            count(&mut counts, i, answer.unwrap()).await;
        }
        assert_eq!(counts, EXPECT);
        assert!(!sender.is_closed(), "the connection stays open");
    });
}

#[test]
fn br_132_so_does_one_http_1_connection() {
    block_on(async {
        let mut sender = http1(limited()).await;
        let mut counts = [0; 3];
        for i in 0..100 {
            sender.ready().await.unwrap();
            let answer = sender.send_request(request(i)).await.unwrap();
            count(&mut counts, i, answer).await;
        }
        assert_eq!(counts, EXPECT);
    });
}

#[test]
fn br_132_and_so_do_a_hundred_connections() {
    block_on(async {
        let app = limited();
        let mut counts = [0; 3];
        for i in 0..100 {
            let answer = http1(app.clone()).await.send_request(request(i)).await.unwrap();
            count(&mut counts, i, answer).await;
        }
        assert_eq!(counts, EXPECT);
    });
}
