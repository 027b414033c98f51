//! What the layer costs a request, and what a denial costs, beside tower_governor in the same run.
//!
//! ```text
//! cargo bench -p tidegate-http --bench layer
//! ```
//!
//! Everybody does the same work: a request with a user's number in its extensions is made, sent through the service and
//! answered with a short text; the answer is dropped. The bare service does it without a layer, and what is more with a
//! layer is the layer's. Rounds of all contestants alternate, and the best round counts.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use tidegate::{Limiter, Quota, Rate};
use tidegate_http::{ClientAddress, Dialect, Dialects, LimitLayer, Peer, Reset};
use tower::{Layer, Service};
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::KeyExtractor;
use tower_governor::{GovernorError, GovernorLayer};

const USERS: u64 = 1_000;
const KEYS: usize = 16_384;
const REQUESTS: u64 = 5_000;
const ROUNDS: usize = 201;

const LAYER_NS_MAX: f64 = 150.0;
const DENIAL_NS_MAX: f64 = 2_000.0;

#[derive(Clone, Copy)]
struct User(u64);

#[derive(Clone)]
struct Hello;

impl Service<Request<Body>> for Hello {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        drop(request);
        let mut response = Response::new(Body::from("hello"));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        ready(Ok(response))
    }
}

/// The user's number, for tower_governor.
#[derive(Clone)]
struct ByUser;

impl KeyExtractor for ByUser {
    type Key = u64;

    fn extract<T>(&self, request: &Request<T>) -> Result<u64, GovernorError> {
        request.extensions().get::<User>().map(|user| user.0).ok_or(GovernorError::UnableToExtractKey)
    }
}

/// One of those that are measured: its name, and one round, which gives nanoseconds per request.
struct Contestant {
    name: &'static str,
    round: Box<dyn FnMut() -> f64>,
    rounds: Vec<f64>,
}

impl Contestant {
    fn new<S, R>(name: &'static str, mut service: S, expect: StatusCode) -> Self
    where
        S: Service<Request<Body>, Response = Response<R>, Error = Infallible> + 'static,
    {
        let round = move || {
            let mut cx = Context::from_waker(Waker::noop());
            let start = Instant::now();
            for i in 0..REQUESTS {
                let mut request = Request::new(Body::empty());
                request.extensions_mut().insert(User(i % USERS));
                request.extensions_mut().insert(Peer::Ip([10, 0, (i % 100) as u8, (i / 100 % 100) as u8].into()));
                assert!(service.poll_ready(&mut cx).is_ready(), "always ready");
                let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(&mut cx) else {
                    panic!("answered at once");
                };
                assert_eq!(response.status(), expect);
                black_box(response);
            }
            start.elapsed().as_nanos() as f64 / REQUESTS as f64
        };
        Self { name, round: Box::new(round), rounds: Vec::new() }
    }

    fn run(&mut self) {
        let ns = (self.round)();
        self.rounds.push(ns);
    }

    /// The best round: what the work takes when nobody disturbs it.
    fn best(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// A million a second and as much at once: nothing is denied.
fn generous() -> Arc<Limiter> {
    limiter(1_000_000, Duration::from_secs(1), 1_000_000)
}

/// One a year: the first request of each user drains the bucket.
fn strict() -> Arc<Limiter> {
    limiter(1, Duration::from_secs(365 * 86_400), 1)
}

fn limiter(count: u64, period: Duration, burst: u64) -> Arc<Limiter> {
    let quota = Rate::new(count, period).and_then(|rate| Quota::with_burst(rate, burst)).expect("within bounds");
    // Room for the users of this benchmark, so that it is not the table's memory that is measured.
    Arc::new(Limiter::builder().limit("per-user", quota.into()).keys(KEYS).build())
}

fn user(request: &Request<Body>) -> Option<u64> {
    request.extensions().get::<User>().map(|user| user.0)
}

fn ours(
    limiter: Arc<Limiter>,
    dialects: impl Into<Dialects>,
) -> impl Service<Request<Body>, Response = Response<impl Sized>, Error = Infallible> {
    LimitLayer::new(limiter).key(user).dialects(dialects).layer(Hello)
}

fn governor(
    period: NonZeroU64,
    burst: u32,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible> {
    let mut config = GovernorConfigBuilder::default();
    config.per_nanosecond(period.get()).burst_size(burst);
    let config = config.key_extractor(ByUser).use_headers().finish().expect("neither is zero");
    GovernorLayer::new(config).layer(Hello)
}

fn main() {
    let all = Dialects::default().with(Dialect::XRateLimit(Reset::Epoch));
    let year_ns = NonZeroU64::new(365 * 86_400 * 1_000_000_000).expect("not zero");
    let microsecond_ns = NonZeroU64::new(1_000).expect("not zero");
    let (ok, denied) = (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS);

    let strict = strict();
    (0..USERS).for_each(|user| assert!(strict.check(&user).is_allowed()));
    let strict_peer = governor(year_ns, 1);
    let mut strict_peer_service = strict_peer;
    let mut cx = Context::from_waker(Waker::noop());
    for user in 0..USERS {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(User(user));
        let _ = pin!(strict_peer_service.call(request)).poll(&mut cx);
    }

    // A layer whose limiter somebody else holds leaves a mark in each request, lest an inner layer charge it again.
    let shared = generous();
    let _held = Arc::clone(&shared);
    let mut contestants = [
        Contestant::new("bare service", Hello, ok),
        Contestant::new("layer, no fields", ours(generous(), Dialects::NONE), ok),
        Contestant::new("layer, RateLimit and RateLimit-Policy", ours(generous(), Dialects::default()), ok),
        Contestant::new("layer, those and X-RateLimit-*", ours(generous(), all), ok),
        Contestant::new(
            "layer by client, RateLimit and RateLimit-Policy",
            LimitLayer::by_client(generous(), ClientAddress::default()).layer(Hello),
            ok,
        ),
        Contestant::new(
            "layer whose limiter is held elsewhere too, both fields",
            ours(shared, Dialects::default()),
            ok,
        ),
        Contestant::new("tower_governor, with fields", governor(microsecond_ns, 1_000_000), ok),
        Contestant::new("layer, denied", ours(strict, Dialects::default()), denied),
        Contestant::new("tower_governor, denied", strict_peer_service, denied),
    ];
    for _ in 0..ROUNDS {
        contestants.iter_mut().for_each(Contestant::run);
    }

    let bare = contestants[0].best();
    println!("{:<50} {bare:>8.0} ns per request", contestants[0].name);
    for contestant in &contestants[1..] {
        let more = contestant.best() - bare;
        println!("{:<50} {more:>8.0} ns more", contestant.name);
    }
    let more = |i: usize| contestants[i].best() - bare;
    println!();
    target("the layer with its fields, over the bare service", more(2), LAYER_NS_MAX);
    target("the layer with the fields of two dialects", more(3), LAYER_NS_MAX);
    target("a denial with its problem body", contestants[7].best(), DENIAL_NS_MAX);
    println!(
        "fields: {:.2} of tower_governor; denial: {:.2} of it",
        more(2) / more(6),
        contestants[7].best() / contestants[8].best()
    );
}

fn target(what: &str, ns: f64, ns_max: f64) {
    let verdict = if ns <= ns_max { "met" } else { "missed" };
    println!("{what}: {ns:.0} ns, target at most {ns_max:.0}: {verdict}");
}
