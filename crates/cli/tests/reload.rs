//! The configuration file is read anew while the proxy serves: no request is lost, no bucket is refilled, and what is
//! wrong changes nothing.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::PATIENCE;
use support::http::{Connection, get, get_with};
use support::program::{Metrics, Proxy};
use support::redis::Redis;
use support::upstream::{Upstream, head};
use tempfile::TempDir;

/// A proxy that serves by a file, which the test writes.
struct Served {
    folder: TempDir,
    proxy: Proxy,
}

impl Served {
    fn by(contents: &str, flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("tidegate.toml");
        fs::write(&path, contents).unwrap();
        let proxy = Proxy::start(&[&["--config", path.to_str().unwrap()], flags].concat());
        Self { folder, proxy }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts another file in place of the one that is there, as a whole.
    fn replace(&self, contents: &str) {
        fs::write(self.path("next"), contents).unwrap();
        fs::rename(self.path("next"), self.path("tidegate.toml")).unwrap();
    }

    /// The same, and tells the program; returns once it has read it.
    fn reload(&self, contents: &str) {
        let before = reloads(&self.proxy.metrics());
        self.replace(contents);
        self.proxy.signal("HUP");
        self.until("read", |metrics| reloads(metrics) != before);
    }

    /// Waits for the metrics to be so.
    fn until(&self, what: &str, is_so: impl Fn(&Metrics) -> bool) -> Metrics {
        let since = Instant::now();
        loop {
            let metrics = self.proxy.metrics();
            if is_so(&metrics) {
                return metrics;
            }
            assert!(since.elapsed() < PATIENCE, "never {what}; it said\n{}", self.proxy.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn status(&self) -> u16 {
        get(self.proxy.address, "/").status
    }

    fn statuses<const N: usize>(&self) -> [u16; N] {
        [(); N].map(|()| self.status())
    }
}

/// Reloads so far that were applied, and that failed.
fn reloads(metrics: &Metrics) -> (u64, u64) {
    let of = |result: &str| metrics.value(&format!("tidegate_config_reloads_total{{result=\"{result}\"}}"));
    (of("applied"), of("failed"))
}

fn policy(name: &str, limits: &str) -> String {
    format!("[[policies]]\nname = \"{name}\"\nlimits = \"{limits}\"\n\n")
}

#[test]
fn br_079_a_reload_refills_nobody() {
    let file = policy("api", "3/h");
    let served = Served::by(&file, &[]);
    assert_eq!(served.statuses(), [200, 200, 200, 429]);
    for _ in 0..10 {
        served.reload(&file);
        assert_eq!(served.status(), 429);
    }
    served.reload(&(file + &policy("other", "100/s")));
    assert_eq!(served.status(), 429);
    let metrics = served.proxy.metrics();
    assert_eq!(reloads(&metrics), (11, 0));
    assert_eq!(metrics.value("tidegate_config_last_reload_successful"), 1);
}

#[test]
fn br_084_a_raised_limit_gives_its_growth_at_once_and_a_lowered_one_takes_it() {
    let served = Served::by(&policy("api", "3/h"), &[]);
    assert_eq!(served.statuses(), [200, 200, 200, 429]);
    served.reload(&policy("api", "5/h"));
    assert_eq!(served.statuses(), [200, 200, 429]);
    served.reload(&policy("api", "6/h burst 4"));
    assert_eq!(served.status(), 429);
    served.reload(&policy("api", "6/h burst 6"));
    assert_eq!(served.statuses(), [200, 200, 429], "what was owed above the burst was forgiven once");
}

#[test]
fn a_sliding_log_keeps_what_passed_and_starts_fresh_under_another_algorithm() {
    let log =
        |limit: &str| format!("[[policies]]\nname = \"api\"\nalgorithm = \"sliding-log\"\nlimits = \"{limit}\"\n");
    let served = Served::by(&log("3/h"), &[]);
    assert_eq!(served.statuses(), [200, 200, 200, 429]);
    served.reload(&log("5/h"));
    assert_eq!(served.statuses(), [200, 200, 429]);
    served.reload(&log("2/h"));
    assert_eq!(served.status(), 429);
    served.reload(&log("4/h"));
    assert_eq!(served.statuses(), [200, 200, 429], "the two newest are remembered");
    served.reload(&log("4/h").replace("sliding-log", "sliding-counter"));
    served.proxy.wait_for("another algorithm enforces it");
    assert_eq!(served.status(), 200);
}

#[test]
fn br_083_a_denial_that_is_remembered_ends_with_its_limit() {
    let redis = Redis::start(&[]);
    let served = Served::by(&policy("api", "3/h"), &["--store", &redis.url(), "--store-deadline", "1s"]);
    assert_eq!(served.statuses(), [200, 200, 200, 429, 429]);
    served.reload(&policy("api", "5/h"));
    assert_eq!(served.statuses(), [200, 200, 429]);
}

#[test]
fn another_key_starts_fresh_and_the_reload_says_so() {
    let by = |key: &str| format!("[[policies]]\nname = \"api\"\nkey = \"header:{key}\"\nlimits = \"1/h\"\n");
    let served = Served::by(&by("x-one"), &[]);
    let ask = || get_with(served.proxy.address, "/", &[("x-one", "k"), ("x-two", "k")]).status;
    assert_eq!([ask(), ask()], [200, 429]);
    served.reload(&by("x-two"));
    let fresh = "limit `limit-1` of policy `api` starts fresh: its key was header x-one, and is header x-two";
    served.proxy.wait_for(fresh);
    assert_eq!([ask(), ask()], [200, 429]);
    served.reload(&by("x-one"));
    assert_eq!(ask(), 429, "what was owed under the old key was not forgotten");
    served.reload(&(by("x-one") + "algorithm = \"fixed-window\"\n"));
    served.proxy.wait_for("starts fresh: another algorithm enforces it");
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told_in_words_and_in_metrics() {
    let served = Served::by(&policy("api", "3/h"), &[]);
    let hash = |metrics: &Metrics| metrics.value("tidegate_config_hash");
    let first = hash(&served.proxy.metrics());
    served.reload("[[policies]]\nname = \"api\"\nlimits = \"3/m\"\nkei = \"client\"\n");
    served.proxy.wait_for("tidegate.toml:3:13: `3/m`: `m` could be a minute or a month");
    served.proxy.wait_for("tidegate.toml:4:1: a policy has no key `kei`");
    served.proxy.wait_for("nothing was changed: the policies that were in force go on");
    let metrics = served.proxy.metrics();
    assert_eq!(reloads(&metrics), (0, 1));
    assert_eq!((metrics.value("tidegate_config_last_reload_successful"), hash(&metrics)), (0, first));
    served.reload("");
    served.reload("[[policies]]\nname = \"api\"\nkey = \"claim:user\"\nlimits = \"3/h\"\n");
    served.proxy.wait_for("tidegate.toml:3:1: the proxy verifies no claims");
    assert_eq!(served.statuses(), [200, 200, 200, 429]);
    served.reload(&policy("api", "4/h"));
    assert_eq!(served.statuses(), [200, 429]);
    let metrics = served.proxy.metrics();
    assert_eq!((reloads(&metrics), metrics.value("tidegate_config_last_reload_successful")), ((1, 3), 1));
    assert_ne!(hash(&metrics), first);
}

#[test]
fn br_161_new_limits_have_metrics_and_those_that_are_gone_have_none() {
    let served = Served::by(&policy("api", "3/h"), &[]);
    let before = served.proxy.metrics();
    assert_eq!(served.status(), 200);
    for round in 0..5 {
        served.reload(&(policy("api", "3/h") + &policy(&format!("extra-{round}"), "100/h")));
        assert_eq!(served.status(), if round < 2 { 200 } else { 429 });
        let metrics = served.proxy.metrics();
        let of = |name: &str| metrics.series().iter().filter(|series| series.contains(&format!("\"{name}\""))).count();
        assert_eq!((of(&format!("extra-{round}")), metrics.series().len()), (5, before.series().len() + 5));
    }
    served.reload(&policy("api", "3/h"));
    let metrics = served.proxy.metrics();
    assert_eq!(metrics.series().len(), before.series().len());
    assert_eq!(metrics.decisions("limit-1", "allowed"), 3, "a limit that goes on counts on");
}

#[test]
fn a_file_that_is_written_in_place_replaced_or_linked_elsewhere_is_noticed() {
    let served = Served::by(&policy("api", "1/h"), &[]);
    let hash = || served.proxy.metrics().value("tidegate_config_hash");
    let noticed = |change: &dyn Fn()| {
        let before = hash();
        change();
        served.until("noticed", |metrics| metrics.value("tidegate_config_hash") != before);
    };
    noticed(&|| fs::write(served.path("tidegate.toml"), policy("written", "2/h")).unwrap());
    noticed(&|| served.replace(&policy("replaced", "3/h")));
    fs::create_dir(served.path("v1")).unwrap();
    fs::create_dir(served.path("v2")).unwrap();
    fs::write(served.path("v1/file"), policy("one", "4/h")).unwrap();
    fs::write(served.path("v2/file"), policy("two", "5/h")).unwrap();
    let link = |to: &str, name: &str| {
        symlink(to, served.path("next")).unwrap();
        fs::rename(served.path("next"), served.path(name)).unwrap();
    };
    link("v1", "now");
    noticed(&|| link("now/file", "tidegate.toml"));
    noticed(&|| link("v2", "now"));
    served.proxy.wait_for("read anew; in force: two");
}

#[test]
fn a_request_in_flight_ends_as_it_began() {
    let upstream = Upstream::start(|socket| {
        let mut connection = Connection::over(socket);
        while let Some((line, _)) = head(&mut connection) {
            if line.contains("slow") {
                thread::sleep(Duration::from_millis(400));
            }
            connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
    });
    let served = Served::by(&policy("old", "7/h"), &["--upstream", &upstream.url()]);
    let address = served.proxy.address;
    let slow = thread::spawn(move || get(address, "/slow"));
    served.until("asked", |metrics| metrics.decisions("limit-1", "allowed") == 1);
    served.reload(&policy("new", "9/h"));
    let reply = slow.join().unwrap();
    assert_eq!((reply.status, reply.text()), (200, "ok"));
    assert!(reply.field("ratelimit-policy").unwrap().contains("q=7"), "{reply:?}");
    assert!(get(address, "/").field("ratelimit-policy").unwrap().contains("q=9"));
}

#[test]
fn whose_word_is_believed_is_read_anew_too() {
    let trusting = |trust: &str| format!("[client]\ntrust = [\"{trust}\"]\n\n{}", policy("api", "1/h"));
    let served = Served::by(&trusting("10.0.0.0/8"), &[]);
    let ask = |client: &str| get_with(served.proxy.address, "/", &[("x-forwarded-for", client)]).status;
    assert_eq!([ask("192.0.2.1"), ask("192.0.2.2")], [200, 429]);
    served.reload(&trusting("127.0.0.0/8"));
    assert_eq!([ask("192.0.2.1"), ask("192.0.2.2"), ask("192.0.2.1")], [200, 200, 429]);
}

#[test]
fn settings_that_need_a_new_start_are_told() {
    let served = Served::by(&policy("api", "1/h"), &[]);
    served.reload(&format!("[proxy]\ngrace = 7\n\n{}", policy("api", "1/h")));
    served.proxy.wait_for("warning: what stands below `[proxy]` is another");
}

#[test]
fn a_flag_only_proxy_has_no_reloads() {
    let proxy = Proxy::start(&["--limit", "1/h"]);
    assert_eq!(reloads(&proxy.metrics()), (0, 0));
    assert_eq!(proxy.metrics().value("tidegate_config_hash"), 0);
}

/// A hundred reloads under load, half of them of broken files. One limit must let pass exactly what it lets pass.
#[test]
fn under_load_no_request_is_lost_and_no_bucket_refilled() {
    const BURST: u64 = 500;
    const RELOADS: u64 = 100;
    let file = |i: u64| policy("api", "500/d") + &policy("wide", &format!("{}/s", 1_000_000 + i));
    let served = Served::by(&file(0), &[]);
    let (address, is_over) = (served.proxy.address, AtomicBool::new(false));
    let (passed, denied) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = Connection::open(address);
                while !is_over.load(Ordering::Relaxed) {
                    match connection.ask("GET", "/", &[]).status {
                        200 => passed.fetch_add(1, Ordering::Relaxed),
                        429 => denied.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    };
                }
            });
        }
        for i in 1..=RELOADS {
            served.reload(&if i % 2 == 0 { file(i) } else { format!("{}limits = {i}", file(i)) });
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (passed, denied) = (passed.into_inner(), denied.into_inner());
    // A token takes 173 s to come back, and this test does not last so long.
    assert_eq!(passed, BURST, "and {denied} were denied");
    assert!(denied > 0);
    let metrics = served.proxy.metrics();
    // A file that is looked at by itself at the moment of the signal is read twice.
    let (applied, failed) = reloads(&metrics);
    assert!(applied >= RELOADS / 2 && failed >= RELOADS / 2, "{applied} applied, {failed} failed");
    let policy = get(address, "/").field("ratelimit-policy").unwrap().to_owned();
    assert!(policy.contains(&format!("q={}", 1_000_000 + RELOADS)), "the last good file is in force: {policy}");
    println!("{RELOADS} reloads under {} requests, none lost", passed + denied);
}
