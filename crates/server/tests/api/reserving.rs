//! Reservations, which no server remembers.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::Mode;
use tidegate::policy::Policy;
use tidegate_server::{AdminToken, Callers};

use crate::stage::Stage;

/// Reserves, and gives the decision and the token.
#[track_caller]
fn reserve(stage: &Stage, body: &Value) -> (Value, Value) {
    let reply = stage.post("/v1/reserve", body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    (reply.body.clone(), reply.body["reservation"].clone())
}

#[track_caller]
fn settle(stage: &Stage, token: &Value, cost: u64) -> bool {
    let reply = stage.post("/v1/settle", &json!({ "reservation": token, "cost": cost }));
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["settled"].as_bool().unwrap()
}

fn left(stage: &Stage) -> u64 {
    stage.take("100/day", "a", 0)["remaining"].as_u64().unwrap()
}

#[test]
fn what_was_too_much_is_given_back_once_and_what_was_too_little_is_owed() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "limit": "100/day", "key": "a", "cost": 60 }] });
    let (decision, token) = reserve(&stage, &body);
    assert_eq!((&decision["allowed"], &decision["remaining"]), (&json!(true), &json!(40)));
    let (denied, none) = reserve(&stage, &body);
    assert_eq!((&denied["allowed"], none), (&json!(false), Value::Null));
    assert!(settle(&stage, &token, 10));
    assert_eq!(left(&stage), 90);
    assert!(!settle(&stage, &token, 10), "repeating it changes nothing");
    assert_eq!(left(&stage), 90);
    let (_, token) = reserve(&stage, &body);
    assert!(settle(&stage, &token, 95));
    assert_eq!(left(&stage), 0, "it owes five");
}

#[test]
fn a_reservation_is_over_some_day_and_stays_spent() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "limit": "100/year", "key": "a", "cost": 60 }], "open_for_s": 10 });
    let (_, token) = reserve(&stage, &body);
    stage.advance(Duration::from_secs(11));
    assert!(!settle(&stage, &token, 0));
    assert_eq!(stage.take("100/year", "a", 0)["remaining"], 40);
}

#[test]
fn all_that_was_charged_is_settled_and_nothing_else() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "name": "m", "limit": "10/min", "key": "a", "cost": 4 },
                                   { "name": "d", "limit": "50/day", "key": ["a"], "cost": 4, "algorithm": "sliding-log" },
                                   { "name": "s", "limit": "2/day", "key": "a", "cost": 4, "shadow": true }] });
    let (_, token) = reserve(&stage, &body);
    assert!(settle(&stage, &token, 1));
    let looked = stage.check(&json!({ "charges": body["charges"], "peek": true }));
    let remaining: Vec<_> = looked["limits"].as_array().unwrap().iter().map(|limit| &limit["remaining"]).collect();
    assert_eq!(remaining, [9, 49, 2]);
    let (decision, token) = reserve(&stage, &json!({ "charges": [{ "limit": "unlimited", "key": "a" }] }));
    assert_eq!((&decision["allowed"], token), (&json!(true), Value::Null), "there is nothing to settle");
}

#[test]
fn a_token_that_nobody_here_wrote_is_not_settled() {
    let (stage, other) = (Stage::plain(), Stage::plain());
    let body = json!({ "charges": [{ "limit": "100/day", "key": "a", "cost": 60 }] });
    let (_, token) = reserve(&stage, &body);
    let text = token.as_str().unwrap();
    let forged = format!("{}{}", &text[..text.len() - 1], if text.ends_with('0') { '1' } else { '0' });
    for token in [json!(forged), json!(""), json!(&text[2..]), json!("\u{e9}")] {
        let reply = stage.post("/v1/settle", &json!({ "reservation": token, "cost": 0 }));
        assert!(reply.detail(404).contains("no reservation that was made here"));
    }
    let reply = other.post("/v1/settle", &json!({ "reservation": token, "cost": 0 }));
    reply.detail(404);
    assert_eq!(left(&stage), 40);
    let shared = || Stage::new(Vec::new(), Callers::WithToken(AdminToken::new("0123456789abcdef").unwrap()));
    let (one, other) = (shared(), shared());
    let fields = "authorization: Bearer 0123456789abcdef\r\ncontent-type: application/json\r\n";
    let reserved = one.call("POST", "/v1/reserve", fields, body.to_string().as_bytes());
    let settling = json!({ "reservation": reserved.body["reservation"], "cost": 0 });
    let reply = other.call("POST", "/v1/settle", fields, settling.to_string().as_bytes());
    assert_eq!(
        (reply.status, reply.body),
        (200, json!({ "settled": false })),
        "it is read, and not open in that store"
    );
}

#[test]
fn what_policies_charge_is_settled_too() {
    let policy = Policy::new("models", "claim:org".parse().unwrap()).with_limit(
        "day",
        "100/day".parse().unwrap(),
        Mode::Enforce,
    );
    let stage = Stage::new(vec![policy], Callers::Local);
    let request = json!({ "claims": { "org": "acme" } });
    let (decision, token) = reserve(&stage, &json!({ "request": request, "cost": 60 }));
    assert_eq!(
        (&decision["policy"], &decision["limit"], &decision["remaining"]),
        (&json!("models"), &json!("day"), &json!(40))
    );
    assert!(settle(&stage, &token, 5));
    assert!(!settle(&stage, &token, 5));
    assert_eq!(stage.check(&json!({ "request": request, "peek": true }))["remaining"], 95);
    let series = "tidegate_decisions_total{policy=\"models\",limit=\"day\",mode=\"enforce\",outcome=\"allowed\"}";
    assert_eq!(stage.metric(series), 1);
}
