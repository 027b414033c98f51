//! Calls that are wrong are refused, and told what is wrong.

use serde_json::json;

use crate::stage::{Reply, Stage};

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn a_body_that_is_wrong_says_which_field_and_where() {
    let stage = Stage::plain();
    for (body, detail, pointer) in [
        ("", "the body, at line 1, column 1: there is nothing here; expected JSON", ""),
        (
            "{\n \"charge\": []}",
            "the body, at line 2, column 2: there is no field `charge` in a check; did you mean `charges`?",
            "",
        ),
        (
            r#"{"charges": [{"limit": "60", "key": "a"}]}"#,
            "`charges.0.limit`, at line 1, column 24: `60`: a count needs a period; write `60/s` or `60/min`",
            "/charges/0/limit",
        ),
        (
            r#"{"charges": [{"limit": "6/s", "key": "a", "cost": 1.5}]}"#,
            "`charges.0.cost`, at line 1, column 51: expected a whole number of tokens, not `1.5`",
            "/charges/0/cost",
        ),
        ("{\"peek\": true, \"peek\": true}", "the body, at line 1, column 16: `peek` is there twice", ""),
        (
            "{\"peek\": truth}",
            "`peek`, at line 1, column 10: expected true or false, not something that is no JSON",
            "/peek",
        ),
    ] {
        let reply = stage.call("POST", "/v1/check", JSON, body.as_bytes());
        assert_eq!((reply.detail(400), reply.body["pointer"].as_str()), (detail, Some(pointer)), "{body}");
    }
    assert!(stage.call("POST", "/v1/check", JSON, b"{\"peek\": \"\xff\"}").detail(400).contains("byte 10"));
}

#[test]
fn charges_that_contradict_each_other_are_a_conflict() {
    let stage = Stage::plain();
    let body = json!({ "charges": [{ "limit": "5/min", "key": "a" }, { "limit": "50/day", "key": "a" }] });
    let reply = stage.post("/v1/check", &body);
    assert!(reply.detail(409).contains("give each limit a `name`"));
    assert_eq!(reply.body["pointer"], "/charges/1");
    assert_eq!(stage.take("5/min", "a", 0)["remaining"], 5);
}

#[test]
fn br_038_a_limit_that_cannot_be_exact_is_refused_by_name() {
    let stage = Stage::plain();
    for (limit, why) in [
        ("9999999999/s", "the rate is above the maximum"),
        ("1/min burst 99999999999", "the burst is above the maximum"),
    ] {
        let reply = stage.post("/v1/check", &json!({ "charges": [{ "limit": limit, "key": "a" }] }));
        assert!(reply.detail(400).contains(why), "{}", reply.body);
    }
}

#[test]
fn each_path_takes_its_methods_and_its_parameters() {
    let stage = Stage::plain();
    for (target, allow) in [
        ("/v1/check", "POST"),
        ("/v1/settle", "POST"),
        ("/v1/keys/a?key=k", "GET, HEAD, DELETE"),
        ("/json", "POST"),
        ("/health", "GET, HEAD"),
        ("/check", "POST"),
        ("/limits/ns", "GET, HEAD"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"] {
            if !allow.contains(method) {
                let reply = stage.call(method, target, "", b"");
                assert_eq!(
                    (reply.field("allow"), reply.detail(405)),
                    (Some(allow), format!("this takes {allow}").as_str())
                );
            }
        }
    }
    assert!(stage.call("GET", "/", "", b"").detail(404).starts_with("there are /v1/forward-auth, "));
    let reply = stage.post("/v1/check?stat=429", &json!({}));
    assert_eq!(reply.detail(400), "`stat`: there is no such parameter; there are `status`, `fields`");
    assert_eq!(stage.call("GET", "/health", "", b"").field("content-type"), Some("text/plain; charset=utf-8"));
}

#[test]
fn a_body_says_that_it_is_json_and_is_bounded() {
    let stage = Stage::plain();
    let body = br#"{"charges":[{"limit":"9/s","key":"k"}]}"#;
    for fields in ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"] {
        assert!(stage.call("POST", "/v1/check", fields, body).detail(415).contains("Content-Type: application/json"));
    }
    assert_eq!(stage.call("POST", "/v1/check", "content-type: Application/JSON; charset=utf-8\r\n", body).status, 200);
    let long = [body.as_slice(), &[b' '; 64 * 1024]].concat();
    assert!(stage.call("POST", "/v1/check", JSON, &long).detail(413).contains("65536"));
    let fits = [body.as_slice(), &vec![b' '; 64 * 1024 - body.len()]].concat();
    assert_eq!(stage.call("POST", "/v1/check", JSON, &fits).status, 200);
    let chunks = |size: usize, count: usize| {
        let chunk = [format!("{size:x}\r\n").as_bytes(), &vec![b' '; size], b"\r\n"].concat().repeat(count);
        let head = format!(
            "POST /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
        );
        Reply::read(&stage.say(&[head.as_bytes(), &chunk, b"27\r\n", body, b"\r\n0\r\n\r\n"].concat()))
    };
    assert_eq!(chunks(1, 100).status, 200, "in pieces");
    chunks(1_000, 100).detail(413);
}

/// The reference service takes any body; what a browser sends of a page's own accord has an Origin, and no type of JSON.
#[test]
fn a_web_page_does_not_charge_by_the_call_that_says_nothing_of_its_body() {
    let stage = Stage::plain();
    let body = br#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"limit":{"requestsPerUnit":1,"unit":"DAY"}}]}"#;
    let status = |fields: &str| stage.call("POST", "/json", fields, body).status;
    for fields in ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"] {
        assert_eq!(status(&format!("origin: https://evil.example\r\n{fields}")), 415);
    }
    assert_eq!(status("content-type: application/x-www-form-urlencoded\r\n"), 200);
    assert_eq!(status(&format!("origin: https://a.example\r\n{JSON}")), 429);
}

#[test]
fn deep_and_wide_bodies_end_soon() {
    let stage = Stage::plain();
    let deep = "[".repeat(60_000);
    assert!(
        stage.call("POST", "/v1/check", JSON, deep.as_bytes()).detail(400).contains("expected a check, not a list")
    );
    let charges = vec![json!({ "limit": "1/s", "key": "k" }); 17];
    assert!(stage.post("/v1/check", &json!({ "charges": charges })).detail(400).contains("at most 16 charges"));
}
