//! `tidegate tune` as its user meets it: the answers are right, and a replay holds them.

mod support;

use std::fs;

use serde_json::Value;
use support::logs::{apache_logs, figures, line, report};
use support::program::{Run, run, run_in};
use tempfile::TempDir;

#[track_caller]
fn tuned(arguments: &[&str]) -> Value {
    let Run { code, out, err } = run(&[&["tune", apache_logs().to_str().unwrap(), "--json"], arguments].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_real_log_has_the_limits_that_are_known() {
    let answer = tuned(&["--allow", "99%"]);
    assert_eq!(figures(&answer, ["requests", "clients", "most_touched", "unparsed"]), [10_000, 1_753, 17, 0]);
    let first = |place: usize| {
        let period = &answer["periods"][place];
        let smaller = &period["next_smaller"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&period["limit"]), period["touched"].as_u64(), text(&smaller["limit"]), smaller["touched"].as_u64())
    };
    assert_eq!(first(0), ("3/s".to_owned(), Some(3), "2/s".to_owned(), Some(27)));
    assert_eq!(first(1), ("18/min".to_owned(), Some(13), "17/min".to_owned(), Some(23)));
    assert_eq!(first(2), ("33/h".to_owned(), Some(17), "32/h".to_owned(), Some(27)));
    let of_ten = answer["periods"][1]["candidates"].as_array().unwrap();
    let of_ten = of_ten.iter().find(|candidate| candidate["count"] == 10).unwrap();
    assert_eq!((&of_ten["burst"], &of_ten["touched"]), (&25.into(), &15.into()));
    assert_eq!(of_ten["next_smaller"], serde_json::json!({ "limit": "10/min burst 24", "touched": 18, "denied": 349 }));

    // The program that replays says the same of them, and of the next smaller ones.
    for candidate in answer["periods"].as_array().unwrap().iter().chain([of_ten]) {
        for limit in [candidate, &candidate["next_smaller"]] {
            let replayed = report(&apache_logs(), &["--limit", limit["limit"].as_str().unwrap()]);
            assert_eq!(
                figures(&replayed, ["denied_clients", "denied"]),
                figures(limit, ["touched", "denied"]),
                "{limit}"
            );
        }
    }
}

#[test]
fn the_answer_is_a_table_and_a_file_to_start_from() {
    let folder = TempDir::new().unwrap();
    let log = apache_logs();
    let arguments = ["tune", log.to_str().unwrap(), "--allow", "99%", "--period", "min", "--write", "tidegate.toml"];
    let Run { code, out, err } = run_in(folder.path(), &arguments);
    assert_eq!((code, err.as_str()), (Some(0), "wrote tidegate.toml\n"));
    for said in [
        "99% of clients untouched: at most 17 may be touched",
        "18/min         touches 13 clients, 310 requests; 17/min touches 23 clients, 363 requests",
        "10/min burst 25              25 ",
    ] {
        assert!(out.contains(said), "no {said:?} in\n{out}");
    }
    let checked = run_in(folder.path(), &["check", "--config", "tidegate.toml"]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    let replayed = report(&log, &["--config", folder.path().join("tidegate.toml").to_str().unwrap()]);
    assert_eq!(figures(&replayed, ["denied_clients", "denied"]), [13, 310]);
    let mut proxy = support::program::Proxy::start_in(folder.path(), &["--config", "tidegate.toml"]);
    assert!(proxy.said().contains("18/min"), "{}", proxy.said());
    proxy.signal("TERM");
    assert!(proxy.ended().success());

    let again = run_in(folder.path(), &arguments);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("tidegate.toml is there already"), "{}", again.err);
}

#[test]
fn whose_requests_are_counted_together_can_be_said() {
    let folder = TempDir::new().unwrap();
    let log: String =
        (0..300).map(|i| line(i % 3, i / 10, &format!("/v1/{}/x", ["ann", "bob"][i as usize % 2]))).collect();
    fs::write(folder.path().join("log"), log).unwrap();
    let tune = |key: &str| {
        let Run { code, out, err } =
            run_in(folder.path(), &["tune", "log", "--key", key, "--allow", "100%", "--period", "s", "--json"]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let answer: Value = serde_json::from_str(&out).unwrap();
        (figures(&answer, ["clients"])[0], answer["periods"][0]["limit"].clone())
    };
    assert_eq!(tune("client"), (3, "4/s".into()));
    assert_eq!(tune("segment:2"), (2, "5/s".into()));
    assert_eq!(tune("global"), (1, "10/s".into()));
}

#[test]
fn a_mistake_is_refused_with_what_was_likely_meant() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("log"), line(1, 0, "/")).unwrap();
    for (arguments, message) in [
        (&["--allow", "99"][..], "expected a share in percent, such as 99.9%"),
        (&["--allow", "101%"], "expected a share in percent, such as 99.9%"),
        (&["--period", "m"], "`m` could be a minute or a month"),
        (&["--period", "fortnight"], "fortnight"),
        (&["--of", "users"], "expected clients or requests"),
        (&["--key", "x-api-key"], "did you mean `header:x-api-key`?"),
        (&["--since", "noon"], "--since: `noon` is no moment"),
        (&["--limit", "1/s"], "unexpected argument '--limit'"),
    ] {
        let Run { code, out, err } = run_in(folder.path(), &[&["tune", "log"], arguments].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?} said {err}");
        assert!(err.starts_with("error: ") && err.contains(message), "{arguments:?} said {err}");
    }
    fs::write(folder.path().join("log"), "").unwrap();
    let Run { code, out, err } = run_in(folder.path(), &["tune", "log", "--write", "x.toml"]);
    assert_eq!((code, err.as_str()), (Some(1), "error: there are no requests to find a limit from\n"), "{out}");
    assert!(!folder.path().join("x.toml").exists());
}
