//! `tidegate tune` as its user meets it: the answers are right, and a replay holds them.

mod support;

use std::fs;

use serde_json::Value;
use support::logs::{apache_logs, figures, line, real_log_is_absent, report};
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
    if real_log_is_absent() {
        return;
    }
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
    if real_log_is_absent() {
        return;
    }
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
fn robots_and_floods_are_set_apart_when_that_is_asked_for() {
    let folder = TempDir::new().unwrap();
    // Five people, a robot of many requests, and a flood.
    let people = (0..100).map(|i| line(i % 5, i, "/"));
    let robot = (0..100).map(|i| line(7, i, "/").replace("\"-\"\n", "\"Somebot/1.0\"\n"));
    let flood = (0..200).map(|i| line(9, i / 20, "/"));
    fs::write(folder.path().join("log"), people.chain(robot).chain(flood).collect::<String>()).unwrap();
    let tune = |more: &[&str]| {
        let arguments = [&["tune", "log", "--allow", "100%", "--period", "min"], more].concat();
        let Run { code, out, err } = run_in(folder.path(), &arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{more:?}");
        out
    };
    let json = |more: &[&str]| -> Value { serde_json::from_str(&tune(&[more, &["--json"]].concat())).unwrap() };
    assert_eq!(json(&[])["clients"], 7);
    let apart = json(&["--set-apart", "robots,floods"]);
    let [robots, floods] = [0, 1].map(|place| figures(&apart["set_apart"][place], ["clients", "requests"]));
    assert_eq!((&apart["clients"], robots, floods), (&5.into(), [1, 100], [1, 200]));
    let first = &apart["periods"][0];
    assert_eq!(figures(first, ["touched", "denied", "touched_apart"]), [0, 0, 2]);
    assert!(first["count"].as_u64() < json(&["--set-apart", "robots"])["periods"][0]["count"].as_u64());
    // A replay finds both.
    let replayed = report(&folder.path().join("log"), &["--limit", first["limit"].as_str().unwrap()]);
    assert_eq!(replayed["denied"], first["denied_apart"]);
    let said = tune(&["--set-apart", "floods"]);
    assert!(said.contains("set apart: 1 floods with 200 requests (50 requests or more within 10 seconds)"), "{said}");
}

#[test]
fn the_trade_off_is_drawn() {
    if real_log_is_absent() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for (name, head) in [("burst.svg", &b"<svg "[..]), ("burst.png", b"\x89PNG")] {
        let arguments = ["tune", apache_logs().to_str().unwrap(), "--allow", "99%", "--plot", name].map(str::to_owned);
        let Run { code, err, .. } = run_in(folder.path(), &arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(fs::read(folder.path().join(name)).unwrap().starts_with(head));
    }
    let svg = fs::read_to_string(folder.path().join("burst.svg")).unwrap();
    assert!(svg.contains(">10/min<") && svg.contains(">touches 15, denies 324<"), "{svg}");
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
        (&["--set-apart", "humans"], "expected robots, floods, or both with a comma between them"),
        (&["--plot", "log"], "--plot log: name it FILE.svg or FILE.png"),
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
