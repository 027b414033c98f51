//! What an operator sees and does of limits that were written for other services.

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::http::{Connection, Reply};
use support::program::{Proxy, asked_over_http};
use support::redis::Redis;
use tempfile::TempDir;

const RULES: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: tenant
    descriptors:
      - key: user
        rate_limit: {unit: year, requests_per_unit: 5}
  - key: path
    value: /all
    rate_limit: {unit: year, requests_per_unit: 1}
    shadow_mode: true
";

const LIMITS: &str = "
- {namespace: shop, max_value: 2, seconds: 31536000, name: orders, variables: [user]}
- {namespace: shop, max_value: 9, seconds: 31536000, name: all, variables: []}
";

/// A server by a file of this text, in a folder of its own.
fn served(flag: &str, text: &str, more: &[&str]) -> (Proxy, TempDir) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file.yaml"), text).unwrap();
    let mut command = asked_over_http(&[flag, "file.yaml", "--denied-keys", "10"]);
    command.args(more).current_dir(folder.path());
    (Proxy::started(command), folder)
}

fn sent(server: std::net::SocketAddr, method: &str, target: &str, body: &str) -> Reply {
    let mut connection = Connection::open(server);
    let head = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n");
    connection.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    connection.reply(method).unwrap()
}

/// The status of a call of the rate limit service with one descriptor.
fn call(server: &Proxy, entries: &[(&str, &str)]) -> u16 {
    let entries: Vec<_> = entries.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let call = json!({ "domain": "edge", "descriptors": [{ "entries": entries }] });
    sent(server.address, "POST", "/json", &call.to_string()).status
}

/// The status of a call of limitador's.
fn order(server: &Proxy, user: &str) -> u16 {
    let call = json!({ "namespace": "shop", "values": { "user": user } });
    sent(server.address, "POST", "/check_and_report", &call.to_string()).status
}

/// What an operator is told.
#[track_caller]
fn operated(server: &Proxy, method: &str, target: &str, body: &str) -> Value {
    let reply = sent(server.admin, method, target, body);
    assert_eq!(reply.status, 200, "{method} {target}: {}", reply.text());
    reply.json()
}

