//! The first minute with the program: a limit, the built-in API, and what a client and an operator see.

mod support;

use std::thread;
use std::time::Duration;

use support::http::{Connection, Reply, get};
use support::program::Proxy;

/// The statuses of so many requests in a row.
fn statuses(proxy: &Proxy, count: usize) -> Vec<u16> {
    let mut connection = Connection::open(proxy.address);
    (0..count).map(|_| connection.ask("GET", "/", &[]).status).collect()
}

fn passed(proxy: &Proxy, count: usize) -> usize {
    statuses(proxy, count).into_iter().filter(|status| *status == 200).count()
}

/// The fields of an answer that speak of limits.
fn limit_fields(reply: &Reply) -> Vec<&str> {
    let names = reply.fields.iter().map(|(name, _)| name.as_str());
    names.filter(|name| name.contains("ratelimit") || *name == "retry-after").collect()
}

/// Is `text` this template, with one of these numbers where the star stands?
fn is_one_of(text: Option<&str>, template: &str, numbers: &[u32]) -> bool {
    numbers.iter().any(|number| text == Some(template.replace('*', &number.to_string()).as_str()))
}

#[test]
fn three_pass_and_the_fourth_is_told_when_to_come_back() {
    let proxy = Proxy::start(&["--limit", "3/min"]);
    for remaining in [2, 1, 0] {
        let reply = get(proxy.address, "/");
        assert_eq!((reply.status, reply.field("ratelimit-policy")), (200, Some("\"limit-1\";q=3;w=60")));
        let template = format!("\"limit-1\";r={remaining};t=*");
        assert!(is_one_of(reply.field("ratelimit"), &template, &[20, 19]), "{reply:?}");
        assert!(reply.json()["joke"].is_string());
        assert_eq!(limit_fields(&reply).len(), 2);
    }
    let denied = get(proxy.address, "/");
    assert_eq!((denied.status, denied.field("ratelimit-policy")), (429, Some("\"limit-1\";q=3;w=60")));
    assert!(is_one_of(denied.field("ratelimit"), "\"limit-1\";r=0;t=*", &[20, 19]), "{denied:?}");
    assert!(is_one_of(denied.field("retry-after"), "*", &[20, 19]), "{denied:?}");
    assert_eq!(denied.field("content-type"), Some("application/problem+json"));
    assert_eq!(denied.field("cache-control"), Some("no-store"));
    let problem = denied.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["limit-1"]));
    assert!(is_one_of(
        problem["detail"].as_str(),
        "limit \"limit-1\" (3/min) is used up; try again in * seconds",
        &[20, 19]
    ));
}

#[test]
fn after_the_wait_exactly_one_passes() {
    let proxy = Proxy::start(&["--limit", "2/4s"]);
    assert_eq!(statuses(&proxy, 2), [200, 200]);
    let denied = get(proxy.address, "/");
    assert_eq!(denied.status, 429);
    let wait = denied.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait));
    thread::sleep(Duration::from_secs(wait));
    assert_eq!(statuses(&proxy, 3), [200, 429, 429]);
}

#[test]
fn each_request_is_charged_whatever_it_asks_for() {
    let proxy = Proxy::start(&["--limit", "4/h"]);
    let mut connection = Connection::open(proxy.address);
    let head = connection.ask("HEAD", "/joke", &[]);
    let joke = connection.ask("GET", "/joke", &[]);
    assert_eq!((head.status, head.field("content-length")), (200, joke.field("content-length")));
    let nowhere = connection.ask("GET", "/nowhere", &[]);
    assert_eq!((nowhere.status, nowhere.field("content-type")), (404, Some("application/problem+json")));
    let posted = connection.ask("POST", "/", &[("Content-Length", "0")]);
    assert_eq!((posted.status, posted.field("allow")), (405, Some("GET, HEAD")));
    let denied = connection.ask("HEAD", "/", &[]);
    assert_eq!((denied.status, denied.body.as_slice()), (429, &[][..]));
    // The connection is as good as before.
    assert_eq!(connection.ask("GET", "/", &[]).status, 429);
    assert_eq!((proxy.decisions("limit-1", "allowed"), proxy.decisions("limit-1", "denied")), (4, 2));
}

#[test]
fn br_163_what_is_counted_is_what_was_seen() {
    let proxy = Proxy::start(&["--limit", "5/h"]);
    for (allowed, denied, remaining) in [(1, 0, 4), (2, 0, 3), (3, 0, 2), (4, 0, 1), (5, 0, 0), (5, 1, 0)] {
        let reply = get(proxy.address, "/");
        assert_eq!(reply.status, if denied == 0 { 200 } else { 429 });
        let field = reply.field("ratelimit").unwrap();
        assert!(field.starts_with(&format!("\"limit-1\";r={remaining};")), "{field}");
        let metrics = proxy.metrics();
        let counted = [metrics.decisions("limit-1", "allowed"), metrics.decisions("limit-1", "denied")];
        assert_eq!(counted, [allowed, denied]);
        assert_eq!(metrics.value("tidegate_requests_total{decision=\"denied\"}"), denied);
        assert_eq!(metrics.value("tidegate_decision_seconds_count"), allowed + denied);
        assert_eq!(metrics.value("tidegate_keys"), 1);
        let is_negative = |line: &str| line.rsplit_once(' ').is_some_and(|(_, value)| value.starts_with('-'));
        assert!(!metrics.0.lines().filter(|line| !line.starts_with('#')).any(is_negative));
    }
}

