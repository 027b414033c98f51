//! Limits that calls bring.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_server::{AdminToken, Callers};

use crate::stage::Stage;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_decision_says_all_that_a_caller_needs() {
    let stage = Stage::plain();
    let decision = stage.take("2/min", "ann", 1);
    let limit = json!({ "limit": "default", "quota": "2/min", "algorithm": "token-bucket", "mode": "enforce",
                        "allowed": true, "remaining": 1, "reset_after_ms": 30_000 });
    assert_eq!(
        decision,
        json!({ "allowed": true, "limit": "default", "remaining": 1, "reset_after_ms": 30_000, "source": "store",
                "limits": [limit] })
    );
    stage.take("2/min", "ann", 1);
    stage.advance(Duration::from_micros(500));
    let decision = stage.take("2/min", "ann", 1);
    let denied = json!({ "remaining": 0, "retry_after_s": 30, "retry_after_ms": 30_000, "reset_after_ms": 60_000 });
    denied.as_object().unwrap().iter().for_each(|(name, value)| assert_eq!(decision[name], *value, "{name}"));
    assert_eq!((&decision["allowed"], &decision["cause"]), (&json!(false), &json!("limit")));
    assert_eq!(
        stage.metric("tidegate_decisions_total{policy=\"api\",limit=\"check\",mode=\"enforce\",outcome=\"allowed\"}"),
        2
    );
    assert_eq!(
        stage.metric("tidegate_decisions_total{policy=\"api\",limit=\"check\",mode=\"enforce\",outcome=\"denied\"}"),
        1
    );
}

#[test]
fn br_051_waiting_as_long_as_is_said_is_enough_and_less_is_not() {
    let stage = Stage::plain();
    for limit in ["3/s", "7/min", "1/1500ms", "10/15min burst 1"] {
        while stage.take(limit, limit, 1)["allowed"] == true {}
        let denied = stage.take(limit, limit, 1);
        let (ms, s) = (denied["retry_after_ms"].as_u64().unwrap(), denied["retry_after_s"].as_u64().unwrap());
        assert!(s >= 1 && s * 1_000 >= ms && (s - 1) * 1_000 < ms, "{denied}");
        stage.advance(Duration::from_millis(ms - 1));
        assert_eq!(stage.take(limit, limit, 1)["allowed"], false, "{limit}");
        stage.advance(Duration::from_millis(1));
        assert_eq!(stage.take(limit, limit, 1)["allowed"], true, "{limit}");
    }
}

#[test]
fn br_043_what_can_never_pass_says_so_and_has_no_wait() {
    let stage = Stage::plain();
    for (limit, cost) in [("5/min", 6), ("0/min", 1), ("1/s", u64::MAX)] {
        let reply =
            stage.post("/v1/check?status=429", &json!({ "charges": [{ "limit": limit, "key": "k", "cost": cost }] }));
        assert_eq!((reply.status, reply.field("retry-after")), (429, None), "{limit}");
        assert_eq!((&reply.body["never"], &reply.body["retry_after_ms"]), (&json!(true), &Value::Null), "{limit}");
    }
    assert_eq!(stage.take("5/min", "k", 5)["allowed"], true, "a denial took nothing");
}

#[test]
fn br_055_a_denial_is_429_on_request_and_its_wait_is_in_whole_seconds() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "limit": "1/90s", "key": "k" }] });
    assert_eq!(stage.post("/v1/check?status=429", &body).status, 200);
    assert_eq!(stage.post("/v1/check", &body).status, 200);
    assert_eq!(stage.post("/v1/check?status=200", &body).status, 200);
    stage.advance(Duration::from_millis(500));
    let reply = stage.post("/v1/check?status=429", &body);
    assert_eq!((reply.status, reply.field("retry-after")), (429, Some("90")));
    assert_eq!(
        (reply.field("content-type"), reply.field("cache-control")),
        (Some("application/json"), Some("no-store"))
    );
    assert_eq!(reply.body["retry_after_ms"], 89_500);
    let detail = "`status`: a denial has the status 200 or 429";
    assert_eq!(stage.post("/v1/check?status=503", &body).detail(400), detail);
}

#[test]
fn br_139_all_limits_are_charged_or_none_and_the_one_that_binds_is_named() {
    let stage = Stage::plain();
    let both = json!({ "charges": [{ "name": "minute", "limit": "2/min", "key": "a" },
                                   { "name": "day", "limit": "3/day", "key": "a" }] });
    assert_eq!(stage.check(&both)["limit"], "minute");
    stage.check(&both);
    for _ in 0..5 {
        let denied = stage.check(&both);
        assert_eq!((&denied["allowed"], &denied["limit"]), (&json!(false), &json!("minute")));
        assert_eq!((&denied["limits"][1]["allowed"], &denied["limits"][1]["remaining"]), (&json!(true), &json!(1)));
    }
    stage.advance(seconds(60));
    assert_eq!(stage.check(&both)["allowed"], true);
    assert_eq!(stage.check(&both)["limit"], "day", "the one with the longest wait");
}

