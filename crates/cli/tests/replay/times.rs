//! When requests came: out of order, in zones, in several logs at once.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::support::logs::{figures, line, report};
use super::support::program::{Run, run_in};
use super::{FIGURES, folder, replay};

#[test]
fn br_061_a_replayed_log_forgets_what_passed_a_period_ago() {
    let requests: String = [0, 4, 8, 9, 10, 13, 14].map(|second| line(1, second, "/")).concat();
    let folder = folder("log", requests.as_bytes());
    let denied = |arguments: &[&str]| figures(&report(&folder.path().join("log"), arguments), ["denied"])[0];
    // Those at 9 and 13 come a second early.
    assert_eq!(denied(&["--limit", "3/10s", "--algorithm", "sliding-log"]), 2);
    assert_eq!(denied(&["--limit", "3/10s", "--limit", "6/min", "--algorithm", "sliding-log"]), 2);
    assert_eq!(denied(&["--limit", "3/10s", "--limit", "4/min", "--algorithm", "sliding-log"]), 3);
}

#[test]
fn br_184_a_slow_response_is_replayed_when_its_request_came() {
    let second = |minute: u32, second: u32| line(1, minute * 60 + second, "/");
    let folder = folder("log", [second(5, 24), second(0, 22), second(5, 25)].concat().as_bytes());
    let replay = |reorder: &str| {
        let limits = ["--limit", "1/min", "--reorder", reorder];
        let report = report(&folder.path().join("log"), &limits);
        figures(&report, ["requests", "denied", "late"])
    };
    // In the order of time allow, allow, deny; as they came, with the late one at the stream's time, allow, deny, deny.
    assert_eq!(replay("600"), [3, 1, 0]);
    assert_eq!(replay("1"), [3, 2, 1]);
}

#[test]
fn br_185_times_without_a_zone_are_taken_as_one_that_is_said() {
    let line =
        |time: &str| format!("192.0.2.1:1 [{time}] f b/s1 0/0/0/0/0 200 1 - - ---- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n");
    // The clock in Berlin is put back from 3:00 to 2:00, so that these two are a second apart.
    let log = line("25/Oct/2026:02:59:59.500") + &line("25/Oct/2026:02:00:00.500");
    let Run { out, .. } = replay(log.as_bytes(), &["--limit", "1/2s", "--tz", "Europe/Berlin", "--reorder", "7200"]);
    assert!(
        out.contains("denied     1, ") && out.contains("span       2026-10-25 00:59:59 to 2026-10-25 01:00:00"),
        "{out}"
    );
    assert!(
        out.contains("zone       times that name no zone are taken as Europe/Berlin (--tz names another)"),
        "{out}"
    );
    let Run { out, .. } = replay(log.as_bytes(), &["--limit", "1/2s"]);
    assert!(out.contains("are taken as UTC") && out.contains("late       1 line came later"), "{out}");
}

#[test]
fn logs_that_overlap_are_one_stream() {
    let folder = TempDir::new().unwrap();
    // Of three servers that run beside each other; the third rotated its log, and is named in the wrong order.
    let of = |server: u32, from: u32, to: u32| -> String {
        (from..to).map(|second| line(second % 5, second, &format!("/{server}"))).collect()
    };
    let logs = [("c2", of(3, 900, 1_800)), ("a", of(1, 0, 1_800)), ("b", of(2, 0, 1_800)), ("c1", of(3, 0, 900))];
    logs.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    let names = logs.each_ref().map(|(name, _)| *name);
    let all = run_in(folder.path(), &[&["replay", "--json", "--limit", "20/min burst 5"], &names[..]].concat());
    let all: Value = serde_json::from_str(&all.out).unwrap();
    assert_eq!((figures(&all, ["requests", "late"]), all["logs"].as_array().unwrap().len()), ([5_400, 0], 4));

    // The same in one file, in the order of time.
    let one: String = (0..1_800).flat_map(|second| [1, 2, 3].map(|_| line(second % 5, second, "/"))).collect();
    let one: Value =
        serde_json::from_str(&replay(one.as_bytes(), &["--json", "--limit", "20/min burst 5"]).out).unwrap();
    assert_eq!(figures(&all, FIGURES), figures(&one, FIGURES));
    assert!(figures(&one, ["denied"]) > [1_000]);
}
