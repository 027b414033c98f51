//! What the tests are given: a service of a few lines, a clock that they drive, and answers read back.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use sfv::{BareItem, List, ListEntry, Parser};
use tidegate::{Limiter, ManualClock, Memory, Time};
use tidegate_http::{Ask, LimitLayer, LimitService, Peer};
use tower::{Layer, Service, ServiceExt};

pub(crate) type Body = Full<Bytes>;
pub(crate) type Limits = Limiter<Memory<ManualClock>>;

/// A service that answers 200, and counts how often it was called.
#[derive(Clone, Default)]
pub(crate) struct Hello {
    pub(crate) calls: Arc<AtomicUsize>,
    /// Fields that it sets itself.
    pub(crate) fields: HeaderMap,
}

impl Hello {
    pub(crate) fn with(name: &'static str, value: &str) -> Self {
        let mut hello = Self::default();
        hello.fields.insert(name, value.parse().unwrap());
        hello
    }

    pub(crate) fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Service<Request<Body>> for Hello {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut response = Response::new(Full::from("hello"));
        *response.headers_mut() = self.fields.clone();
        std::future::ready(Ok(response))
    }
}

/// A limiter with one limit called `default`, and its clock, which stands at zero.
pub(crate) fn limiter(limit: &str) -> (Arc<Limits>, ManualClock) {
    limiter_of(&[("default", limit)])
}

pub(crate) fn limiter_of(limits: &[(&str, &str)]) -> (Arc<Limits>, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().keys(1_000).clock(clock.clone());
    let builder = limits.iter().fold(builder, |builder, (name, limit)| builder.limit(name, limit.parse().unwrap()));
    (Arc::new(builder.build()), clock)
}

/// One bucket for all, before [`Hello`].
pub(crate) fn service(limit: &str) -> (Limited<tidegate_http::ByKey<Memory<ManualClock>, Body>>, ManualClock) {
    let (limiter, clock) = limiter(limit);
    (Limited::new(LimitLayer::new(limiter)), clock)
}

/// A service under test.
pub(crate) struct Limited<A> {
    pub(crate) service: LimitService<Hello, A>,
    pub(crate) hello: Hello,
}

impl<A: Ask<Body>> Limited<A> {
    pub(crate) fn new(layer: LimitLayer<A>) -> Self {
        Self::around(layer, Hello::default())
    }

    pub(crate) fn around(layer: LimitLayer<A>, hello: Hello) -> Self {
        Self { service: layer.layer(hello.clone()), hello }
    }

    pub(crate) fn get(&self) -> Seen {
        self.send(get("/"))
    }

    pub(crate) fn send(&self, request: Request<Body>) -> Seen {
        send(self.service.clone(), request)
    }

    /// The statuses of `count` requests.
    pub(crate) fn statuses(&self, count: usize) -> Vec<u16> {
        (0..count).map(|_| self.get().status.as_u16()).collect()
    }

    /// How many of `count` requests pass.
    pub(crate) fn passing(&self, count: usize) -> usize {
        self.statuses(count).iter().filter(|status| **status == 200).count()
    }
}

/// An answer, all of it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    /// The value of a field that is there at most once.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} is there more than once");
        value
    }

    /// A field that holds a number.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.field(name).map(|value| value.parse().unwrap())
    }

    /// The parameter of the first item of a list, as an integer.
    #[track_caller]
    pub(crate) fn parameter(&self, name: &str, key: &str) -> Option<i64> {
        parameter(list(&self.headers, name).first()?, key)
    }

    #[track_caller]
    pub(crate) fn remaining(&self) -> i64 {
        self.parameter("ratelimit", "r").unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap().to_owned()
    }
}

/// All lines of a field, parsed as one list of structured fields.
#[track_caller]
pub(crate) fn list(headers: &HeaderMap, name: &str) -> List {
    let lines: Vec<_> = headers.get_all(name).iter().map(|line| line.to_str().unwrap()).collect();
    let text = lines.join(", ");
    Parser::new(&text).parse().unwrap_or_else(|error| panic!("{name}: {text}: {error}"))
}

#[track_caller]
pub(crate) fn parameter(entry: &ListEntry, key: &str) -> Option<i64> {
    let ListEntry::Item(item) = entry else { panic!("an inner list") };
    match item.params.get(key)? {
        BareItem::Integer(number) => Some(i64::from(*number)),
        other => panic!("{key} is {other:?}"),
    }
}

#[track_caller]
pub(crate) fn name(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Item(sfv::Item { bare_item: BareItem::String(name), .. }) => name.as_str().to_owned(),
        other => panic!("{other:?} has no name"),
    }
}

/// Sends one request to a service that has a clone for it.
pub(crate) fn send<S, R>(service: S, request: Request<Body>) -> Seen
where
    S: Service<Request<Body>, Response = Response<R>>,
    S::Error: std::fmt::Debug,
    R: http_body::Body<Data = Bytes>,
    R::Error: std::fmt::Debug,
{
    block_on(async {
        let (parts, body) = service.oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Seen { status: parts.status, headers: parts.headers, body }
    })
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::default()).unwrap()
}

/// A request from this address.
pub(crate) fn from(peer: &str) -> Request<Body> {
    let ip: IpAddr = peer.parse().unwrap();
    let mut request = get("/");
    request.extensions_mut().insert(Peer::from(SocketAddr::new(ip, 4711)));
    request
}

/// The header fields `name: value` are added.
pub(crate) fn with<B>(mut request: Request<B>, fields: &[(&'static str, &str)]) -> Request<B> {
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

pub(crate) fn at_ms(clock: &ManualClock, ms: u64) {
    clock.set(Time::from_millis(ms));
}

pub(crate) fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}