#[test]
fn limits_in_shadow_are_charged_and_never_deny() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "name": "new", "limit": "1/min", "key": "a", "shadow": true },
                                   { "limit": "unlimited", "key": "a" }, { "name": "old", "limit": "5/min", "key": "a" }] });
    stage.check(&body);
    let decision = stage.check(&body);
    assert_eq!(
        (&decision["allowed"], &decision["limit"], &decision["remaining"]),
        (&json!(true), &json!("old"), &json!(3))
    );
    assert_eq!((&decision["limits"][0]["mode"], &decision["limits"][0]["allowed"]), (&json!("shadow"), &json!(false)));
    assert_eq!(
        decision["limits"][1],
        json!({ "limit": "default", "quota": "unlimited", "mode": "enforce", "allowed": true })
    );
    assert_eq!(
        stage.metric("tidegate_decisions_total{policy=\"api\",limit=\"check\",mode=\"shadow\",outcome=\"denied\"}"),
        1
    );
}

#[test]
fn br_046_a_look_reports_and_changes_nothing() {
    let stage = Stage::plain();
    let look = json!({ "charges": [{ "limit": "3/min", "key": "a", "cost": 3 }], "peek": true });
    for _ in 0..3 {
        assert_eq!((&stage.check(&look)["allowed"], &stage.check(&look)["remaining"]), (&json!(true), &json!(3)));
    }
    assert_eq!(stage.take("3/min", "a", 0)["remaining"], 3);
    assert_eq!(stage.take("3/min", "a", 3)["remaining"], 0);
    assert_eq!(stage.check(&look)["remaining"], 0);
}

#[test]
fn other_numbers_under_one_name_are_a_changed_limit() {
    let stage = Stage::plain();
    stage.take("10/min", "a", 3);
    assert_eq!(stage.take("5/min", "a", 0)["remaining"], 2);
    assert_eq!(stage.take("100/min", "a", 0)["remaining"], 97);
    let named = json!({ "charges": [{ "name": "other", "limit": "10/min", "key": "a", "cost": 0 }] });
    assert_eq!(stage.check(&named)["remaining"], 10);
    let other = json!({ "charges": [{ "limit": "10/min", "key": "a", "cost": 0, "algorithm": "fixed-window" }] });
    assert_eq!(stage.check(&other)["remaining"], 10, "another algorithm is another limit");
}

#[test]
fn one_bucket_can_be_seen_and_made_full_again() {
    let stage = Stage::plain();
    stage.take("10/min", "a/b ..?", 4);
    stage.check(&json!({ "charges": [{ "name": "t", "limit": "10/min", "key": ["acme", ""], "cost": 1 }] }));
    let look = |target: &str| stage.call("GET", target, "", b"").body["remaining"].clone();
    let target = "/v1/keys/default?key=a%2Fb+..%3F&limit=10/min";
    assert_eq!(
        stage.call("GET", target, "", b"").body,
        json!({ "limit": "default", "quota": "10/min", "algorithm": "token-bucket", "burst": 10, "remaining": 6,
                "reset_after_ms": 24_000, "source": "store" })
    );
    assert_eq!(look("/v1/keys/t?key=acme&key=&limit=10%2Fmin"), 9);
    assert_eq!(stage.call("DELETE", "/v1/keys/default?key=a%2Fb+..%3F", "", b"").status, 204);
    assert_eq!((look(target), look("/v1/keys/t?key=acme&key=&limit=10/min")), (json!(10), json!(9)));
    let head = stage.call("HEAD", target, "", b"");
    assert_eq!((head.status, &head.body, head.field("content-length").is_some()), (200, &Value::Null, true));
    for (target, detail) in [
        ("/v1/keys/default?limit=1/s", "`key`: whose bucket? Add `key=KEY`, once for each text of a list"),
        ("/v1/keys/default?key=a", "`limit`: a bucket is seen by its limit; add `limit=60/min`, say"),
        ("/v1/keys/default?key=a&limit=60", "`limit`: `60`: a count needs a period; write `60/s` or `60/min`"),
    ] {
        assert_eq!(stage.call("GET", target, "", b"").detail(400), detail);
    }
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let stage = Stage::new(Vec::new(), Callers::WithToken(AdminToken::new("0123456789abcdef").unwrap()));
    let reply = stage.post("/v1/check", &json!({ "charges": [{ "limit": "1/s", "key": "k" }] }));
    assert!(reply.detail(401).contains("TIDEGATE_HTTP_TOKEN"));
    assert_eq!(reply.field("www-authenticate"), Some("Bearer"));
    let fields = "authorization: Bearer 0123456789abcdef\r\ncontent-type: application/json\r\n";
    assert_eq!(
        stage.call("POST", "/v1/check", fields, b"{\"charges\":[{\"limit\":\"1/s\",\"key\":\"k\"}]}").status,
        200
    );
    assert_eq!(stage.call("DELETE", "/v1/keys/default?key=k", "", b"").status, 401);
    assert_eq!(stage.call("DELETE", "/v1/keys/default?key=k", fields, b"").status, 204);
    assert_eq!(stage.call("GET", "/health", "", b"").status, 200);
    let open = Stage::new(Vec::new(), Callers::Anybody);
    assert!(open.call("DELETE", "/v1/keys/default?key=k", "", b"").detail(403).contains("TIDEGATE_HTTP_TOKEN"));
    assert_eq!(open.take("1/s", "k", 1)["allowed"], true);
}