#[test]
fn br_161_keys_add_no_series() {
    const KEYS: usize = 2_000;
    let proxy = Proxy::start(&["--limit", "1/h", "--key", "header:x-api-key"]);
    let before = proxy.metrics();
    let mut connection = Connection::open(proxy.address);
    for i in 0..KEYS {
        let reply = connection.ask("GET", "/", &[("X-Api-Key", &format!("key-{i}"))]);
        assert_eq!(reply.status, 200);
    }
    let after = proxy.metrics();
    assert_eq!(after.series(), before.series());
    assert!(after.0.len() < 1_000_000 && !after.0.contains("key-1"));
    assert_eq!(after.value("tidegate_keys"), KEYS as u64);
    assert_eq!(after.decisions("limit-1", "allowed"), KEYS as u64);
}

#[test]
fn operators_find_it_alive_and_ready_and_are_not_limited() {
    let proxy = Proxy::start(&["--limit", "0/min"]);
    for _ in 0..3 {
        assert_eq!((proxy.admin("/livez").status, proxy.admin("/readyz").status), (200, 200));
    }
    assert_eq!(proxy.admin("/").status, 404);
    let never = get(proxy.address, "/");
    assert_eq!((never.status, never.field("retry-after")), (429, None));
    assert!(never.json()["detail"].as_str().unwrap().ends_with("waiting does not help"));
    assert_eq!((proxy.decisions("limit-1", "never"), proxy.metrics().value("tidegate_keys")), (1, 0));
}

#[test]
fn shadow_counts_and_denies_nothing() {
    let proxy = Proxy::start(&["--limit", "2/h", "--shadow"]);
    for _ in 0..5 {
        let reply = get(proxy.address, "/");
        assert_eq!((reply.status, limit_fields(&reply)), (200, vec![]));
    }
    assert_eq!((proxy.decisions("limit-1", "allowed"), proxy.decisions("limit-1", "denied")), (2, 3));
    assert_eq!(proxy.metrics().value("tidegate_requests_total{decision=\"denied\"}"), 0);
}

#[test]
fn a_fixed_window_passes_its_count_and_waits_for_the_edge() {
    let proxy = Proxy::start(&["--limit", "3/day", "--algorithm", "fixed-window"]);
    assert!(proxy.said().contains("3/day  (fixed-window)"));
    assert_eq!(statuses(&proxy, 3), [200, 200, 200]);
    let denied = get(proxy.address, "/");
    let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    // The day on the wall ends then, and not a day after the first request.
    let now_s = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let left = 86_400 - now_s % 86_400;
    assert!(wait.abs_diff(left) <= 2 || left <= 5, "{wait} s, and {left} s are left of the day");
}

#[test]
fn br_139_of_several_limits_all_are_charged_or_none() {
    for (limits, short, long) in
        [(["10/h", "30/day"], "limit-1", "limit-2"), (["30/day", "10/h"], "limit-2", "limit-1")]
    {
        let proxy = Proxy::start(&["--limit", limits[0], "--limit", limits[1]]);
        assert_eq!(passed(&proxy, 31), 10);
        let denied = get(proxy.address, "/");
        assert_eq!(denied.json()["violated-policies"], serde_json::json!([short]));
        assert!(is_one_of(denied.field("retry-after"), "*", &[360, 359]), "{denied:?}");
        assert_eq!((proxy.decisions(short, "allowed"), proxy.decisions(short, "denied")), (10, 22));
        assert_eq!(proxy.decisions(long, "denied"), 0, "the other limit had room all the time");
    }
}

#[test]
fn the_dialect_of_the_fields_can_be_chosen() {
    let fields = |dialect| {
        let reply = get(Proxy::start(&["--limit", "3/min", "--headers", dialect]).address, "/");
        limit_fields(&reply).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(fields("none"), [""; 0]);
    assert_eq!(fields("draft-7"), ["ratelimit-policy", "ratelimit"]);
    assert_eq!(fields("draft-6"), ["ratelimit-policy", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]);
    assert_eq!(fields("x-ratelimit"), ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]);
}

#[test]
fn at_the_bound_a_newcomer_meets_what_was_chosen() {
    let newcomer = |at_bound| {
        let flags = ["--limit", "1/day", "--key", "header:x-api-key", "--max-keys", "1", "--at-bound", at_bound];
        let proxy = Proxy::start(&flags);
        let mut connection = Connection::open(proxy.address);
        let keys = (0..500).map(|i| i.to_string());
        let statuses: Vec<_> = keys.map(|key| connection.ask("GET", "/", &[("X-Api-Key", &key)]).status).collect();
        let displaced = proxy.metrics().value("tidegate_displaced_total");
        (statuses.into_iter().filter(|status| *status != 200).collect::<Vec<_>>(), displaced)
    };
    let (denied, displaced) = newcomer("deny");
    assert!(denied.len() > 400 && denied.iter().all(|status| *status == 429) && displaced == 0);
    let (denied, displaced) = newcomer("pool");
    assert!(denied.len() > 400 && denied.iter().all(|status| *status == 429) && displaced == 0);
    let (denied, displaced) = newcomer("displace");
    assert!(denied.is_empty() && displaced > 400);
}
