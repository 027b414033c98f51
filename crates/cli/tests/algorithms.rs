//! The sliding algorithms as users of the program meet them: explained, enforced in memory and in a shared store, kept
//! over a restart, and refused by name where they cannot be exact.

mod support;

use support::http::{Reply, get};
use support::program::{Proxy, Run, run};
use support::redis::Redis;
use tempfile::TempDir;

const SLIDING: [&str; 2] = ["sliding-counter", "sliding-log"];

fn proxy(algorithm: &str, flags: &[&str]) -> Proxy {
    Proxy::start(&[&["--limit", "3/day", "--algorithm", algorithm, "--workers", "1"], flags].concat())
}

fn statuses<'p>(proxies: impl IntoIterator<Item = &'p Proxy>) -> Vec<u16> {
    proxies.into_iter().map(|proxy| get(proxy.address, "/").status).collect()
}

fn is_denied_by(algorithm: &str, denied: &Reply) {
    assert_eq!(denied.field("ratelimit-policy"), Some("\"limit-1\";q=3;w=86400"), "{algorithm}");
    let wait_s: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    // Of a counter a window and a third are over at the latest when the first token is back.
    let most_s = if algorithm == "sliding-log" { 86_400 } else { 86_400 + 86_400 / 3 };
    let least_s = if algorithm == "sliding-log" { 86_000 } else { 86_400 / 3 };
    assert!((least_s..=most_s).contains(&wait_s), "{algorithm}: {wait_s}");
    let remaining = denied.field("ratelimit").unwrap();
    assert!(remaining.starts_with("\"limit-1\";r=0;t="), "{remaining}");
}

#[test]
fn they_limit_in_memory() {
    for algorithm in SLIDING {
        let proxy = proxy(algorithm, &[]);
        assert!(proxy.said().contains(&format!("3/day  ({algorithm})")), "{}", proxy.said());
        assert_eq!(statuses([&proxy; 3]), [200; 3]);
        is_denied_by(algorithm, &get(proxy.address, "/"));
    }
}

#[test]
fn processes_that_share_a_store_have_them_together() {
    let redis = Redis::start(&[]);
    for algorithm in SLIDING {
        let [one, other] = [(); 2].map(|()| proxy(algorithm, &["--store", &redis.url(), "--store-deadline", "2s"]));
        assert_eq!(statuses([&one, &other, &one]), [200; 3], "{algorithm}");
        for denied in [&other, &one, &one].map(|proxy| get(proxy.address, "/")) {
            assert_eq!(denied.status, 429);
            is_denied_by(algorithm, &denied);
        }
    }
}

#[test]
fn what_they_remember_outlives_a_restart() {
    for algorithm in SLIDING {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("state");
        let kept = || proxy(algorithm, &["--save-state", file.to_str().unwrap()]);
        let mut before = kept();
        assert_eq!(statuses([&before; 2]), [200; 2]);
        before.signal("TERM");
        assert!(before.ended().success());
        before.wait_for("1 buckets are saved in");
        let after = kept();
        after.wait_for("1 buckets go on as");
        assert_eq!(statuses([&after; 2]), [200, 429], "{algorithm}");
    }
}

#[test]
fn what_they_let_through_is_explained() {
    let Run { code, out, .. } = run(&["explain", "59/min", "--algorithm", "sliding-log"]);
    assert_eq!(
        (code, out.contains("never exceeded 59 in any second, 59 in any minute, 3,540 in any hour")),
        (Some(0), true)
    );
    let Run { code, out, .. } = run(&["explain", "59/min", "--algorithm", "sliding-counter"]);
    assert_eq!(
        (code, out.contains("never exceeded 59 in any second, 118 in any minute, 3,599 in any hour")),
        (Some(0), true)
    );
}

#[test]
fn what_cannot_be_exact_is_refused_by_name() {
    let redis = Redis::start(&[]);
    let url = redis.url();
    let fast = ["proxy", "--limit", "600000/s", "--algorithm", "sliding-counter", "--store", &url];
    for (arguments, said) in [
        (&["explain", "10001/h", "--algorithm", "sliding-log"][..], "an entry for each request, 10000 at most"),
        (&["explain", "5/h burst 9", "--algorithm", "sliding-log"], "a sliding log passes exactly its count at once"),
        (&["explain", "5/h burst 9", "--algorithm", "sliding-counter"], "a sliding counter passes exactly its count"),
        (
            &["explain", "500000000/s", "--algorithm", "sliding-counter"],
            "a sliding counter takes less than 500000000/s",
        ),
        (&fast, "a sliding counter takes less than 500000/s in a shared store"),
    ] {
        let Run { code, err, .. } = run(arguments);
        assert!(code != Some(0) && err.contains(said), "{arguments:?}: {code:?} {err}");
    }
}
