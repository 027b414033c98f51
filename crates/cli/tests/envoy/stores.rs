//! The rate limit service over a store that several servers share, and while that is away.

use tempfile::TempDir;

use crate::server::{Asked, written};
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
