//! Header fields that tell of limits, for callers who ask for them.

use serde_json::{Value, json};
use tidegate::Mode;
use tidegate::policy::Policy;
use tidegate_server::Callers;

use crate::stage::{Reply, Stage};

const NAMES: [&str; 3] = ["ratelimit-policy", "ratelimit", "retry-after"];

fn fields(reply: &Reply) -> [Option<&str>; 3] {
    NAMES.map(|name| reply.field(name))
}

fn charge(name: &str, limit: &str) -> Value {
    json!({ "name": name, "limit": limit, "key": "ann" })
}

#[test]
fn they_are_there_if_they_are_asked_for() {
    let stage = Stage::plain();
    let call = json!({ "charges": [charge("a", "2/min")] });
    for target in ["/v1/check", "/v1/check?fields=false"] {
        assert_eq!(fields(&stage.post(target, &call)), [None; 3], "{target}");
    }
    assert_eq!(fields(&stage.post("/v1/check?status=429", &call)), [None, None, Some("30")]);
    assert!(stage.post("/v1/check?fields=true", &call).field("ratelimit").is_some());
}

#[test]
fn they_say_what_the_body_says() {
    let stage = Stage::plain();
    let shadow = json!({ "name": "s", "limit": "1/min", "key": "ann", "shadow": true });
    let call = json!({ "charges":
        [charge("free", "unlimited"), shadow, charge("day", "1000/day"), charge("minute", "2/min")] });
    let policy = Some("\"day\";q=1000;w=86400, \"minute\";q=2;w=60");
    for (target, left) in [("/v1/check?fields=true", "r=1;t=30"), ("/v1/reserve?status=429&fields=true", "r=0;t=30")] {
        let reply = stage.post(target, &call);
        assert_eq!((reply.status, &reply.body["limit"]), (200, &json!("minute")), "{}", reply.body);
        assert_eq!(fields(&reply), [policy, Some(&*format!("\"minute\";{left}")), None]);
    }
    let (denied, told) = (Some("\"minute\";r=0;t=30"), stage.post("/v1/check?fields=true&status=429", &call));
    assert_eq!((told.status, fields(&told)), (429, [policy, denied, Some("30")]));
    // The call is answered, so its status is 200, and nobody has to come back.
    let answered = stage.post("/v1/check?fields=true", &call);
    assert_eq!((answered.status, fields(&answered)), (200, [policy, denied, None]));
}

#[test]
fn there_are_none_where_nothing_limits() {
    let stage = Stage::plain();
    let unlimited = json!({ "charges": [charge("free", "unlimited")] });
    assert_eq!(fields(&stage.post("/v1/check?fields=true", &unlimited)), [None; 3]);
    assert_eq!(fields(&stage.post("/v1/check?fields=true", &json!({ "request": {} }))), [None; 3]);
}

#[test]
fn limits_of_policies_are_called_as_in_the_proxy() {
    let policy = |name: &str, limit: &str| {
        Policy::new(name, "global".parse().unwrap()).with_limit("l", limit.parse().unwrap(), Mode::Enforce)
    };
    let call = json!({ "request": { "client": "192.0.2.7" } });
    for (policies, expect) in [
        (vec![policy("p", "2/min")], ["\"l\";q=2;w=60", "\"l\";r=1;t=30"]),
        (vec![policy("p", "2/min"), policy("q", "9/h")], ["\"p/l\";q=2;w=60, \"q/l\";q=9;w=3600", "\"p/l\";r=1;t=30"]),
    ] {
        let reply = Stage::new(policies, Callers::Local).post("/v1/check?fields=true", &call);
        assert_eq!(fields(&reply)[..2], expect.map(Some));
    }
}

#[test]
fn a_parameter_that_says_neither_is_refused() {
    let stage = Stage::plain();
    let call = json!({ "charges": [charge("a", "2/min")] });
    let reply = stage.post("/v1/check?fields=yes", &call);
    assert_eq!(reply.detail(400), "`fields`: there are fields, or not: true or false");
}
