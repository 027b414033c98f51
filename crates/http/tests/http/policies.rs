//! Limits by policies.

use std::sync::{Arc, Mutex};

use http::Request;
use tidegate::policy::{Policies, Policy};
use tidegate::{Cause, Gate, ManualClock, Memory, Mode};
use tidegate_http::{ByPolicies, ClientAddress, LimitLayer, OnMissing};
use tower::Layer;

use crate::given::{Body, Hello, Limited, from, get, list, name, send, with};

type Asked = Limited<ByPolicies<Memory<ManualClock>>>;

fn gate(policies: Vec<Policy>) -> Arc<Gate<Memory<ManualClock>>> {
    let policies = Policies::new(ClientAddress::default(), policies).unwrap();
    Arc::new(Gate::new(policies, Memory::new(Default::default(), ManualClock::new())))
}

fn policy(name: &str, key: &str, limits: &[&str]) -> Policy {
    let limits = limits.iter().map(|limit| limit.parse().unwrap());
    Policy::new(name, key.parse().unwrap()).with_limits(limits, Mode::Enforce)
}

fn asked(policies: Vec<Policy>) -> Asked {
    Limited::new(LimitLayer::by_policies(gate(policies)))
}

fn keyed(key: &str) -> Request<Body> {
    with(from("203.0.113.7"), &[("x-api-key", key)])
}

