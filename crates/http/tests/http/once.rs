//! A limit is charged once per request, even when two layers of one service carry it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use tidegate::{ManualClock, Memory};
use tidegate_http::{ByKey, LimitLayer};
use tower::Layer;

use crate::given::{Body, Hello, Limits, get, limiter, limiter_of, list, name, send};

fn layer(limiter: &Arc<Limits>) -> LimitLayer<ByKey<Memory<ManualClock>, Body>> {
    LimitLayer::new(Arc::clone(limiter))
}

#[test]
fn br_066_the_same_limiter_on_the_app_and_on_a_route_takes_one() {
    let (limiter, _) = limiter("600/min");
    let notes = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&notes);
    let on_route = layer(&limiter).on_repeat(move || {
        noted.fetch_add(1, Ordering::SeqCst);
    });
    let a = layer(&limiter).layer(on_route.layer(Hello::default()));
    let b = layer(&limiter).layer(Hello::default());
    let seen = send(a.clone(), get("/a"));
    assert_eq!((seen.remaining(), list(&seen.headers, "ratelimit").len()), (599, 1));
    assert_eq!(send(b, get("/b")).remaining(), 598);
    assert_eq!(notes.load(Ordering::SeqCst), 1);
    assert_eq!(send(a, get("/a")).remaining(), 597);
    assert_eq!(notes.load(Ordering::SeqCst), 1, "it is noted once");
}

#[test]
fn br_066_two_different_limiters_take_one_each() {
    let (outer, _) = limiter_of(&[("outer", "10/min")]);
    let (inner, _) = limiter_of(&[("inner", "5/min")]);
    let both = layer(&outer).layer(layer(&inner).layer(Hello::default()));
    let seen = send(both.clone(), get("/"));
    let fields = list(&seen.headers, "ratelimit");
    assert_eq!(fields.iter().map(name).collect::<Vec<_>>(), ["inner", "outer"]);
    assert_eq!(list(&seen.headers, "ratelimit-policy").len(), 2);
    for _ in 0..4 {
        assert_eq!(send(both.clone(), get("/")).status, 200);
    }
    let denied = send(both, get("/"));
    assert_eq!((denied.status.as_u16(), &denied.json()["violated-policies"]), (429, &serde_json::json!(["inner"])));
    assert_eq!((outer.peek(&[]).remaining(), inner.peek(&[]).remaining()), (Some(4), Some(0)));
}

#[test]
fn three_layers_of_two_limiters_take_one_of_each() {
    let (one, _) = limiter_of(&[("one", "10/min")]);
    let (two, _) = limiter_of(&[("two", "10/min")]);
    let all = layer(&one).layer(layer(&two).layer(layer(&one).layer(layer(&two).layer(Hello::default()))));
    assert_eq!(send(all, get("/")).status, 200);
    assert_eq!((one.peek(&[]).remaining(), two.peek(&[]).remaining()), (Some(9), Some(9)));
}

#[test]
fn another_request_is_charged_anew() {
    let (limiter, _) = limiter("2/min");
    let twice = layer(&limiter).layer(layer(&limiter).layer(Hello::default()));
    let statuses = [(); 3].map(|()| send(twice.clone(), Request::new(Body::default())).status.as_u16());
    assert_eq!(statuses, [200, 200, 429]);
}
