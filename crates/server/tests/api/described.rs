//! Requests that somebody describes, decided on by policies.

use serde_json::json;
use tidegate::Mode;
use tidegate::policy::Policy;
use tidegate_server::Callers;

use crate::stage::Stage;

fn policy(name: &str, key: &str, limit: &str) -> Policy {
    Policy::new(name, key.parse().unwrap()).with_limit("l", limit.parse().unwrap(), Mode::Enforce)
}

#[test]
fn policies_decide_as_on_any_request() {
    let stage = Stage::new(
        vec![policy("by-key", "header:x-api-key", "2/min"), policy("by-plan", "claim:plan", "9/min")],
        Callers::Local,
    );
    let request = |key: &str| json!({ "request": { "client": "192.0.2.7", "headers": { "X-Api-Key": key }, "claims": { "plan": "gold" } } });
    let decision = stage.check(&request("a"));
    assert_eq!((&decision["allowed"], &decision["matched"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&decision["policy"], &decision["limit"], &decision["remaining"]),
        (&json!("by-key"), &json!("l"), &json!(1))
    );
    assert_eq!((&decision["limits"][1]["policy"], &decision["limits"][1]["remaining"]), (&json!("by-plan"), &json!(8)));
    stage.check(&request("a"));
    let denied = stage.check(&request("a"));
    assert_eq!(
        (&denied["allowed"], &denied["cause"], &denied["retry_after_s"]),
        (&json!(false), &json!("limit"), &json!(30))
    );
    assert_eq!(stage.check(&request("b"))["allowed"], true);
    assert_eq!(stage.post("/v1/check?status=429", &request("a")).status, 429);
}

#[test]
fn a_cost_that_is_brought_stands_in_place_of_the_policys() {
    let stage = Stage::new(vec![policy("p", "global", "10/min").with_cost(tidegate::Cost::new(2))], Callers::Local);
    assert_eq!(stage.check(&json!({ "request": {} }))["remaining"], 8);
    assert_eq!(stage.check(&json!({ "request": {}, "cost": 5 }))["remaining"], 3);
    assert_eq!(stage.check(&json!({ "request": {}, "cost": 11 }))["never"], true);
    assert_eq!(stage.check(&json!({ "request": {}, "cost": 0 }))["remaining"], 3);
    assert_eq!(stage.check(&json!({ "request": {}, "cost": 5, "peek": true }))["remaining"], 3);
}

#[test]
fn a_client_that_policies_go_by_must_be_said() {
    let stage = Stage::new(vec![policy("p", "client", "1/min")], Callers::Local);
    let reply = stage.post("/v1/check", &json!({ "request": { "path": "/a" } }));
    assert!(reply.detail(409).contains("add `client`"));
    let of = |client: &str| stage.check(&json!({ "request": { "client": client } }))["allowed"].clone();
    assert_eq!([of("192.0.2.7"), of("192.0.2.7"), of("::ffff:192.0.2.7"), of("192.0.2.8")], [true, false, false, true]);
}

#[test]
fn what_no_policy_matches_passes_and_says_so() {
    let stage = Stage::plain();
    let decision = stage.check(&json!({ "request": { "client": "192.0.2.7" } }));
    assert_eq!(decision, json!({ "allowed": true, "source": "store", "matched": false, "limits": [] }));
    assert_eq!(stage.metric("tidegate_requests_total{decision=\"unmatched\"}"), 1);
}
