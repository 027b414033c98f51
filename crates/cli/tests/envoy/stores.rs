//! The rate limit service over a store that several servers share, and while that is away.

use tempfile::TempDir;

use crate::proxy::Envoy;
use crate::python;
use crate::server::{Asked, written};
use crate::support::http::Connection;
use crate::support::nginx::Nginx;
use crate::support::redis::Redis;

const RULES: &str = "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: day, requests_per_unit: 10}}\n";
const CALL: &str = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"a"}]}]}"#;

#[test]
fn several_servers_count_together() {
    let (folder, redis) = (TempDir::new().unwrap(), Redis::start(&[]));
    let rules = written(folder.path(), "d.yaml", RULES);
    for algorithm in ["fixed-window", "token-bucket"] {
        let flags = ["--store", &redis.url(), "--store-deadline", "5s", "--ratelimit-algorithm", algorithm];
        let servers = [Asked::by(&rules, &flags), Asked::by(&rules, &flags)];
        let passed = (0..30).filter(|i| servers[i % 2].told(CALL)["overallCode"] == "OK").count();
        assert_eq!(passed, 10, "{algorithm}");
    }
}

#[test]
fn while_the_store_is_away_each_rule_does_what_was_declared() {
    let folder = TempDir::new().unwrap();
    let rules = written(folder.path(), "d.yaml", RULES);
    for (mode, passing) in [("allow", 20), ("deny", 0), ("local:0.5", 5)] {
        let redis = Redis::start(&[]);
        let asked = Asked::by(&rules, &["--store", &redis.url(), "--on-store-failure", mode]);
        redis.freeze();
        let passed = (0..20).filter(|_| asked.told(CALL)["overallCode"] == "OK").count();
        assert_eq!(passed, passing, "{mode}");
        redis.thaw();
    }
}

/// The filter's word on a service that does not answer.
const PASSING: (&str, &str) = ("failure_mode_deny: false", "failure_mode_deny: false");
const DENYING: (&str, &str) = ("failure_mode_deny: false", "failure_mode_deny: true");

/// A call under the rule `k`, through the client that is made from the published files.
fn code(asked: &Asked, call: &str) -> String {
    python::run("../envoy/asking.py", &[asked.grpc.to_string(), call.to_owned()])
}

/// What was declared is an answer, so the filter's own word, which might let everything pass, does not count.
#[test]
fn what_was_declared_for_a_store_that_is_away_holds_whatever_envoy_would_do() {
    let folder = TempDir::new().unwrap();
    let rules = RULES.replace("domain: d", "domain: edge").replace("key: k", "key: remote_address");
    let rules = written(folder.path(), "edge.yaml", &rules);
    for (mode, filter, status) in [("deny", PASSING, 429), ("allow", DENYING, 200)] {
        let (redis, nginx) = (Redis::start(&[]), Nginx::start());
        let asked = Asked::by(&rules, &["--store", &redis.url(), "--on-store-failure", mode]);
        let envoy = Envoy::start(asked.grpc, &nginx, &[filter]);
        drop(redis);
        let reply = envoy.get(&[]);
        assert_eq!((reply.status, nginx.requests() == 0), (status, mode == "deny"), "{mode}: {reply:?}");
        assert_eq!(reply.field("retry-after"), (mode == "deny").then_some("1"));
    }
}

#[test]
fn a_limit_that_the_store_cannot_keep_is_the_callers_mistake() {
    let (folder, redis) = (TempDir::new().unwrap(), Redis::start(&[]));
    let rules = written(folder.path(), "d.yaml", RULES);
    let asked = Asked::by(&rules, &["--store", &redis.url(), "--store-deadline", "5s"]);
    let call = CALL.replace("]}]}", r#"],"limit":{"requestsPerUnit":2000000,"unit":"SECOND"}}]}"#);
    let told = code(&asked, &call);
    assert!(told.starts_with("INVALID_ARGUMENT the limit 2000000/s"), "{told}");
    assert_eq!((asked.json(&call).status, asked.json(CALL).status), (400, 200));
}

/// A table in memory knows a bounded number of different quotas, and calls may bring as many. What stands in a file is
/// among them from the beginning; what comes into a file afterwards is not.
#[test]
fn a_call_that_nobody_can_decide_is_unavailable_and_then_envoy_decides() {
    const QUOTAS_MAX: usize = 1 << 16;
    const CHARGES_MAX: usize = 16;
    let folder = TempDir::new().unwrap();
    let rules = written(
        folder.path(),
        "edge.yaml",
        &RULES.replace("domain: d", "domain: edge").replace("key: k", "key: remote_address"),
    );
    let asked = Asked::by(&rules, &["--workers", "1"]);
    let mut connection = Connection::open(asked.server.address);
    // One is known: the rule's.
    for first in (1..QUOTAS_MAX).step_by(CHARGES_MAX) {
        let brought =
            |number| format!(r#"{{"entries":[{{"key":"k"}}],"limit":{{"requestsPerUnit":{number},"unit":"YEAR"}}}}"#);
        let brought: Vec<_> = (first..QUOTAS_MAX.min(first + CHARGES_MAX)).map(brought).collect();
        let call = format!(r#"{{"domain":"d","descriptors":[{}]}}"#, brought.join(","));
        let head = format!("POST /json HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", call.len());
        connection.send((head + &call).as_bytes()).unwrap();
        let reply = connection.reply("POST").unwrap();
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let call = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"remote_address","value":"a"}]}]}"#;
    assert_eq!(asked.json(call).status, 200);
    let changed = std::fs::read_to_string(&rules).unwrap().replace("requests_per_unit: 10", "requests_per_unit: 11");
    std::fs::write(&rules, changed).unwrap();
    asked.server.wait_for("was read anew; rules in force: 1");
    assert_eq!(asked.json(call).status, 503);
    let told = code(&asked, call);
    assert!(told.starts_with("UNAVAILABLE the store could not decide: more than 65536 different quotas"), "{told}");
    let nginx = Nginx::start();
    let statuses = [PASSING, DENYING].map(|filter| Envoy::start(asked.grpc, &nginx, &[filter]).get(&[]).status);
    assert_eq!((statuses, nginx.requests()), ([200, 500], 1));
    assert_eq!(asked.server.metrics().value("tidegate_requests_total{decision=\"failed\"}"), 4);
}
