//! What a denied client is told, and whom the layer leaves alone.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use tidegate::{AtBound, Limiter, ManualClock, Quota, Rate};
use tidegate_http::{LimitLayer, Reason};

use crate::given::{Body, Limited, get, limiter, limiter_of, seconds, service, with};

#[test]
fn a_denial_is_a_problem_that_names_the_policy() {
    let limited = Limited::new(LimitLayer::new(limiter_of(&[("per-user", "1/min")]).0));
    let _ = limited.get();
    let seen = limited.get();
    assert_eq!(seen.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(seen.field("content-type"), Some("application/problem+json"));
    assert_eq!(
        seen.json(),
        serde_json::json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "limit \"per-user\" (1/min) is used up; try again in 60 seconds",
            "violated-policies": ["per-user"],
        })
    );
}

#[test]
fn br_111_control_characters_of_a_name_are_never_raw_in_a_body() {
    for name in ["a\r\nb", "a\0b", "\u{1b}[31m", "jos\u{e9}\u{202e}"] {
        let limited = Limited::new(LimitLayer::new(limiter_of(&[(name, "0/min")]).0));
        let seen = limited.get();
        let line = seen.body.strip_suffix(b"\n").unwrap();
        assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)), "{:?}", seen.body);
        assert_eq!(seen.json()["violated-policies"], serde_json::json!([name]), "and it reads back as it was");
    }
}

#[test]
fn the_answer_can_be_replaced_and_gets_the_fields_all_the_same() {
    let layer = LimitLayer::new(limiter("1/min").0).on_denied(|denial, parts| {
        assert_eq!(denial.reason(), Reason::Limit);
        let body = format!("{} {}: {:?}", parts.method, parts.uri, denial.retry_after());
        Response::builder().status(420).header("cache-control", "private").body(Bytes::from(body)).unwrap()
    });
    let limited = Limited::new(layer);
    let _ = limited.get();
    let seen = limited.send(get("/tea"));
    assert_eq!((seen.status.as_u16(), &*seen.body), (420, &b"GET /tea: Some(60s)"[..]));
    assert_eq!((seen.field("retry-after"), seen.remaining()), (Some("60"), 0));
    assert_eq!(seen.field("cache-control"), Some("private"), "a field that the answer has stays");
    assert_eq!(seen.field("content-type"), None);
}

#[test]
fn or_goes_out_exactly_as_it_is() {
    let layer = LimitLayer::new(limiter("0/min").0).on_denied_exactly(|_, _| Response::new(Bytes::from("no")));
    let seen = Limited::new(layer).get();
    assert_eq!((seen.status.as_u16(), seen.headers.len(), &*seen.body), (200, 0, &b"no"[..]));
}

#[test]
fn every_method_is_limited() {
    let (limited, _) = service("9/min");
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"];
    for (left, method) in (0..9).rev().zip(methods) {
        let mut request = get("/");
        *request.method_mut() = method.parse().unwrap();
        assert_eq!(limited.send(request).remaining(), left, "{method}");
    }
    assert_eq!(limited.get().status, 429);
}

fn preflight() -> Request<Body> {
    let request = with(get("/"), &[("origin", "https://example.org"), ("access-control-request-method", "GET")]);
    let (mut parts, body) = request.into_parts();
    parts.method = Method::OPTIONS;
    Request::from_parts(parts, body)
}

#[test]
fn br_128_preflights_count_as_nothing() {
    let (limited, _) = service("4/min");
    for left in (0..4).rev() {
        let seen = limited.send(preflight());
        assert_eq!((seen.status.as_u16(), seen.headers.len()), (200, 0));
        assert_eq!(limited.get().remaining(), left);
    }
    for _ in 0..5 {
        let mut plain = get("/");
        *plain.method_mut() = Method::OPTIONS;
        assert_eq!(limited.send(plain).status, 429);
    }
    assert_eq!(limited.send(preflight()).status, 200);
}

#[test]
fn preflights_count_where_that_is_wished() {
    let limited = Limited::new(LimitLayer::new(limiter("1/min").0).count_preflights());
    assert_eq!([limited.send(preflight()).status, limited.send(preflight()).status], [200, 429]);
}

#[test]
fn br_130_probes_of_an_exempt_path_are_never_denied_and_never_count() {
    let layer =
        LimitLayer::new(limiter("3/day").0).exempt(|request: &Request<Body>| request.uri().path() == "/healthz");
    let limited = Limited::new(layer);
    for _ in 0..8_640 {
        let seen = limited.send(get("/healthz?x=1"));
        assert_eq!((seen.status.as_u16(), seen.headers.len()), (200, 0));
    }
    for (left, path) in (0..3).rev().zip(["/HEALTHZ", "//healthz", "/healthz/../api"]) {
        assert_eq!(limited.send(get(path)).remaining(), left, "{path}");
    }
    assert_eq!(limited.send(get("/healthz/%2e%2e/api")).status, 429);
    assert_eq!(limited.send(get("/healthz")).status, 200);
}

#[test]
fn a_newcomer_without_room_is_told_that_the_server_is_full() {
    let limiter = Limiter::builder()
        .limit("default", "1/min".parse().unwrap())
        .keys(1)
        .at_bound(AtBound::Deny)
        .clock(ManualClock::new())
        .build();
    let layer = LimitLayer::new(Arc::new(limiter)).key(|request: &Request<Body>| Some(request.uri().path().to_owned()));
    let limited = Limited::new(layer);
    let seen = (0..10_000).map(|i| limited.send(get(&format!("/{i}")))).find(|seen| seen.status != 200).unwrap();
    assert_eq!((seen.status.as_u16(), seen.field("retry-after")), (429, Some("60")));
    let json = seen.json();
    assert_eq!(json["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(json["status"], 429);
    let detail = "the server has no room for another client under limit \"default\" (1/min); try again in 60 seconds";
    assert_eq!(json["detail"], detail);
}

#[test]
fn a_store_that_cannot_answer_is_a_503_with_a_time_to_come_back() {
    // A table knows 65,536 quotas; here each request brings another one.
    let quota = |n: u64| Quota::with_burst(Rate::new(n, seconds(1)).unwrap(), 1).unwrap();
    let layer = LimitLayer::new(limiter("1/min").0).quota(move |request: &Request<Body>| {
        let n = request.uri().path()[1..].parse().unwrap();
        (n > 0).then(|| quota(n))
    });
    let limited = Limited::new(layer);
    let seen = (1..100_000).map(|n| limited.send(get(&format!("/{n}")))).find(|seen| seen.status == 503).unwrap();
    assert_eq!((seen.field("retry-after"), seen.field("cache-control")), (Some("1"), Some("no-store")));
    assert_eq!((seen.field("ratelimit"), seen.field("ratelimit-policy")), (None, None));
    assert_eq!(
        seen.json(),
        serde_json::json!({
            "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
            "title": "Request cannot be satisfied due to temporary server capacity constraints",
            "status": 503,
            "detail": "the server cannot check its limits at present; try again in 1 second",
            "violated-policies": [],
        })
    );
}

#[test]
fn br_133_an_upgrade_is_denied_before_it_happens() {
    let (limited, _) = service("1/min");
    let upgrade = || with(get("/chat"), &[("connection", "upgrade"), ("upgrade", "websocket")]);
    assert_eq!(limited.send(upgrade()).status, 200);
    assert_eq!(limited.send(upgrade()).status, 429);
    assert_eq!(limited.hello.count(), 1);
}
