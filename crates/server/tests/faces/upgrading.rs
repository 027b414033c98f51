//! Connections that leave HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tidegate_server::{Bounds, Connections, Drain, Metrics, Setup, bind, serve};
use tokio::io::{copy, split};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::service_fn;

use crate::support::{Client, PATIENCE, eventually, metric};

/// A server that turns each request into an echo.
struct Echo {
    address: SocketAddr,
    metrics: Metrics,
    drain: Drain,
    served: JoinHandle<std::io::Result<()>>,
}

async fn upgraded(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.unwrap();
        let (mut from, mut to) = split(TokioIo::new(upgraded));
        let _ = copy(&mut from, &mut to).await;
    });
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    Ok(answer.header("connection", "upgrade").header("upgrade", "echo").body(Empty::new()).unwrap())
}

impl Echo {
    fn start(bounds: Bounds) -> Self {
        let (metrics, drain) = (Metrics::new(&[]), Drain::new());
        let connections: Connections = metrics.connections.clone();
        let listener = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap().remove(0);
        let address = listener.local_addr().unwrap();
        let setup = Setup { bounds, connections, ..Setup::default() };
        let served = tokio::spawn(serve(listener, service_fn(upgraded), setup, drain.started()));
        Self { address, metrics, drain, served }
    }

    /// A client that has left HTTP.
    async fn client(&self) -> Client {
        let mut client = Client::to(self.address).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n").await;
        assert!(client.head().await.starts_with("HTTP/1.1 101 "));
        client
    }

    fn open(&self) -> u64 {
        metric(&self.metrics, "tidegate_connections")
    }
}

async fn echoes(client: &mut Client, word: &str) {
    client.send(word).await;
    assert_eq!(client.exactly(word.len()).await, word.as_bytes());
}

#[tokio::test]
async fn an_upgraded_connection_counts_as_open_until_it_is_closed() {
    let echo = Echo::start(Bounds::default());
    let mut client = echo.client().await;
    echoes(&mut client, "hello").await;
    assert_eq!(echo.open(), 1);
    // What was sent before the client closed its half still comes back.
    client.send("bye").await;
    tokio::io::AsyncWriteExt::shutdown(&mut client.socket).await.unwrap();
    assert_eq!(client.rest().await, "bye");
    eventually("it is closed", || echo.open() == 0).await;
}

#[tokio::test]
async fn time_does_not_end_it() {
    let short = Duration::from_millis(20);
    let echo = Echo::start(Bounds { idle_timeout: short, header_timeout: short, ..Bounds::default() });
    let mut client = echo.client().await;
    // Time is the thing tested, so it has to pass.
    tokio::time::sleep(short * 10).await;
    echoes(&mut client, "still here").await;
}

#[tokio::test]
async fn stopping_waits_for_it() {
    let echo = Echo::start(Bounds::default());
    let mut client = echo.client().await;
    echo.drain.start();
    let address = echo.address;
    eventually("nobody listens", || std::net::TcpStream::connect(address).is_err()).await;
    echoes(&mut client, "one more").await;
    assert!(!echo.served.is_finished());
    drop(client);
    timeout(PATIENCE, echo.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn after_the_grace_period_it_is_cut() {
    let echo = Echo::start(Bounds { grace: Duration::from_millis(50), ..Bounds::default() });
    let mut client = echo.client().await;
    echo.drain.start();
    timeout(PATIENCE, echo.served).await.unwrap().unwrap().unwrap();
    assert_eq!(client.rest().await, "");
}
