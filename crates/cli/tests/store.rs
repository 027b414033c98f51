//! Several processes that count in one store, and what each does while it is away: the real program, a real server.

mod support;

use std::time::{Duration, Instant};

use support::PATIENCE;
use support::free_address;
use support::http::{Reply, get};
use support::program::{Proxy, Run, command, run, serving};
use support::redis::Redis;

const PROBLEMS: &str = "https://iana.org/assignments/http-problem-types#";

fn proxy(limit: &str, flags: &[&str]) -> Proxy {
    Proxy::start(&[&["--limit", limit, "--workers", "1"], flags].concat())
}

fn counting_in(redis: &Redis, limit: &str, flags: &[&str]) -> Proxy {
    proxy(limit, &[&["--store", &redis.url()], flags].concat())
}

/// Has the store decided, and not somebody in its place?
fn is_from_store(reply: &Reply) -> bool {
    reply.field("tidegate-source").is_none()
}

/// What is left, by the header field.
fn remaining(reply: &Reply) -> u64 {
    let field = reply.field("ratelimit").unwrap_or_else(|| panic!("{reply:?}"));
    field.split(';').find_map(|part| part.strip_prefix("r=")).unwrap().parse().unwrap()
}

/// Asks until the answer is as it should be.
#[track_caller]
fn eventually(what: &str, proxy: &Proxy, is_so: impl Fn(&Reply) -> bool) -> Reply {
    let since = Instant::now();
    loop {
        let reply = get(proxy.address, "/");
        if is_so(&reply) {
            return reply;
        }
        assert!(since.elapsed() < PATIENCE, "never {what}: {reply:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Twenty requests, to one and the other in turn.
fn alternating(one: &Proxy, other: &Proxy) -> Vec<Reply> {
    (0..20).map(|i| get(if i % 2 == 0 { one.address } else { other.address }, "/")).collect()
}

#[test]
fn br_193_in_memory_each_process_has_the_limit_for_itself_and_says_so() {
    let (one, other) = (proxy("10/h", &[]), proxy("10/h", &[]));
    assert!(one.said().contains("counted    by this process alone, in memory"), "{}", one.said());
    assert!(alternating(&one, &other).iter().all(|reply| reply.status == 200));
}

#[test]
fn br_193_in_a_shared_store_they_have_it_together_and_what_is_left_falls_by_one_each_time() {
    let redis = Redis::start(&[]);
    let (one, other) = (counting_in(&redis, "10/h", &[]), counting_in(&redis, "10/h", &[]));
    let said = one.said();
    let counted = format!("at {}, together with every process that uses it", redis.url());
    assert!(said.contains("counted    in redis ") && said.contains(&counted), "{said}");
    assert!(said.contains("while it does not answer, each process counts by itself (local)"), "{said}");
    let replies = alternating(&one, &other);
    let (passed, denied) = replies.split_at(10);
    assert_eq!(passed.iter().map(remaining).collect::<Vec<_>>(), (0..10).rev().collect::<Vec<_>>());
    assert!(denied.iter().all(|reply| reply.status == 429), "{denied:?}");
    assert!(replies.iter().all(is_from_store));

    let metrics = one.metrics();
    let answers = |source: &str| metrics.value(&format!("tidegate_answers_total{{source=\"{source}\"}}"));
    assert_eq!(answers("store") + answers("denied-cache"), 10);
    // Of its five denials the first came from the store, and was remembered.
    assert!(answers("denied-cache") >= 1 && answers("fallback") == 0, "{}", metrics.0);
    assert_eq!(metrics.value("tidegate_store_latency_seconds_count"), answers("store"));
    assert_eq!((metrics.value("tidegate_store_up"), metrics.value("tidegate_store_waiting")), (1, 0));
}

#[test]
fn br_191_one_client_has_one_bucket_whatever_the_route_and_wherever_it_is_counted() {
    let redis = Redis::start(&[]);
    for proxy in [proxy("10/h", &[]), counting_in(&redis, "10/h", &[])] {
        // There is nothing at either, so what passes is 404.
        let statuses: Vec<_> =
            (0..6).flat_map(|_| ["/a", "/b"]).map(|route| get(proxy.address, route).status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 10, "{statuses:?}");
        assert_eq!(statuses[10..], [429, 429]);
    }
}

#[test]
fn while_the_store_is_stopped_deny_answers_503_at_once_and_recovers() {
    let redis = Redis::start(&[]);
    let proxy = counting_in(&redis, "1000/h", &["--on-store-failure", "deny"]);
    assert_eq!(get(proxy.address, "/").status, 200);
    redis.freeze();
    let mut took: Vec<Duration> = (0..15)
        .map(|_| {
            let since = Instant::now();
            let denied = get(proxy.address, "/");
            assert_eq!((denied.status, denied.field("tidegate-source")), (503, Some("fallback")), "{denied:?}");
            let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
            assert!((1..=2).contains(&wait));
            assert_eq!(denied.json()["type"], format!("{PROBLEMS}temporary-reduced-capacity"));
            since.elapsed()
        })
        .collect();
    took.sort();
    // What other programs do to one of them on a busy machine is not the store's.
    assert!(took[took.len() / 2] < Duration::from_millis(100), "{took:?}");
    assert_eq!(proxy.admin("/readyz").status, 503, "it would deny everything");
    let metrics = proxy.metrics();
    assert_eq!(metrics.value("tidegate_store_up"), 0);
    assert!(metrics.value("tidegate_store_failures_total{kind=\"deadline\"}") >= 1, "{}", metrics.0);
    assert_eq!(metrics.value("tidegate_answers_total{source=\"fallback\"}"), 15);

    redis.thaw();
    let since = Instant::now();
    let reply = eventually("from the store", &proxy, |reply| reply.status == 200 && is_from_store(reply));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(remaining(&reply) < 999, "what was counted is still there");
}

#[test]
fn while_the_store_is_stopped_local_limits_by_itself_and_recovers() {
    let redis = Redis::start(&[]);
    let proxy = counting_in(&redis, "1000/h", &["--on-store-failure", "local:0.002"]);
    assert_eq!(get(proxy.address, "/").status, 200);
    redis.freeze();
    let alone: Vec<_> = (0..4).map(|_| get(proxy.address, "/")).collect();
    assert_eq!(alone.iter().map(|reply| reply.status).collect::<Vec<_>>(), [200, 200, 429, 429]);
    assert!(alone.iter().all(|reply| reply.field("tidegate-source") == Some("fallback")));
    assert_eq!(alone[3].json()["source"], "fallback");
    redis.thaw();
    let reply = eventually("from the store", &proxy, |reply| reply.status == 200 && is_from_store(reply));
    // Two at least are counted there; a question whose answer came too late may be, too.
    assert!(remaining(&reply) <= 998);
}

#[test]
fn while_the_store_is_away_allow_lets_everything_pass() {
    let proxy = proxy("1/h", &["--store", &format!("redis://{}", free_address()), "--on-store-failure", "allow"]);
    let replies: Vec<_> = (0..5).map(|_| get(proxy.address, "/")).collect();
    assert!(replies.iter().all(|reply| reply.status == 200 && !is_from_store(reply)), "{replies:?}");
}

#[test]
fn a_store_that_is_not_there_yet_is_warned_of_and_used_as_soon_as_it_is() {
    let address = free_address();
    let proxy = proxy("10/h", &["--store", &format!("redis://{address}")]);
    let said = proxy.wait_for("until it can, each process counts by itself (local)");
    assert!(said.contains(&format!("warning: the store at redis://{address} cannot be used: ")), "{said}");
    assert!(!is_from_store(&get(proxy.address, "/")));
    let _redis = Redis::start_at(address, &[]);
    eventually("from the store", &proxy, is_from_store);
}

#[test]
fn the_password_of_a_store_is_never_printed() {
    let redis = Redis::start(&["--requirepass", "s3cret"]);
    let mut command = serving(&["--limit", "10/h"]);
    command.env("TIDEGATE_STORE", format!("redis://:s3cret@{}", redis.address));
    let right = Proxy::started(command);
    assert!(is_from_store(&get(right.address, "/")));
    let mut command = serving(&["--limit", "10/h"]);
    command.env("TIDEGATE_STORE", format!("redis://:gu3ssed@{}", redis.address));
    let wrong = Proxy::started(command);
    let said = wrong.wait_for("cannot be used");
    for said in [right.said(), said] {
        assert!(said.contains(&redis.url()) && !said.contains("s3cret") && !said.contains("gu3ssed"), "{said}");
    }
    let mut help = command_with_store("proxy", "--help");
    let help = String::from_utf8(help.output().unwrap().stdout).unwrap();
    assert!(help.contains("TIDEGATE_STORE") && !help.contains("s3cret"), "{help}");
}

fn command_with_store(name: &str, flag: &str) -> std::process::Command {
    let mut command = command(&[name, flag]);
    command.env("TIDEGATE_STORE", "redis://:s3cret@127.0.0.1:1");
    command
}

#[test]
fn flags_of_a_store_that_mean_nothing_are_refused_with_what_was_likely_meant() {
    let away = ["--store", "redis://127.0.0.1:1"];
    for (flags, message) in [
        (&["--on-store-failure", "deny"][..], "--on-store-failure says nothing without --store"),
        (&["--store-deadline", "10ms"], "add one such as --store redis://127.0.0.1:6379"),
        (&["--leased", "10"], "--leased says nothing without --store"),
        (&["--store", "127.0.0.1:6379"], "not the URL of a store"),
        (&["--store", "user:s3cret@127.0.0.1:6379"], "not the URL of a store"),
        (&["--store", "http://:s3cret@127.0.0.1:6379"], "not the URL of a store"),
        (&[away[0], away[1], "--on-store-failure", "local:2"], "a number above 0 and at most 1"),
        (&[away[0], away[1], "--on-store-failure", "open"], "expected allow, deny, local"),
        (&[away[0], away[1], "--store-deadline", "10"], "expected a time from 1ms to 10s, such as 10ms"),
        (&[away[0], away[1], "--leased", "0"], "expected a whole number of tokens"),
        (&[away[0], away[1], "--limit", "2000000/s"], "limit-2 (--limit '2000000/s') cannot be kept exactly"),
    ] {
        let Run { code, err, .. } = run(&[&["proxy", "--limit", "3/min"], flags].concat());
        assert_eq!(code, Some(2), "{flags:?} said {err}");
        assert!(err.starts_with("error: ") && err.contains(message) && !err.contains("s3cret"), "{flags:?}: {err}");
    }
}
