//! Whose bucket is charged.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use tidegate::{Limit, Limiter, ManualClock, Memory, Quota};
use tidegate_http::{ByKey, ClientAddress, LimitLayer, OnMissing};

use crate::given::{Body, Limited, Limits, from, get, limiter, with};

type Asked = Limited<ByKey<Memory<ManualClock>, Body>>;

/// Limited by the value of the field `x-key`.
fn by_header(limit: &str, on_missing: OnMissing) -> (Asked, Arc<Limits>) {
    let (limiter, _) = limiter(limit);
    let layer = LimitLayer::new(Arc::clone(&limiter)).on_missing(on_missing);
    let key = |request: &Request<Body>| Some(request.headers().get("x-key")?.as_bytes().to_vec());
    (Limited::new(layer.key(key)), limiter)
}

fn keyed(key: &str) -> Request<Body> {
    with(from("203.0.113.7"), &[("x-key", key)])
}

fn status(asked: &Asked, request: Request<Body>) -> u16 {
    asked.send(request).status.as_u16()
}

#[test]
fn each_key_has_a_bucket_of_its_own_and_the_limiter_knows_it_by_the_same_key() {
    let (asked, limiter) = by_header("2/min", OnMissing::Client);
    assert_eq!(
        [keyed("a"), keyed("a"), keyed("a"), keyed("b")].map(|request| status(&asked, request)),
        [200, 200, 429, 200]
    );
    assert_eq!(limiter.peek("a").remaining(), Some(0));
    limiter.reset("a");
    assert_eq!(status(&asked, keyed("a")), 200);
}

#[test]
fn keys_can_be_borrowed_from_the_request() {
    #[derive(Clone)]
    struct User(String);
    let (limiter, _) = limiter("1/min");
    let layer = LimitLayer::new(limiter);
    let asked = Limited::new(
        layer.key_ref(|request: &Request<Body>| request.extensions().get::<User>().map(|user| user.0.as_str())),
    );
    let of = |name: &str| {
        let mut request = from("203.0.113.7");
        request.extensions_mut().insert(User(name.to_owned()));
        request
    };
    assert_eq!([of("ann"), of("ann"), of("bob")].map(|request| status(&asked, request)), [200, 429, 200]);
}

#[test]
fn without_a_key_function_all_share_one_bucket() {
    let asked: Asked = Limited::new(LimitLayer::new(limiter("1/min").0));
    assert_eq!([from("203.0.113.7"), from("203.0.113.8")].map(|request| status(&asked, request)), [200, 429]);
}

#[test]
fn br_112_a_missing_key_falls_back_to_the_client_is_denied_or_skips() {
    let none = || from("203.0.113.7");
    let (asked, limiter) = by_header("1/min", OnMissing::Client);
    assert_eq!([none(), none(), from("203.0.113.8")].map(|request| status(&asked, request)), [200, 429, 200]);
    assert_eq!(limiter.peek(&std::net::IpAddr::from([203, 0, 113, 7])).remaining(), Some(1), "a namespace of its own");

    let (asked, _) = by_header("1/min", OnMissing::Deny);
    let denied = asked.send(none());
    assert_eq!((denied.status.as_u16(), denied.field("retry-after")), (429, None));
    assert_eq!(denied.detail(), "the request lacks what its limit goes by, so waiting does not help");
    assert_eq!(status(&asked, keyed("a")), 200);

    let (asked, _) = by_header("1/min", OnMissing::Skip);
    assert_eq!([none(), none(), keyed("a"), keyed("a")].map(|request| status(&asked, request)), [200, 200, 200, 429]);
}

#[test]
fn br_112_odd_keys_are_keys_like_any_other() {
    let (asked, _) = by_header("1/min", OnMissing::Client);
    let odd = ["203.0.113.5, 198.51.100.7", "a\tb", "", "a", "a b"];
    for key in odd {
        assert_eq!([keyed(key), keyed(key)].map(|request| status(&asked, request)), [200, 429], "{key:?}");
    }
    assert_eq!(status(&asked, from("203.0.113.7")), 200, "the empty key is not a missing one");
}

#[test]
fn br_107_parts_of_a_key_are_joined_unambiguously() {
    let (limiter, _) = limiter("1/min");
    let layer = LimitLayer::new(limiter).key(|request: &Request<Body>| {
        let part = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        Some((part("x-scope")?, part("x-client")?))
    });
    let asked = Limited::new(layer);
    let pairs =
        [("a:b", "c"), ("a", "b:c"), ("api", "2001:db8::1"), ("api:2001", "db8::1"), ("a|b", "c"), ("a", "b|c")];
    for (scope, client) in pairs {
        assert_eq!(
            status(&asked, with(get("/"), &[("x-scope", scope), ("x-client", client)])),
            200,
            "{scope} {client}"
        );
    }
}

#[test]
fn br_109_keys_are_compared_as_bytes() {
    let (asked, _) = by_header("1/min", OnMissing::Client);
    for key in ["user@example.org", "USER@example.org", "uSeR@Example.ORG"] {
        assert_eq!(status(&asked, keyed(key)), 200, "{key}");
    }
}

