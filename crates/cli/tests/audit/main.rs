//! `tidegate audit` before limiters that are real: it tells them apart by itself, and finds their limits.

mod haproxy;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;

use self::haproxy::Haproxy;
use self::support::free_address;
use self::support::nginx::Nginx;
use self::support::program::{Proxy, Run, run};

/// What is near enough, as a part.
const NEAR: f64 = 0.05;

fn audited(url: &str) -> Value {
    let Run { code, out, err } = run(&["audit", url, "--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap()
}

/// Of this kind, and of this burst and rate to five per cent.
#[track_caller]
fn assert_found(report: &Value, kind: &str, burst: u64, rate: f64) {
    assert_eq!(report["found"], kind, "{report:#}");
    let (found_burst, found_rate) = (report["burst"].as_f64().unwrap(), report["rate_per_second"].as_f64().unwrap());
    assert!((found_burst - burst as f64).abs() <= NEAR * burst as f64, "a burst of {burst}: {report:#}");
    assert!((found_rate - rate).abs() <= NEAR * rate, "{rate} a second: {report:#}");
    assert!(report["calls"].as_u64().unwrap() <= 2_000, "{report:#}");
}

#[test]
fn a_token_bucket_of_ours() {
    let proxy = Proxy::start(&["--limit", "10/s burst 20"]);
    let report = audited(&proxy.url());
    assert_found(&report, "token bucket", 20, 10.0);
    assert_eq!(report["denied_status"], 429);
    assert_eq!((&report["retry_after"]["tried"], &report["retry_after"]["kept"]), (&2.into(), &2.into()));
    assert_eq!((&report["denied_calls_count"], &report["holds_back"]), (&false.into(), &false.into()));
    assert_eq!(report["forgeable_by"], Value::Array(Vec::new()));
    let fields = report["fields"]["denied"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["ratelimit", "ratelimit-policy", "retry-after"]);
}

#[test]
fn a_fixed_window_of_ours_lets_double_through_at_its_edge() {
    let proxy = Proxy::start(&["--limit", "20/s", "--algorithm", "fixed-window"]);
    let report = audited(&proxy.url());
    assert_found(&report, "fixed window", 20, 20.0);
    assert!(report["most_seen"].as_u64().unwrap() > 30, "{report:#}");
    assert_eq!(report["windows_begin_by_the_clock"], true);
}

#[test]
fn a_sliding_log_and_a_sliding_counter_of_ours() {
    for (algorithm, kind) in [("sliding-log", "sliding log"), ("sliding-counter", "sliding counter")] {
        let proxy = Proxy::start(&["--limit", "20/s", "--algorithm", algorithm]);
        assert_found(&audited(&proxy.url()), kind, 20, 20.0);
    }
}

#[test]
fn nginx_without_a_burst() {
    let nginx = Nginx::limiting("10r/s", "");
    let report = audited(&nginx.url());
    assert_found(&report, "token bucket", 1, 10.0);
    assert_eq!((&report["denied_status"], &report["retry_after"]), (&503.into(), &Value::Null));
}

#[test]
fn nginx_with_a_burst_that_passes_at_once() {
    let nginx = Nginx::limiting("10r/s", "burst=20 nodelay");
    let report = audited(&nginx.url());
    assert_found(&report, "token bucket", 21, 10.0);
    assert_eq!(report["holds_back"], false);
}

#[test]
fn nginx_with_a_burst_that_is_held_back() {
    let nginx = Nginx::limiting("10r/s", "burst=20");
    let report = audited(&nginx.url());
    assert_found(&report, "token bucket", 21, 10.0);
    assert_eq!(report["holds_back"], true);
}

#[test]
fn a_stick_table_of_haproxy_counts_denied_calls_too() {
    let haproxy = Haproxy::limiting(20, "2s");
    let report = audited(&haproxy.url());
    assert_found(&report, "sliding counter", 20, 10.0);
    assert_eq!(report["denied_calls_count"], true);
}

#[test]
fn a_header_that_is_believed_is_named() {
    let proxy = Proxy::start(&["--limit", "5/h", "--trust", "loopback", "--client-from", "x-forwarded-for"]);
    let Run { code, out, .. } = run(&["audit", &proxy.url(), "--time", "3s"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("are believed: whoever sends another x-forwarded-for is another caller"), "{out}");
    assert!(out.contains("5 calls passed, and none came back") && out.contains("--time"), "{out}");
}

#[test]
fn a_key_header_that_chooses_is_told() {
    let flags = ["--limit", "10/s burst 5", "--key", "header:x-api-key"];
    let proxy = Proxy::start(&flags);
    let Run { code, out, .. } = run(&["audit", &proxy.url(), "--key-header", "x-api-key", "--expect", "10/s burst 5"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("each value of the key's field is a caller of its own"), "{out}");
    assert!(out.contains("burst            yes: expected 5, found 5"), "{out}");
}

#[test]
fn what_is_not_as_expected_ends_with_code_3() {
    let proxy = Proxy::start(&["--limit", "10/s burst 5"]);
    let Run { code, out, err } = run(&["audit", &proxy.url(), "--expect", "20/s burst 5"]);
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("sustained rate   no: expected 20.000/s, found "), "{out}");
    assert_eq!(err, "error: the limit is not '20/s burst 5', as --expect says\n");
}

#[test]
fn a_service_without_a_limit_is_told_so_within_the_budget() {
    let nginx = Nginx::start();
    let Run { code, out, .. } = run(&["audit", &nginx.url(), "--budget", "200"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains(": no limit was met in 120 calls"), "{out}");
    assert_eq!(nginx.requests(), 120);
}

#[test]
fn other_hosts_are_not_called_unless_they_are_said_to_be_ours() {
    // An address of nobody's (RFC 5737).
    let Run { code, err, .. } = run(&["audit", "http://192.0.2.1/"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("192.0.2.1 is not this machine; calls in such numbers") && err.contains("--i-own-this-host"),
        "{err}"
    );
}

#[test]
fn what_cannot_be_called_is_an_error() {
    let address = free_address().to_string();
    let Run { code, err, .. } = run(&["audit", &format!("http://{address}/")]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("cannot connect: ") && err.contains(&address), "{err}");
    for (url, hint) in [("127.0.0.1:80", "http://"), ("http://me:secret@127.0.0.1/", "--header 'authorization: ...'")] {
        let Run { code, err, .. } = run(&["audit", url]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(hint), "{err}");
    }
}