#[test]
fn limits_by_flags_are_shown_by_their_own_names() {
    let asked = asked(vec![policy("default", "header:x-api-key", &["3/min", "10/h"])]);
    let seen = asked.send(keyed("a"));
    assert_eq!(seen.field("ratelimit-policy"), Some(r#""limit-1";q=3;w=60, "limit-2";q=10;w=3600"#));
    assert_eq!(seen.field("ratelimit"), Some(r#""limit-1";r=2;t=20"#));
    assert_eq!(
        [keyed("a"), keyed("a"), keyed("a"), keyed("b")].map(|request| asked.send(request).status.as_u16()),
        [200, 200, 429, 200]
    );
    let denied = asked.send(keyed("a"));
    assert_eq!(
        (denied.field("retry-after"), &denied.json()["violated-policies"]),
        (Some("20"), &serde_json::json!(["limit-1"]))
    );
}

#[test]
fn of_several_policies_the_fields_name_the_policy_too() {
    let asked = asked(vec![policy("user", "header:x-api-key", &["3/min"]), policy("all", "global", &["2/min"])]);
    let seen = asked.send(keyed("a"));
    let names: Vec<_> = list(&seen.headers, "ratelimit-policy").iter().map(name).collect();
    assert_eq!(names, ["user/limit-1", "all/limit-1"]);
    assert_eq!(seen.field("ratelimit"), Some(r#""all/limit-1";r=1;t=30"#));
}

#[test]
fn many_limits_are_decided_in_one_step() {
    let limits: Vec<_> = (1..=10).map(|n| format!("{n}/h")).collect();
    let limits: Vec<_> = limits.iter().rev().map(String::as_str).collect();
    let asked = asked(vec![policy("default", "global", &limits)]);
    let seen = asked.send(get("/"));
    assert_eq!((seen.status.as_u16(), seen.field("ratelimit")), (200, Some(r#""limit-10";r=0;t=3600"#)));
    assert_eq!(list(&seen.headers, "ratelimit-policy").len(), 10);
    assert_eq!(asked.send(get("/")).status, 429);
}

#[test]
fn a_peer_is_needed_only_where_a_key_goes_by_it() {
    let by_header = asked(vec![policy("default", "header:x-api-key", &["3/min"])]);
    assert_eq!(by_header.send(with(get("/"), &[("x-api-key", "a")])).status, 200);
    assert_eq!(by_header.send(get("/")).status, 500, "the client would have to stand in");
    let by_client = asked(vec![policy("default", "client", &["1/min"])]);
    assert_eq!(by_client.send(get("/")).status, 500);
    assert_eq!(
        [from("203.0.113.7"), from("203.0.113.7")].map(|request| by_client.send(request).status.as_u16()),
        [200, 429]
    );
}

#[test]
fn the_host_is_that_of_the_target_or_of_the_field() {
    let asked = asked(vec![policy("default", "header:host", &["1/min"])]);
    let absolute = Request::get("http://a.example/").body(Body::default()).unwrap();
    let relative = with(get("/"), &[("host", "a.example")]);
    assert_eq!([absolute, relative].map(|request| asked.send(request).status.as_u16()), [200, 429]);
}

#[test]
fn shadow_limits_are_seen_by_the_watch_and_by_nobody_else() {
    let trial = "1/min".parse().unwrap();
    let policies = vec![policy("default", "global", &["5/min"]).with_limit("trial", trial, Mode::Shadow)];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sights = Arc::clone(&seen);
    let layer = LimitLayer::by_policies(gate(policies)).watch(move |sight| {
        let decided = sight.charges().map(|(place, charge, decision)| {
            assert_eq!(place.limit.id, charge.limit);
            (place.limit.name.clone(), decision.is_allowed())
        });
        sights.lock().unwrap().push((
            sight.is_matched,
            sight.answer.unwrap().is_allowed(),
            decided.collect::<Vec<_>>(),
        ));
    });
    let asked = Limited::new(layer);
    for _ in 0..2 {
        let answer = asked.send(get("/"));
        assert_eq!(answer.field("ratelimit-policy"), Some(r#""limit-1";q=5;w=60"#));
    }
    let row = |trial| (true, true, vec![("limit-1".to_owned(), true), ("trial".to_owned(), trial)]);
    assert_eq!(*seen.lock().unwrap(), [row(true), row(false)]);
}

#[test]
fn unmatched_unlimited_and_missing_are_seen_too() {
    let sights = |policies: Vec<Policy>| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let layer = LimitLayer::by_policies(gate(policies))
            .watch(move |sight| kept.lock().unwrap().push((sight.is_matched, sight.answer.unwrap().cause)));
        let status = Limited::new(layer).send(get("/")).status.as_u16();
        (status, seen.lock().unwrap().clone())
    };
    assert_eq!(sights(vec![]), (200, vec![(false, None)]));
    assert_eq!(sights(vec![policy("a", "global", &["unlimited"])]), (200, vec![(true, None)]));
    let deny = policy("a", "header:x-api-key", &["1/min"]).with_on_missing(OnMissing::Deny);
    assert_eq!(sights(vec![deny]), (429, vec![(true, Some(Cause::MissingKey))]));
}

#[test]
fn br_141_all_policies_apply_and_what_one_denies_costs_nothing_under_the_others() {
    let asked = asked(vec![policy("default", "client", &["1/s"]), policy("p1", "client", &["100/2s"])]);
    let seen: Vec<_> = (0..50).map(|_| asked.send(from("203.0.113.7"))).collect();
    assert_eq!(seen.iter().filter(|seen| seen.status == 200).count(), 1);
    assert!(seen[1..].iter().all(|seen| seen.field("retry-after") == Some("1")));
}

#[test]
fn br_066_a_limit_in_two_gates_of_one_service_is_charged_once_and_the_others_all_the_same() {
    let shared = || policy("shared", "global", &["10/min"]);
    let outer = gate(vec![shared()]);
    let inner = gate(vec![shared(), policy("own", "global", &["5/min"])]);
    let both =
        LimitLayer::by_policies(outer).layer(LimitLayer::by_policies(Arc::clone(&inner)).layer(Hello::default()));
    let seen = send(both.clone(), get("/"));
    let names: Vec<_> = list(&seen.headers, "ratelimit").iter().map(name).collect();
    assert_eq!(names, ["own/limit-1", "limit-1"]);
    let alone = LimitLayer::by_policies(inner).layer(Hello::default());
    assert_eq!(send(alone, get("/")).field("ratelimit"), Some(r#""own/limit-1";r=3;t=12"#));
}
