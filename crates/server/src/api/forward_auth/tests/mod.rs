//! What proxies ask, and what they are answered, on a clock that stands still.

mod clients;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tidegate::policy::file::{self, Format};
use tidegate::{Clock as _, Gate, ManualClock, Memory, TableOptions};
use tidegate_http::Dialects;
use tidegate_policy::Peer;

use super::ForwardAuth;
use crate::Metrics;
use crate::operating::in_force::Observed;

/// The address of the proxy that asks.
const ASKER: [u8; 4] = [10, 0, 0, 1];

struct Asking {
    forward_auth: ForwardAuth<Memory<ManualClock>>,
    clock: ManualClock,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Asking {
    /// By the policies of this configuration.
    fn under(config: &str) -> Self {
        let policies = file::read("tidegate.toml", config, Format::Toml).unwrap().policies;
        let (clock, notices) = (ManualClock::new(), Arc::new(Mutex::new(Vec::new())));
        let gate = Gate::new(policies, Memory::new(TableOptions::with_keys(4096), clock.clone()));
        let (time, heard) = (clock.clone(), Arc::clone(&notices));
        let notice = Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
        let in_force = Observed::new(gate, Arc::new(move || time.now()), Arc::new(Metrics::new(&[])), None, notice);
        Self { forward_auth: ForwardAuth::new(&in_force, Dialects::default()), clock, notices }
    }

    async fn ask(&self, method: Method, target: &str, fields: &[(&str, &str)]) -> Response<Bytes> {
        assert!(ForwardAuth::<Memory<ManualClock>>::is_at(target.split('?').next().unwrap()));
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.extension(Peer::Ip(ASKER.into())).body(()).unwrap();
        let (head, body) = self.forward_auth.answer(request).await.into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    /// The status that a request gets which is described by these fields.
    async fn status(&self, fields: &[(&str, &str)]) -> u16 {
        self.ask(Method::GET, "/v1/forward-auth", fields).await.status().as_u16()
    }
}

fn field<'a>(answer: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    answer.headers().get(name).map(|value| value.to_str().unwrap())
}

fn json(answer: &Response<Bytes>) -> serde_json::Value {
    serde_json::from_slice(answer.body()).unwrap()
}

const BY_CLIENT: &str = r#"
[[policies]]
name = "api"
limits = "3/min"
"#;

#[tokio::test]
async fn what_passes_is_200_with_the_fields_and_the_rest_a_429_with_all_that_the_proxy_would_say() {
    let asking = Asking::under(BY_CLIENT);
    let fields = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-uri", "/a")];
    for left in ["r=2", "r=1", "r=0"] {
        let answer = asking.ask(Method::GET, "/v1/forward-auth", &fields).await;
        assert_eq!((answer.status(), answer.body().len()), (StatusCode::OK, 0));
        assert!(field(&answer, "ratelimit").unwrap().contains(left), "{answer:?}");
        assert_eq!(field(&answer, "ratelimit-policy"), Some("\"limit-1\";q=3;w=60"));
    }
    let denied = asking.ask(Method::POST, "/v1/forward-auth", &fields).await;
    assert_eq!((denied.status().as_u16(), field(&denied, "retry-after")), (429, Some("20")));
    assert_eq!(field(&denied, "content-type"), Some("application/problem+json"));
    assert_eq!(field(&denied, "cache-control"), Some("no-store"));
    assert_eq!(json(&denied)["violated-policies"][0], "limit-1");
    asking.clock.advance(Duration::from_secs(20));
    assert_eq!((asking.status(&fields).await, asking.status(&fields).await), (200, 429));
}

#[tokio::test]
async fn a_denial_has_the_status_that_is_asked_for_and_says_which_it_would_have() {
    let asking = Asking::under("[[policies]]\nname = \"closed\"\nlimits = \"0/min\"\n");
    let target = "/v1/forward-auth?deny_status=403";
    let denied = asking.ask(Method::GET, target, &[("x-forwarded-for", "203.0.113.7")]).await;
    assert_eq!((denied.status().as_u16(), field(&denied, "tidegate-status")), (403, Some("429")));
    let problem: serde_json::Value = serde_json::from_str(field(&denied, "tidegate-problem").unwrap()).unwrap();
    assert_eq!((&problem, problem["status"].as_u64()), (&json(&denied), Some(429)));
    for wrong in ["200", "399", "500", "", "x", "4294967699"] {
        let refused = asking.ask(Method::GET, &format!("/v1/forward-auth?a=b&deny_status={wrong}"), &[]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{wrong}");
        assert!(json(&refused)["detail"].as_str().unwrap().contains("400 to 499"), "{refused:?}");
    }
    let asking = Asking::under(BY_CLIENT);
    let passed = asking.ask(Method::GET, target, &[("x-forwarded-for", "203.0.113.7")]).await;
    assert_eq!((passed.status().as_u16(), field(&passed, "tidegate-status")), (200, None));
}

const BY_MATCH: &str = r#"
[[policies]]
name = "meant"
limits = "0/min"
match = { host = "api.example.org", method = "POST", path = "/login" }
"#;

#[tokio::test]
async fn the_request_that_is_meant_is_the_one_that_the_fields_describe() {
    let asking = Asking::under(BY_MATCH);
    let meant = [
        ("x-forwarded-method", "POST"),
        ("x-forwarded-host", "api.example.org:443"),
        ("x-forwarded-uri", "/a/../log%69n?next=/"),
    ];
    assert_eq!(asking.status(&meant).await, 429);
    for (i, other) in [(0, "GET"), (1, "example.org"), (2, "/login/x")] {
        let mut fields = meant;
        fields[i].1 = other;
        assert_eq!(asking.status(&fields).await, 200, "{other}");
    }
    // A line that stands before the proxy's is its client's.
    let forged = [&[("x-forwarded-uri", "/x"), ("x-forwarded-method", "GET"), ("x-forwarded-host", "x")], &meant[..]];
    assert_eq!(asking.status(&forged.concat()).await, 429);
    // A whole URL, as it comes from whoever speaks to a proxy as to a forward proxy.
    let whole = [meant[0], meant[1], ("x-forwarded-uri", "http://other.example/login")];
    assert_eq!(asking.status(&whole).await, 429);
}

#[tokio::test]
async fn what_is_not_said_is_taken_from_the_asking_and_the_path_is_the_root() {
    let root = Asking::under(&BY_MATCH.replace("/login", "/"));
    let answer = root.ask(Method::POST, "/v1/forward-auth?x=y", &[("host", "api.example.org")]).await;
    assert_eq!(answer.status().as_u16(), 429);
    let answer = root.ask(Method::GET, "/v1/forward-auth", &[("host", "api.example.org")]).await;
    assert_eq!(answer.status().as_u16(), 200);
}

#[tokio::test]
async fn below_the_path_the_asking_is_the_request_and_the_fields_are_the_clients_own_words() {
    let asking = Asking::under(BY_MATCH);
    let forged = [
        ("host", "api.example.org"),
        ("x-forwarded-method", "GET"),
        ("x-forwarded-host", "x"),
        ("x-forwarded-uri", "nothing"),
    ];
    for target in ["/login", "/login?deny_status=200", "//../login", "/x/%2e%2e/login"] {
        let answer = asking.ask(Method::POST, &format!("/v1/forward-auth{target}"), &forged).await;
        assert_eq!(answer.status().as_u16(), 429, "{target}");
    }
    assert_eq!(asking.ask(Method::POST, "/v1/forward-auth/", &forged).await.status().as_u16(), 200);
    assert!(!ForwardAuth::<Memory<ManualClock>>::is_at("/v1/forward-authority"));
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_and_named() {
    let asking = Asking::under(BY_CLIENT);
    for (name, value) in [
        ("X-Forwarded-Method", "G T"),
        ("X-Forwarded-Method", ""),
        ("X-Forwarded-Host", "a b"),
        ("X-Forwarded-Host", "user@host"),
        ("X-Forwarded-Host", ""),
        ("X-Forwarded-Uri", "login"),
        ("X-Forwarded-Uri", ""),
        ("X-Forwarded-For", "unknown"),
        ("X-Forwarded-For", "203.0.113.7, 10.0.0"),
    ] {
        let refused = asking.ask(Method::GET, "/v1/forward-auth", &[(name, value)]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{name}: {value}");
        assert_eq!(field(&refused, "content-type"), Some("application/problem+json"));
        assert!(json(&refused)["detail"].as_str().unwrap().contains(name), "{refused:?}");
    }
}

#[tokio::test]
async fn that_nothing_is_limited_is_noticed_once() {
    let asking = Asking::under("");
    for _ in 0..2 {
        assert_eq!(asking.status(&[("x-forwarded-for", "203.0.113.7")]).await, 200);
    }
    let notices = asking.notices.lock().unwrap();
    assert!(notices.len() == 1 && notices[0].contains("no policies"), "{notices:?}");
}

#[tokio::test]
async fn br_128_preflights_are_exempt_and_plain_options_are_not() {
    let asking = Asking::under(&BY_CLIENT.replace("3/min", "4/min"));
    let preflight = [
        ("x-forwarded-method", "OPTIONS"),
        ("origin", "https://app.example"),
        ("access-control-request-method", "GET"),
    ];
    for left in ["r=3", "r=2", "r=1", "r=0"] {
        assert_eq!(asking.status(&preflight).await, 200);
        let answer = asking.ask(Method::GET, "/v1/forward-auth", &[]).await;
        assert!(field(&answer, "ratelimit").unwrap().contains(left), "{answer:?}");
    }
    for _ in 0..5 {
        assert_eq!(asking.status(&preflight[..1]).await, 429);
    }
}

#[tokio::test]
async fn br_130_exempt_paths_are_those_of_the_request_that_is_meant() {
    let asking =
        Asking::under(&format!("{}exempt = {{ paths = [\"/healthz\"] }}\n", BY_CLIENT.replace("3/min", "1/day")));
    assert_eq!(asking.status(&[("x-forwarded-uri", "/api")]).await, 200);
    for (target, status) in [
        ("/healthz", 200),
        ("/healthz?x=1", 200),
        ("/HEALTHZ", 429),
        ("/healthz/../api", 429),
        ("/healthz/%2e%2e/api", 429),
    ] {
        assert_eq!(asking.status(&[("x-forwarded-uri", target)]).await, status, "{target}");
        let below = asking.ask(Method::GET, &format!("/v1/forward-auth{target}"), &[]).await;
        assert_eq!(below.status().as_u16(), status, "below, {target}");
    }
}

#[tokio::test]
async fn br_141_every_policy_that_matches_applies_unless_one_is_final() {
    let p1 = "[[policies]]\nname = \"p1\"\nlimits = \"100/2s\"\nmatch = { path = \"/p1\" }\n";
    let default = "[[policies]]\nname = \"default\"\nlimits = \"1/s\"\n";
    for (config, p1_passes, other_passes) in
        [(format!("{default}{p1}"), 1, 0), (format!("{p1}final = true\n{default}"), 50, 1)]
    {
        let asking = Asking::under(&config);
        let mut passed = [0, 0];
        for (i, (target, count)) in [("/p1", 50), ("/other", 2)].into_iter().enumerate() {
            for _ in 0..count {
                let status = asking.status(&[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-uri", target)]).await;
                passed[i] += u32::from(status == 200);
            }
        }
        assert_eq!(passed, [p1_passes, other_passes], "{config}");
    }
}

#[tokio::test]
async fn keys_are_those_of_the_request_and_what_belongs_to_the_asking_is_none() {
    let by = |key: &str| {
        Asking::under(&BY_CLIENT.replace("limits", &format!("key = \"{key}\"\non_missing = \"skip\"\nlimits")))
    };
    let asking = by("header:x-api-key");
    for key in ["A", "B"] {
        for _ in 0..3 {
            assert_eq!(asking.status(&[("x-api-key", key)]).await, 200);
        }
        assert_eq!(asking.status(&[("x-api-key", key)]).await, 429);
    }
    let asking = by("cookie:sid");
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(asking.status(&[("cookie", "a=b; sid=1")]).await);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    // A key that is never there is skipped each time.
    for of_the_asking in ["content-length", "x-forwarded-uri", "connection", "upgrade"] {
        let asking = by(&format!("header:{of_the_asking}"));
        for _ in 0..5 {
            let fields =
                [("content-length", "0"), ("x-forwarded-uri", "/"), ("connection", "upgrade"), ("upgrade", "x")];
            assert_eq!(asking.status(&fields).await, 200, "{of_the_asking}");
        }
    }
}

#[tokio::test]
async fn a_denied_grpc_call_has_the_status_of_any_denial() {
    let asking = Asking::under(&BY_CLIENT.replace("3/min", "0/min"));
    let fields =
        [("content-type", "application/grpc"), ("te", "trailers"), ("x-forwarded-uri", "/greeter.Greeter/Hello")];
    assert_eq!(asking.status(&fields).await, 429);
}

#[tokio::test]
async fn shadow_denies_nothing_and_a_penalty_holds_back() {
    let asking = Asking::under(&format!("{}mode = \"shadow\"\n", BY_CLIENT.replace("3/min", "0/min")));
    assert_eq!(asking.status(&[]).await, 200);
    let penalty = "penalty = { after = \"2/min\", hold = \"10min\" }\n";
    let asking = Asking::under(&format!("{}{penalty}", BY_CLIENT.replace("3/min", "60/min burst 1")));
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(asking.status(&[("x-forwarded-for", "203.0.113.7")]).await);
    }
    asking.clock.advance(Duration::from_secs(5));
    let held = asking.ask(Method::GET, "/v1/forward-auth", &[("x-forwarded-for", "203.0.113.7")]).await;
    assert_eq!((statuses, held.status().as_u16()), (vec![200, 429, 429, 429], 429));
    assert!(json(&held)["type"].as_str().unwrap().ends_with("abnormal-usage-detected"), "{held:?}");
}
