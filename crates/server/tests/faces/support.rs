//! A proxy, an upstream behind it and a client before it, on ports of the kernel's choice.

use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tidegate_core::{Mode, Time};
use tidegate_server::{
    Bounds, Drain, Entrance, HostTold, LimitName, Listener, Metrics, Proxy, ProxySetup, Setup, Trust, Upstream,
    UpstreamTls, Upstreams, bind, serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing that a test waits for takes this long; a test that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy in front of an upstream.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) drain: Drain,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
}

/// What is set up before the proxy starts.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) bounds: Bounds,
    pub(crate) trust: &'static str,
    pub(crate) path: &'static str,
    pub(crate) entrance: Entrance,
    /// Instead of the upstream's URL; `UPSTREAM` stands for its address. Each goes where a flag would send it.
    pub(crate) upstreams: Vec<String>,
    pub(crate) tls: Option<UpstreamTls>,
    pub(crate) host: HostTold,
}

impl Scene {
    /// With these upstreams.
    pub(crate) fn of(upstreams: &[&str]) -> Self {
        Self { upstreams: upstreams.iter().map(|&text| text.to_owned()).collect(), ..Self::default() }
    }

    fn destinations(&self, upstream: SocketAddr) -> Upstreams {
        match self.upstreams.as_slice() {
            [] => Upstreams::from(format!("http://{upstream}{}", self.path).parse::<Upstream>().unwrap()),
            these => {
                let these = these.iter().map(|text| text.replace("UPSTREAM", &upstream.to_string()).parse().unwrap());
                Upstreams::new(these.collect()).unwrap()
            }
        }
    }

    pub(crate) fn before(self, upstream: SocketAddr) -> Stage {
        let metrics = Arc::new(Metrics::new(&[LimitName {
            policy: String::new(),
            limit: "limit-1".into(),
            mode: Mode::Enforce,
            on_failure: Default::default(),
        }]));
        let proxy = Proxy::new(ProxySetup {
            upstreams: self.destinations(upstream),
            tls: self.tls.clone(),
            host: self.host,
            bounds: self.bounds.clone(),
            trust: if self.trust.is_empty() { Trust::default() } else { self.trust.parse().unwrap() }.into(),
            metrics: metrics.upstream.clone(),
            clock: Arc::new(|| Time::ZERO),
        });
        let listener = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap().remove(0);
        let address = listener.local_addr().unwrap();
        let drain = Drain::new();
        let setup = Setup { bounds: self.bounds, entrance: self.entrance, connections: metrics.connections.clone() };
        let served = tokio::spawn(serve(listener, proxy, setup, drain.started()));
        Stage { address, metrics, drain, served }
    }
}

impl Stage {
    pub(crate) fn before(upstream: SocketAddr) -> Self {
        Scene::default().before(upstream)
    }

    /// The value of one line of the metrics.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        metric(&self.metrics, series)
    }
}

pub(crate) fn metric(metrics: &Metrics, series: &str) -> u64 {
    let text = metrics.text().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(series).and_then(|rest| rest.strip_prefix(' ')));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
}

/// What an upstream saw.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) closed: Arc<AtomicUsize>,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Log {
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }
}

/// An upstream that speaks HTTP through hyper.
pub(crate) async fn upstream<H, F, B>(handler: H) -> (SocketAddr, Log)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let log = Log::default();
    let seen = log.clone();
    let address = raw_upstream(move |socket| {
        let (handler, seen) = (handler.clone(), seen.clone());
        async move {
            seen.connections.fetch_add(1, SeqCst);
            let requests = Arc::clone(&seen.requests);
            let service = service_fn(move |request| {
                requests.fetch_add(1, SeqCst);
                let answer = handler(request);
                async move { Ok::<_, std::convert::Infallible>(answer.await) }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
            seen.closed.fetch_add(1, SeqCst);
        }
    })
    .await;
    (address, log)
}

/// An upstream that speaks HTTP/2 on clear text through hyper.
pub(crate) async fn http2_upstream<H, F, B>(handler: H) -> (SocketAddr, Log)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let log = Log::default();
    let seen = log.clone();
    let address = raw_upstream(move |socket| {
        let (handler, seen) = (handler.clone(), seen.clone());
        async move {
            seen.connections.fetch_add(1, SeqCst);
            let requests = Arc::clone(&seen.requests);
            let service = service_fn(move |request| {
                requests.fetch_add(1, SeqCst);
                let answer = handler(request);
                async move { Ok::<_, std::convert::Infallible>(answer.await) }
            });
            let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = http.serve_connection(TokioIo::new(socket), service).await;
            seen.closed.fetch_add(1, SeqCst);
        }
    })
    .await;
    (address, log)
}

/// An upstream that does with each connection whatever it likes.
pub(crate) async fn raw_upstream<H, F>(handler: H) -> SocketAddr
where
    H: Fn(TcpStream) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(handler(socket));
        }
    });
    address
}

/// One listener for each worker.
pub(crate) fn one_each(listeners: Vec<std::net::TcpListener>) -> Vec<Vec<Listener>> {
    listeners.into_iter().map(|one| vec![one.into()]).collect()
}

/// An address at which nobody listens, and nobody else can: its socket is kept, and is never told to listen.
pub(crate) async fn nobody() -> SocketAddr {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((std::net::Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    address
}

/// A client that writes and reads bytes.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    unread: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The `detail` of a problem body, after a look at the rest of it.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self { socket: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.unwrap();
    }

    /// The bytes up to and with `end`.
    pub(crate) async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                let rest = self.unread.split_off(at + end.len());
                return std::mem::replace(&mut self.unread, rest);
            }
            assert!(
                self.read_some().await > 0,
                "closed before {end:?}, after {:?}",
                String::from_utf8_lossy(&self.unread)
            );
        }
    }

    async fn read_some(&mut self) -> usize {
        timeout(PATIENCE, self.socket.read_buf(&mut self.unread)).await.expect("no answer").unwrap_or(0)
    }

    /// The head of the next answer.
    pub(crate) async fn head(&mut self) -> String {
        String::from_utf8(self.until(b"\r\n\r\n").await).unwrap()
    }

    /// The next answer, framed by its length, or by chunks.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status = head[9..12].parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        if answer.field("transfer-encoding") == Some("chunked") {
            loop {
                let line = self.until(b"\r\n").await;
                let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
                let piece = self.exactly(size + 2).await;
                answer.body.extend_from_slice(&piece[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = answer.field("content-length") {
            answer.body = self.exactly(length.parse().unwrap()).await;
        }
        answer
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.read_some().await > 0, "closed after {} of {length}", self.unread.len());
        }
        let rest = self.unread.split_off(length);
        std::mem::replace(&mut self.unread, rest)
    }

    /// So many bytes, unless the other side closes before.
    pub(crate) async fn exactly_or_end(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unread.len() < length {
            if self.read_some().await == 0 {
                return None;
            }
        }
        let rest = self.unread.split_off(length);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    /// Everything until the other side closes, or resets.
    pub(crate) async fn rest(&mut self) -> String {
        while self.read_some().await > 0 {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")).await;
        self.answer().await
    }
}

/// Waits for what another task brings about.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The head of the next request on an upstream's socket.
pub(crate) async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}
