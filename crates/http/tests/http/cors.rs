//! What a script in a browser may read.

use http::{HeaderMap, Request};
use tidegate::{Limiter, ManualClock, Memory};
use tidegate_http::{ByKey, Cors, Dialect, Dialects, LimitLayer, Reset};

use crate::given::{Body, Hello, Limited, Seen, get, limiter, with};

const APP: &str = "https://app.example";

fn limited(cors: Cors, hello: Hello) -> Limited<ByKey<Memory<ManualClock>, Body>> {
    let limiter: std::sync::Arc<Limiter<_>> = limiter("1/min").0;
    Limited::around(LimitLayer::new(limiter).cors(cors), hello)
}

fn cors(text: &str) -> Cors {
    text.parse().unwrap()
}

fn from(origin: &str) -> Request<Body> {
    with(get("/"), &[("origin", origin)])
}

/// All names that are exposed, in lower case and in order.
fn exposed(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all("access-control-expose-headers").iter().map(|line| line.to_str().unwrap());
    let mut names: Vec<_> =
        lines.flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    names.sort();
    names
}

/// The answer to the second request, which is denied.
fn denied(cors: Cors, origin: &str) -> Seen {
    let limited = limited(cors, Hello::default());
    assert_eq!(limited.get().status, 200);
    let seen = limited.send(from(origin));
    assert_eq!(seen.status, 429);
    seen
}

#[test]
fn a_denial_can_be_read_from_a_configured_origin_and_from_no_other() {
    let seen = denied(cors("https://other.example, https://app.example"), APP);
    assert_eq!(seen.field("access-control-allow-origin"), Some(APP));
    assert_eq!((seen.field("vary"), seen.field("access-control-allow-credentials")), (Some("Origin"), None));
    assert_eq!(exposed(&seen.headers), ["ratelimit", "ratelimit-policy", "retry-after", "tidegate-source"]);
    for other in ["https://app.example.evil", "http://app.example", "https://app.example:8443", "null"] {
        let seen = denied(cors(APP), other);
        assert_eq!((seen.field("access-control-allow-origin"), seen.field("vary")), (None, Some("Origin")), "{other}");
        assert!(exposed(&seen.headers).is_empty());
    }
}

#[test]
fn any_origin_is_a_star_and_credentials_name_the_origin() {
    let seen = denied(cors("*"), "https://anybody.example");
    assert_eq!((seen.field("access-control-allow-origin"), seen.field("vary")), (Some("*"), None));
    let seen = denied(cors(APP).with_credentials().unwrap(), APP);
    assert_eq!(seen.field("access-control-allow-origin"), Some(APP));
    assert_eq!(seen.field("access-control-allow-credentials"), Some("true"));
}

#[test]
fn every_field_of_the_dialects_can_be_read() {
    let dialects: Dialects = [Dialect::Draft6, Dialect::XRateLimit(Reset::Delta)].into_iter().collect();
    let layer = LimitLayer::new(limiter("1/min").0).cors(cors(APP)).dialects(dialects);
    let limited = Limited::new(layer);
    let seen = [(); 2].map(|()| limited.send(from(APP)));
    for seen in &seen {
        // Each field that tells of limits is named.
        let names = exposed(&seen.headers);
        let told = seen.headers.keys().filter(|name| name.as_str().contains("ratelimit") || *name == "retry-after");
        told.for_each(|name| assert!(names.contains(&name.as_str().to_owned()), "{name} is in {names:?}"));
    }
    assert_eq!(exposed(&seen[0].headers).len(), 7);
}

#[test]
fn what_passes_keeps_the_fields_of_the_service_and_ours_are_named_beside_them() {
    let mut hello = Hello::with("access-control-allow-origin", APP);
    hello.fields.insert("access-control-expose-headers", "x-total".parse().unwrap());
    let seen = limited(cors(APP), hello.clone()).send(from(APP));
    assert_eq!((seen.status.as_u16(), seen.field("access-control-allow-origin")), (200, Some(APP)));
    assert_eq!(exposed(&seen.headers), ["ratelimit", "ratelimit-policy", "x-total"]);
    assert_eq!(seen.field("vary"), None);
    // Another origin, or none: it stays as it is.
    for request in [from("https://other.example"), get("/")] {
        assert_eq!(exposed(&limited(cors(APP), hello.clone()).send(request).headers), ["x-total"]);
    }
}

#[test]
fn nothing_is_said_where_nothing_is_configured() {
    let limited = Limited::new(LimitLayer::new(limiter("1/min").0));
    for _ in 0..2 {
        let seen = limited.send(from(APP));
        assert!(seen.headers.keys().all(|name| name != "vary" && !name.as_str().starts_with("access-control")));
    }
}