#[test]
fn br_072_parallel_requests_do_not_slip_through() {
    for _ in 0..20 {
        let (limiter, _) = limiter("10/min");
        let layer = LimitLayer::new(limiter);
        let limited: Asked = Limited::new(layer);
        let services: Vec<_> = (0..50).map(|_| limited.service.clone()).collect();
        let start = Arc::new(std::sync::Barrier::new(services.len()));
        let threads: Vec<_> = services
            .into_iter()
            .map(|service| {
                let start = Arc::clone(&start);
                std::thread::spawn(move || {
                    start.wait();
                    crate::given::send(service, get("/")).status.as_u16()
                })
            })
            .collect();
        let passed = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|status| *status == 200).count();
        assert_eq!(passed, 10);
    }
}

#[test]
fn clients_are_told_apart_by_address_and_trusted_proxies_are_believed() {
    let address = ClientAddress { trust: "10.0.0.0/8".parse().unwrap(), ..ClientAddress::default() };
    let asked: Asked = Limited::new(LimitLayer::by_client(limiter("1/min").0, address));
    let forwarded = |peer, whom| with(from(peer), &[("x-forwarded-for", whom)]);
    assert_eq!(status(&asked, from("203.0.113.7")), 200);
    assert_eq!(status(&asked, forwarded("10.0.0.1", "203.0.113.7")), 429, "the same client, through the proxy");
    assert_eq!(status(&asked, forwarded("10.0.0.1", "203.0.113.8")), 200);
    assert_eq!(status(&asked, forwarded("203.0.113.7", "203.0.113.9")), 429, "nobody believes a stranger");
    assert_eq!([from("2001:db8:1:2::3"), from("2001:db8:1:2::4")].map(|request| status(&asked, request)), [200, 429]);
}

#[test]
fn the_peer_is_found_where_servers_leave_it() {
    let asked: Asked = Limited::new(LimitLayer::by_client(limiter("1/min").0, ClientAddress::default()));
    let socket: SocketAddr = "203.0.113.7:4711".parse().unwrap();
    let mut plain = get("/");
    plain.extensions_mut().insert(socket);
    assert_eq!([from("203.0.113.7"), plain].map(|request| status(&asked, request)), [200, 429]);
    #[cfg(feature = "axum")]
    {
        let mut request = get("/");
        request.extensions_mut().insert(axum::extract::ConnectInfo(socket));
        assert_eq!(status(&asked, request), 429);
    }
}

#[test]
fn a_server_that_hides_the_peer_is_told_so() {
    let asked: Asked = Limited::new(LimitLayer::by_client(limiter("1/min").0, ClientAddress::default()));
    let seen = asked.send(get("/"));
    assert_eq!((seen.status.as_u16(), seen.field("retry-after")), (500, None));
    assert_eq!(seen.detail(), "the limit goes by the client's address, which the server does not know");
    assert_eq!(asked.hello.count(), 0);
}

#[test]
fn the_peer_can_be_found_elsewhere() {
    #[derive(Clone)]
    struct Elsewhere(SocketAddr);
    let layer = LimitLayer::by_client(limiter("1/min").0, ClientAddress::default())
        .peer(|extensions| extensions.get::<Elsewhere>().map(|peer| peer.0.into()));
    let asked: Asked = Limited::new(layer);
    let mut request = get("/");
    request.extensions_mut().insert(Elsewhere("203.0.113.7:1".parse().unwrap()));
    assert_eq!(status(&asked, request), 200);
}

#[test]
fn a_plan_replaces_the_quota_and_keeps_what_is_owed() {
    let quota = |limit: &str| -> Quota { limit.parse::<Limit>().unwrap().quota().unwrap() };
    let plans = [quota("5/min"), quota("100/min burst 20")];
    let limiter = Limiter::builder()
        .limit("plan", "10/min".parse().unwrap())
        .limit("day", "1000/day".parse().unwrap())
        .clock(ManualClock::new())
        .build();
    let layer = LimitLayer::new(Arc::new(limiter)).quota(move |request: &Request<Body>| match request.uri().path() {
        "/small" => Some(plans[0]),
        "/large" => Some(plans[1]),
        _ => None,
    });
    let asked = Limited::new(layer);
    let seen = |path: &str| {
        let seen = asked.send(get(path));
        (seen.field("ratelimit-policy").unwrap().to_owned(), seen.remaining())
    };
    let day = r#"day";q=1000;w=86400"#;
    assert_eq!(seen("/"), (format!(r#""plan";q=10;w=60, "{day}"#), 9));
    assert_eq!(seen("/small"), (format!(r#""plan";q=5;w=60, "{day}"#), 3));
    assert_eq!(seen("/large"), (format!(r#""plan";q=100;w=60;tidegate-burst=20, "{day}"#), 17));
    assert_eq!(seen("/"), (format!(r#""plan";q=10;w=60, "{day}"#), 6));
}

#[test]
fn layers_can_be_shown() {
    let shown: HashSet<_> = [
        format!("{:?}", LimitLayer::<ByKey<_, Body>>::new(limiter("1/min").0)),
        format!("{:?}", LimitLayer::<ByKey<_, Body>>::by_client(limiter("2/min").0, ClientAddress::default())),
    ]
    .into();
    assert!(shown.iter().all(|text| text.starts_with("LimitLayer { ask: ByKey { limiter: [")), "{shown:?}");
}
