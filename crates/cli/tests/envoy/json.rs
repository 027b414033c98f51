//! What the rate limit service decides, asked in JSON.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Asked, written};
use crate::support::program::run;

/// A call whose descriptors have one entry each; what stands behind a `|` is the rest of the descriptor.
fn call(descriptors: &[&str]) -> String {
    let each = descriptors.iter().map(|text| {
        let (entry, more) = text.split_once('|').unwrap_or((text, ""));
        let (key, value) = entry.split_once('=').unwrap();
        format!(r#"{{"entries":[{{"key":"{key}","value":"{value}"}}]{more}}}"#)
    });
    format!(r#"{{"domain":"d","descriptors":[{}]}}"#, each.collect::<Vec<_>>().join(","))
}

fn rules(folder: &TempDir, descriptors: &str) -> std::path::PathBuf {
    written(folder.path(), "rules.yaml", &format!("domain: d\ndescriptors:\n{descriptors}"))
}

fn limit(key: &str, number: u32, unit: &str) -> String {
    format!("  - {{key: {key}, rate_limit: {{unit: {unit}, requests_per_unit: {number}}}}}\n")
}

/// The code and what is left of each descriptor.
fn seen(told: &Value) -> Vec<(&str, u64)> {
    let each = told["statuses"].as_array().unwrap().iter();
    each.map(|status| (status["code"].as_str().unwrap(), status["limitRemaining"].as_u64().unwrap_or(0))).collect()
}

#[test]
fn br_138_hits_of_each_descriptor_and_br_139_all_or_nothing() {
    let folder = TempDir::new().unwrap();
    let rules = rules(&folder, &(limit("calls", 10, "day") + &limit("bytes", 10_000, "day")));
    for algorithm in ["fixed-window", "token-bucket"] {
        let asked = Asked::by(&rules, &["--ratelimit-algorithm", algorithm]);
        let call = call(&["calls=a", r#"bytes=a|,"hitsAddend":1500"#]);
        for i in 1..=6 {
            let told = asked.told(&call);
            assert_eq!(seen(&told), [("OK", 10 - i), ("OK", 10_000 - 1_500 * i)], "{algorithm} {told}");
        }
        for _ in 7..=8 {
            let told = asked.told(&call);
            assert_eq!(told["overallCode"], "OVER_LIMIT");
            assert_eq!(seen(&told), [("OK", 4), ("OVER_LIMIT", 1_000)], "{algorithm} {told}");
        }
    }
}

#[test]
fn br_139_the_short_limit_denies_and_the_long_one_is_not_charged_in_either_order() {
    let folder = TempDir::new().unwrap();
    let rules = rules(&folder, &(limit("short", 10, "hour") + &limit("long", 30, "year")));
    for order in [["short=a", "long=a"], ["long=a", "short=a"]] {
        let asked = Asked::by(&rules, &["--ratelimit-algorithm", "token-bucket"]);
        let passed = (0..31).filter(|_| asked.told(&call(&order))["overallCode"] == "OK").count();
        let told = asked.told(&call(&order));
        let of = |key: &str| &told["statuses"][order.iter().position(|entry| entry.starts_with(key)).unwrap()];
        assert_eq!((passed, of("long")["limitRemaining"].as_u64()), (10, Some(20)), "{told}");
        // One of ten an hour comes back each six minutes.
        let wait = of("short")["durationUntilReset"].as_str().unwrap().trim_end_matches('s').parse::<u64>().unwrap();
        assert!((300..=360).contains(&wait), "{told}");
    }
}

#[test]
fn br_046_nothing_said_is_one_hit_and_zero_said_is_a_look() {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&rules(&folder, &limit("k", 2, "day")), &[]);
    let look = call(&[r#"k=a|,"hitsAddend":0"#]);
    let one = r#"{"domain":"d","hitsAddend":0,"descriptors":[{"entries":[{"key":"k","value":"a"}]}]}"#;
    for (call, expected) in [
        (look.as_str(), ("OK", 2)),
        (one, ("OK", 1)),
        (&look, ("OK", 1)),
        (one, ("OK", 0)),
        (&look, ("OK", 0)),
        (one, ("OVER_LIMIT", 0)),
        (&look, ("OK", 0)),
    ] {
        assert_eq!(seen(&asked.told(call)), [expected], "{call}");
    }
}

#[test]
fn br_083_a_denial_under_one_limit_is_none_under_another() {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&rules(&folder, ""), &[]);
    let bringing = |number: u32| call(&[&format!(r#"k=a|,"limit":{{"requestsPerUnit":{number},"unit":"DAY"}}"#)]);
    (0..5).for_each(|i| assert_eq!(seen(&asked.told(&bringing(5))), [("OK", 4 - i)]));
    assert_eq!(seen(&asked.told(&bringing(5))), [("OVER_LIMIT", 0)]);
    let told = asked.told(&bringing(100));
    assert_eq!(seen(&told), [("OK", 99)]);
    assert_eq!(told["statuses"][0]["currentLimit"], json!({"requestsPerUnit": 100, "unit": "DAY"}));
    let wrong = asked.json(&call(&[r#"k=a|,"limit":{"requestsPerUnit":5}"#]));
    assert_eq!((wrong.status, wrong.text().contains("without a unit")), (400, true), "{wrong:?}");
}

#[test]
fn br_084_who_was_refused_and_gets_a_higher_limit_has_all_of_it_also_through_a_swapped_link() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, number) in [("..v1", 10), ("..v2", 20)] {
        fs::create_dir(at(version)).unwrap();
        written(&at(version), "d.yaml", &format!("domain: d\ndescriptors:\n{}", limit("k", number, "day")));
    }
    symlink("..v1", at("..data")).unwrap();
    symlink("..data/d.yaml", at("d.yaml")).unwrap();
    let asked = Asked::by(folder.path(), &["--ratelimit-algorithm", "token-bucket"]);
    let passing = |count| (0..count).filter(|_| asked.told(&call(&["k=a"]))["overallCode"] == "OK").count();
    assert_eq!(passing(50), 10);
    symlink("..v2", at("..next")).unwrap();
    fs::rename(at("..next"), at("..data")).unwrap();
    asked.server.wait_for("was read anew; rules in force: 1");
    assert_eq!(passing(15), 10);
    // What is wrong changes nothing, and is told.
    fs::write(at("..v2").join("d.yaml"), "domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: dya}}\n").unwrap();
    let said = asked.server.wait_for("nothing was changed: the rules that were in force go on");
    assert!(said.contains(":3:33: `dya` is not known; did you mean `day`?"), "{said}");
    assert_eq!(asked.told(&call(&["k=b"]))["statuses"][0]["currentLimit"]["requestsPerUnit"], 20);
}

#[test]
fn br_161_series_come_from_the_files_and_br_163_from_admitted_calls() {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&rules(&folder, &limit("k", 5, "day")), &[]);
    asked.told(&call(&["k=a"]));
    let before = asked.server.metrics().series().len();
    for i in 0..200 {
        asked.told(&call(&[
            &format!("k={i}"),
            &format!(r#"other{i}=x|,"limit":{{"requestsPerUnit":{},"unit":"HOUR"}}"#, i + 1),
        ]));
    }
    assert_eq!(asked.server.metrics().series().len(), before);
    for i in 1..=6 {
        let told = asked.told(&call(&["k=a"]));
        assert_eq!(seen(&told)[0].1, 4_u64.saturating_sub(i));
    }
    assert_eq!((asked.server.decisions("k", "allowed"), asked.server.decisions("k", "denied")), (205, 2));
    assert_eq!(asked.server.decisions("brought", "allowed"), 200);
}

#[test]
fn br_141_rules_and_policies_apply_together() {
    let folder = TempDir::new().unwrap();
    let rules = rules(&folder, &(limit("user", 100, "day") + "  - {key: free, rate_limit: {unlimited: true}}\n"));
    let policy = "[[policies]]\nname = \"all\"\nmatch = { host = \"d\" }\nkey = \"claim:user\"\nlimits = \"3/day\"\non_missing = \"skip\"\n";
    let config = written(folder.path(), "tidegate.toml", policy);
    let asked = Asked::by(&rules, &["--config", config.to_str().unwrap()]);
    for i in 0..3 {
        let told = asked.told(&call(&["user=ann", "free=x"]));
        assert_eq!(seen(&told), [("OK", 2 - i), ("OK", u32::MAX.into())], "{told}");
        assert_eq!(told["statuses"][0]["currentLimit"]["name"], "all.limit-1");
    }
    let told = asked.told(&call(&["user=ann"]));
    assert_eq!(seen(&told), [("OVER_LIMIT", 0)]);
    assert_eq!(seen(&asked.told(&call(&["free=x"]))), [("OK", u32::MAX.into())]);
    // The rule was not charged for what the policy denied.
    assert_eq!((asked.server.decisions("user", "allowed"), asked.server.decisions("limit-1", "denied")), (4, 1));
}

#[test]
fn what_is_replaced_in_shadow_or_a_quota_is_so() {
    let folder = TempDir::new().unwrap();
    let rules = rules(
        &folder,
        "  - {key: a, rate_limit: {unit: day, requests_per_unit: 1, name: general}}
  - {key: b, rate_limit: {unit: day, requests_per_unit: 5, replaces: [{name: general}]}}
  - {key: s, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: q, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: r, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
",
    );
    let asked = Asked::by(&rules, &[]);
    for left in [4, 3] {
        let told = asked.told(&call(&["a=x", "b=x"]));
        assert_eq!(seen(&told), [("OK", 0), ("OK", left)]);
        assert_eq!(told["statuses"][0].get("currentLimit"), None);
    }
    (0..3).for_each(|_| assert_eq!(asked.told(&call(&["s=x"]))["overallCode"], "OK"));
    assert_eq!(asked.server.decisions("s", "denied"), 2);
    let codes = |told: &Value| (told["overallCode"].clone(), told["statuses"][0]["code"].clone());
    let both = call(&["q=x", "r=x"]);
    assert_eq!(codes(&asked.told(&both)), (json!("OK"), json!("OK")));
    assert_eq!(codes(&asked.told(&both)), (json!("OK"), json!("OVER_LIMIT")));
    assert_eq!(codes(&asked.told(&both)), (json!("OVER_LIMIT"), json!("OVER_LIMIT")));
}

#[test]
fn what_is_given_back_is_there_again_at_most_to_full() {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&rules(&folder, &limit("k", 5, "day")), &[]);
    let back = |number| call(&[&format!(r#"k=a|,"hitsAddend":{number},"isNegativeHits":true"#)]);
    (0..5).for_each(|_| assert_eq!(asked.told(&call(&["k=a"]))["overallCode"], "OK"));
    assert_eq!(seen(&asked.told(&back(2))), [("OK", 2)]);
    assert_eq!(seen(&asked.told(&back(9))), [("OK", 5)]);
}

#[test]
fn calls_that_say_nothing_or_too_much_are_refused() {
    let folder = TempDir::new().unwrap();
    let rules = rules(&folder, &limit("k", 5, "day"));
    let asked = Asked::by(&rules, &[]);
    let many: Vec<_> = (0..17).map(|i| format!("k={i}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (call, message) in [
        (r#"{"domain":"","descriptors":[]}"#.to_owned(), "the domain is empty"),
        (r#"{"domain":"d","descriptors":[]}"#.to_owned(), "there is no descriptor"),
        (r#"{"domain":"d","descriptors":[{}]}"#.to_owned(), "a descriptor has no entries"),
        (call(&["=x"]), "one whose key is empty"),
        (call(&many), "more than 16 charges"),
        (r#"{"domian":"d"}"#.to_owned(), "has no field"),
    ] {
        let reply = asked.json(&call);
        assert_eq!((reply.status, reply.text().contains(message)), (400, true), "{message}: {reply:?}");
    }
    // None of it was charged.
    assert_eq!(seen(&asked.told(&call(&["k=3"]))), [("OK", 4)]);
    let broken = written(folder.path(), "broken.yaml", "domain: d\ndescripters: []\n");
    let run = run(&["serve", "--ratelimit-config", broken.to_str().unwrap()]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("broken.yaml:2:1: a file of descriptors has no key `descripters`"), "{}", run.err);
}
