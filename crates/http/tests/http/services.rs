//! The layer keeps to what tower asks of a service.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use tidegate::{ManualClock, Memory};
use tidegate_http::{Ask, Asked, ByKey, Denial, LimitLayer, Ruling};
use tokio::sync::oneshot;
use tower::{Layer, Service, ServiceExt};

use crate::given::{Body, Hello, block_on, get, limiter};

/// A service that must be ready before it is called, as a buffer or a bound on concurrency must.
#[derive(Default)]
struct Strict {
    ready: bool,
    calls: Arc<AtomicUsize>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self { ready: false, calls: Arc::clone(&self.calls) }
    }
}

impl Service<Request<Body>> for Strict {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called before it was ready");
        self.calls.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(Response::new(Body::default())))
    }
}

/// Rules when it is told to.
#[derive(Clone)]
struct Slow(Arc<std::sync::Mutex<Vec<oneshot::Receiver<Ruling>>>>);

impl<B> Ask<B> for Slow {
    fn ask(&self, _: &Request<B>) -> Asked {
        let ruling = self.0.lock().unwrap().pop().unwrap();
        Asked::Later(Box::pin(async move { ruling.await.unwrap().into() }))
    }
}

fn slow() -> (Slow, [oneshot::Sender<Ruling>; 2]) {
    let (first, later) = oneshot::channel();
    let (second, last) = oneshot::channel();
    (Slow(Arc::new(std::sync::Mutex::new(vec![last, later]))), [first, second])
}

#[test]
fn a_service_is_called_only_when_it_is_ready() {
    let strict = Strict::default();
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Body>> = LimitLayer::new(limiter("2/min").0);
    let mut service = layer.layer(strict.clone());
    block_on(async {
        for status in [200, 200, 429, 429] {
            assert_eq!(service.ready().await.unwrap().call(get("/")).await.unwrap().status(), status);
        }
    });
    assert_eq!(strict.calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_ruling_that_takes_time_is_awaited_with_the_service_that_is_ready() {
    let strict = Strict::default();
    let (slow, [first, second]) = slow();
    let mut service = LimitLayer::asking(slow).layer(strict.clone());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut pending = pin!(service.call(get("/")));
    assert!(pending.as_mut().poll(&mut cx).is_pending());
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut other = pin!(service.call(get("/")));
    assert!(other.as_mut().poll(&mut cx).is_pending());
    assert_eq!(strict.calls.load(Ordering::SeqCst), 0);

    first.send(Ruling::Free).unwrap();
    second.send(Ruling::Denied(Denial::by_store(Duration::from_millis(1_500)))).unwrap();
    let Poll::Ready(Ok(passed)) = pending.poll(&mut cx) else { panic!("ruled and ready") };
    let Poll::Ready(Ok(denied)) = other.poll(&mut cx) else { panic!("ruled") };
    assert_eq!((passed.status().as_u16(), denied.status().as_u16()), (200, 503));
    assert_eq!(denied.headers()["retry-after"], "2");
    assert_eq!(strict.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_denied_request_is_not_read() {
    struct Tripwire(Arc<AtomicBool>);
    impl http_body::Body for Tripwire {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.store(true, Ordering::SeqCst);
            Poll::Ready(None)
        }
    }
    let read = Arc::new(AtomicBool::new(false));
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Tripwire>> = LimitLayer::new(limiter("0/min").0);
    let inner = tower::service_fn(async |request: Request<Tripwire>| {
        let _ = request.into_body().collect().await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let answer = block_on(layer.layer(inner).oneshot(Request::new(Tripwire(Arc::clone(&read))))).unwrap();
    assert_eq!(answer.status(), 429);
    assert!(!read.load(Ordering::SeqCst));
}

#[test]
fn an_error_of_the_service_is_passed_on() {
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Body>> = LimitLayer::new(limiter("1/min").0);
    let failing = tower::service_fn(async |_: Request<Body>| Err::<Response<Body>, _>("broken"));
    assert_eq!(block_on(layer.layer(failing).oneshot(get("/"))).unwrap_err(), "broken");
}

#[test]
fn a_body_passes_frame_by_frame_with_its_trailers() {
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Body>> = LimitLayer::new(limiter("1/min").0);
    let streaming = tower::service_fn(async |_: Request<Body>| {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", 0.into());
        let frames = [Frame::data(Bytes::from("a")), Frame::data(Bytes::from("b")), Frame::trailers(trailers)];
        let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Infallible>)));
        Ok::<_, Infallible>(Response::new(body))
    });
    block_on(async {
        let mut body = layer.layer(streaming).oneshot(get("/")).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
        assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap()["grpc-status"], "0");
        assert!(body.frame().await.is_none());
    });
}

#[test]
fn the_length_of_a_body_is_known_where_it_was() {
    let layer: LimitLayer<ByKey<Memory<ManualClock>, Body>> = LimitLayer::new(limiter("1/min").0);
    let service = layer.layer(Hello::default());
    block_on(async {
        let passed = service.clone().oneshot(get("/")).await.unwrap().into_body();
        assert_eq!(passed.size_hint().exact(), Some(5));
        let denied = service.oneshot(get("/")).await.unwrap().into_body();
        let length = denied.size_hint().exact().unwrap();
        let whole = denied.collect().await.unwrap().to_bytes();
        assert_eq!(usize::try_from(length).unwrap(), whole.len());
    });
}