/// Why an operator is refused.
#[track_caller]
fn refused(server: &Proxy, method: &str, target: &str, status: u16) -> String {
    let body = if method == "PUT" { r#"{"limits": "5/min"}"# } else { "" };
    let reply = sent(server.admin, method, target, body);
    assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
    reply.json()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn the_key_of_a_rule_is_listed_when_it_is_denied_and_can_be_looked_at_granted_and_reset() {
    let redis = Redis::start(&[]);
    for store in [&[][..], &["--store", &redis.url(), "--store-deadline", "2s"]] {
        let (server, _folder) = served("--ratelimit-config", RULES, store);
        let ann = || call(&server, &[("user", "ann")]);
        assert_eq!([ann(), ann(), ann(), ann()], [200, 200, 429, 429]);
        let denied = operated(&server, "GET", "/v1/denied", "")["denied"][0].clone();
        let shown = ["policy", "limit", "mode", "key", "count"].map(|name| denied[name].clone());
        assert_eq!(json!(shown), json!(["edge", "user", "enforce", "\"ann\"", 2]), "{store:?}");

        let key = "/v1/keys?policy=edge&limit=user&key=ann";
        let look = operated(&server, "GET", key, "");
        let seen = |told: &Value| json!([told["limits"][0]["name"], told["limits"][0]["remaining"], told["policy"]]);
        assert_eq!(seen(&look), json!(["user", 0, "edge"]));
        let bytes = denied["bytes"].as_str().unwrap();
        let same = operated(&server, "GET", &format!("/v1/keys?policy=edge&limit=user&bytes={bytes}"), "");
        assert_eq!((&same["key"], &same["hash"]), (&look["key"], &denied["hash"]));
        let grant = operated(&server, "POST", "/v1/keys/grant?policy=edge&limit=user&key=ann", r#"{"tokens": 1}"#);
        assert_eq!(seen(&grant), json!(["user", 1, "edge"]));
        assert_eq!([ann(), ann()], [200, 429]);
        assert_eq!(seen(&operated(&server, "DELETE", key, "")), json!(["user", 2, "edge"]));
        assert_eq!([ann(), ann(), ann()], [200, 200, 429]);

        // Each rule has keys of its own.
        assert_eq!(call(&server, &[("tenant", "acme"), ("user", "ann")]), 200);
        let two = operated(&server, "GET", "/v1/keys?policy=edge&limit=tenant.user&key=acme&key=ann", "");
        assert_eq!(seen(&two), json!(["tenant.user", 4, "edge"]));
        assert_eq!([call(&server, &[("path", "/all")]), call(&server, &[("path", "/all")])], [200, 200]);
        let all = operated(&server, "GET", "/v1/keys?policy=edge&limit=path_/all", "");
        assert_eq!((&all["limits"][0]["mode"], &all["limits"][0]["remaining"]), (&json!("shadow"), &json!(0)));
    }
}

#[test]
fn what_cannot_be_done_to_a_rule_is_refused_with_the_reason() {
    let (server, _folder) = served("--ratelimit-config", RULES, &[]);
    let why = refused(&server, "GET", "/v1/keys?policy=edge&key=ann", 400);
    assert!(why.contains("add `limit=NAME`: `user`, `tenant.user`, `path_/all`"), "{why}");
    let why = refused(&server, "DELETE", "/v1/keys?policy=edge&limit=users&key=ann", 404);
    assert!(why.contains("`edge` has no limit `users`; there are `user`, "), "{why}");
    for (query, expect) in [
        ("limit=user", "`user`: a key of it is named by one `key=VALUE`"),
        ("limit=user&key=a&key=b", "`user`: a key of it is named by one `key=VALUE`"),
        ("limit=user&bytes=00", "`user`: a key of it is named by one `key=VALUE`, or by `bytes=`"),
        ("limit=tenant.user&key=a", "`tenant.user`: a key of it is named by 2 values in their order"),
        ("limit=path_/all&key=a", "`path_/all`: all who meet it share one bucket"),
    ] {
        let why = refused(&server, "GET", &format!("/v1/keys?policy=edge&{query}"), 400);
        assert!(why.starts_with(expect), "{query}: {why}");
    }
    for method in ["PUT", "DELETE"] {
        let why = refused(&server, method, "/v1/keys/override?policy=edge&limit=user&key=ann", 409);
        assert!(why.contains("were written for another service"), "{why}");
    }
    assert_eq!(operated(&server, "GET", "/v1/overrides", "")["overrides"], json!([]));
    let why = refused(&server, "GET", "/v1/keys?policy=other&key=a", 404);
    assert!(why.contains("there is no policy `other`"), "{why}");
}

#[test]
fn br_076_the_key_of_a_limit_of_limitador_is_seen_and_reset_also_after_the_limit_was_raised() {
    let (server, folder) = served("--limitador-limits", LIMITS, &[]);
    assert_eq!([order(&server, "ann"), order(&server, "ann"), order(&server, "ann")], [200, 200, 429]);
    let denied = operated(&server, "GET", "/v1/denied", "")["denied"][0].clone();
    let shown = ["policy", "limit", "key", "count"].map(|name| denied[name].clone());
    assert_eq!(json!(shown), json!(["limitador:shop", "orders", "\"ann\"", 1]));

    fs::write(folder.path().join("file.yaml"), LIMITS.replace("max_value: 2", "max_value: 8")).unwrap();
    server.wait_for("file.yaml was read anew");
    let key = "/v1/keys?policy=limitador:shop&limit=orders&key=ann";
    let look = operated(&server, "GET", key, "")["limits"][0].clone();
    assert_eq!((&look["deficit"], &look["remaining"], &look["burst"]), (&json!(2), &json!(6), &json!(8)));
    assert_eq!(operated(&server, "DELETE", key, "")["limits"][0]["remaining"], 8);
    let all = operated(&server, "GET", "/v1/keys?policy=limitador:shop&limit=all", "");
    assert_eq!(all["limits"][0]["remaining"], 7);
    let why = refused(&server, "PUT", "/v1/keys/override?policy=limitador:shop&limit=orders&key=ann", 409);
    assert!(why.contains("change them in their file"), "{why}");

    let policies = operated(&server, "GET", "/v1/policies", "");
    assert_eq!((&policies["policies"], &policies["imported"][0]["name"]), (&json!([]), &json!("limitador:shop")));
    let limits = &policies["imported"][0]["limits"];
    assert_eq!((&limits[0]["name"], &limits[0]["decisions"]["denied"]), (&json!("orders"), &json!(1)));
    assert_eq!(limits[1]["name"], "all");
}

#[test]
fn a_policy_that_is_called_as_a_domain_keeps_its_keys_to_itself() {
    let folder = TempDir::new().unwrap();
    let policy = "[[policies]]\nname = \"edge\"\nkey = \"claim:tenant\"\non_missing = \"skip\"\n\
                  limits = [{ name = \"per-tenant\", limit = \"3/year\" }]\n";
    let file = folder.path().join("tidegate.toml");
    fs::write(&file, policy).unwrap();
    let (server, _folder) = served("--ratelimit-config", RULES, &["--config", path(&file)]);
    assert_eq!(call(&server, &[("tenant", "acme"), ("user", "ann")]), 200);
    let look = |query: &str| operated(&server, "GET", &format!("/v1/keys?policy=edge&{query}"), "")["limits"].clone();
    assert_eq!((look("key=acme").as_array().unwrap().len(), &look("key=acme")[0]["remaining"]), (1, &json!(2)));
    assert_eq!(look("limit=tenant.user&key=acme&key=ann")[0]["remaining"], 4);
    let given = operated(&server, "PUT", "/v1/keys/override?policy=edge&key=acme", r#"{"limits": "7/year"}"#);
    assert_eq!(given["in_force"], true);
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn while_the_store_is_away_a_rule_that_then_denies_is_said_to_be_why_others_should_be_asked() {
    let redis = Redis::start(&[]);
    let flags = ["--store", &redis.url(), "--on-store-failure", "deny"];
    let (server, _folder) = served("--ratelimit-config", RULES, &flags);
    assert_eq!((call(&server, &[("user", "ann")]), server.admin("/readyz").status), (200, 200));
    drop(redis);
    while call(&server, &[("user", "bob")]) == 200 {}
    let ready = server.admin("/readyz");
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("limit `user` of policy `edge` denies everything without it"), "{}", ready.text());
}

#[test]
fn keys_under_limits_that_calls_bring_are_listed_by_the_names_that_they_were_brought_with() {
    let (server, _folder) = served("--ratelimit-config", RULES, &[]);
    let check =
        json!({ "charges": [{ "limit": "1/365d", "key": "ann", "name": "mails", "algorithm": "fixed-window" }] });
    let brought = json!({ "domain": "edge", "descriptors": [{
        "entries": [{ "key": "mails", "value": "bob" }], "limit": { "requestsPerUnit": 1, "unit": "YEAR" } }] });
    for (target, body, denials) in [("/v1/check", check, 2), ("/json", brought, 1)] {
        (0..=denials).for_each(|_| drop(sent(server.address, "POST", target, &body.to_string())));
    }
    let denied = operated(&server, "GET", "/v1/denied", "");
    let listed: Vec<_> = denied["denied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["policy"], it["limit"], it["mode"], it["key"], it["count"]]))
        .collect();
    assert_eq!(
        listed,
        [json!(["api", "mails", null, "ann", 2]), json!(["envoy", "brought", null, r#""mails" and "bob""#, 1])]
    );
}
