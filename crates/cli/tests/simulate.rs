//! `tidegate simulate` as its user meets it.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::program::{Run, run};

/// Runs what must succeed, and returns what it printed.
#[track_caller]
fn answer(arguments: &[&str]) -> String {
    let Run { code, out, err } = run(arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).unwrap()
}

/// This number of this algorithm.
fn number(json: &Value, algorithm: &str, name: &str) -> Option<u64> {
    json["results"].as_array().unwrap().iter().find(|row| row["algorithm"] == algorithm)?[name].as_u64()
}

#[test]
fn without_flags_it_shows_the_trap() {
    let bare = answer(&["simulate"]);
    // The lab's own test holds the same text against its file.
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/snapshots/demonstration.txt");
    assert_eq!(bare, fs::read_to_string(lab).unwrap());
    assert!(!bare.contains('\u{1b}'), "no colours where no terminal is");

    let json = json(&["simulate", "--json"]);
    for (algorithm, most) in [("fixed-window", 118), ("sliding-log", 59), ("sliding-counter", 59), ("token-bucket", 60)]
    {
        let numbers = ["admitted", "denied", "worst_second", "worst_minute", "worst_period"];
        let numbers = numbers.map(|name| number(&json, algorithm, name).unwrap());
        assert_eq!(numbers, [most, 118 - most, 59, most, most], "{algorithm}");
    }
    let written_out = [
        "simulate",
        "--pattern",
        "edge-burst",
        "--limit",
        "59/min",
        "--algorithm",
        "fixed-window,sliding-log,sliding-counter,token-bucket",
    ];
    let written_out: Value = self::json(&[&written_out[..], &["--json"]].concat());
    assert_eq!(number(&written_out, "fixed-window", "worst_period"), Some(118));
    assert_eq!(number(&written_out, "token-bucket", "worst_period"), Some(60));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let of = |seed: &str| answer(&["simulate", "--pattern", "poisson:rate=100/s", "--limit", "90/s", "--seed", seed]);
    assert_eq!(of("7"), of("7"));
    assert_ne!(of("7"), of("8"));
}

#[test]
fn a_limit_with_a_burst_is_shown_by_those_who_take_it() {
    let json = json(&["simulate", "--limit", "60/min burst 10", "--pattern", "burst:count=20", "--json"]);
    assert_eq!(json["results"].as_array().unwrap().len(), 1);
    assert_eq!(number(&json, "token-bucket", "false_denials"), number(&json, "token-bucket", "denied"));
}

#[test]
fn policies_of_a_file_decide_beside_limits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages.toml");
    fs::write(&file, "[[policies]]\nname = \"all\"\nlimits = \"59/min\"\n").unwrap();
    let file = file.to_str().unwrap();
    let alone = json(&["simulate", "--config", file, "--pattern", "edge-burst:count=59", "--json"]);
    assert_eq!(number(&alone, "pages", "admitted"), Some(60), "{alone}");
    let beside = json(&["simulate", "--config", file, "--limit", "59/min", "--json"]);
    assert_eq!(number(&beside, "pages", "admitted"), number(&beside, "token-bucket", "admitted"));
    fs::write(file, "[[policies]]\nname = \"all\"\nlimits = \"59/m\"\n").unwrap();
    let Run { code, err, .. } = run(&["simulate", "--config", file]);
    assert!(code == Some(2) && err.contains("pages.toml:3"), "{err}");
}

#[test]
fn it_draws_in_the_terminal_and_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("edge.svg");
    answer(&["simulate", "--plot", picture.to_str().unwrap()]);
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("prefers-color-scheme:dark") && svg.ends_with("</svg>\n"));
    let picture = folder.path().join("edge.PNG");
    answer(&["simulate", "--plot", picture.to_str().unwrap()]);
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(answer(&["simulate", "--plot"]).contains("\u{2588}\u{2588}"));
    let Run { code, err, .. } = run(&["simulate", "--plot", "edge.gif"]);
    assert!(code == Some(2) && err.contains("name it FILE.svg or FILE.png"), "{err}");
}

#[test]
fn it_sweeps_and_races() {
    let swept = json(&[
        "simulate",
        "--pattern",
        "page-load:clients=1",
        "--limit",
        "60/min",
        "--sweep",
        "burst=1..50",
        "--json",
    ]);
    let results = swept["results"].as_array().unwrap();
    assert_eq!((&results[0]["value"], &results.last().unwrap()["value"]), (&1.into(), &50.into()));
    let race = json(&["simulate", "--race", "--clients", "3", "--json"]);
    let most: Vec<_> = race["results"].as_array().unwrap().iter().map(|row| row["most_admitted"].as_u64()).collect();
    assert_eq!(most, [Some(3), Some(1), Some(1)]);
}

#[test]
fn what_is_wrong_is_said_with_what_is_known() {
    for (arguments, message) in [
        (&["--pattern", "edge"][..], "there is no pattern `edge`; did you mean `edge-burst`?"),
        (
            &["--pattern", "steady:rte=1/s"],
            "did you mean `rate`? There are rate, clients, cost\n  steady:rte=1/s\n         ^",
        ),
        (&["--pattern", "steady:rate=often"], "error: column 13: `rate=often`: expected a rate"),
        (&["--pattern", "steady:rate=1e12"], "column 14: `rate=1e12`: expected a rate such as `60/min`"),
        (&["--json", "--plot"], "--plot beside --json takes a file"),
        (&["--clients", "1000000000"], "1000000000 is not in 1..=1000000"),
        (&["--duration", "1000y"], "of at most a year"),
        (&["--pattern", "page-load:clients=1000000"], "made of more than 10000000 things"),
        (&["--algorithm", "leaky"], "token-bucket"),
        (&["--limit", "60/min burst 5", "--algorithm", "fixed-window"], "`60/min burst 5` under fixed-window"),
        (&["--duration", "5"], "expected a span"),
        (&["--sweep", "burst=5..1"], "burst=1..50"),
        (&["--race", "--clients", "9"], "from 2 to 4"),
        (&["--limit", "unlimited"], "nothing to see"),
    ] {
        let Run { code, out, err } = run(&[&["simulate"], arguments].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
}

#[test]
fn the_page_on_algorithms_shows_commands_that_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/algorithms.md");
    let (page, folder) = (fs::read_to_string(page).unwrap(), tempfile::tempdir().unwrap());
    let mut count = 0;
    for command in page.lines().filter_map(|line| line.strip_prefix("$ tidegate ")) {
        // None of them has spaces within an argument; what they draw is drawn elsewhere.
        let into = |word: &str| folder.path().join(word).to_str().unwrap().to_owned();
        let is_file = |word: &str| word.starts_with("edge.");
        let words: Vec<_> =
            command.split(' ').map(|word| if is_file(word) { into(word) } else { word.to_owned() }).collect();
        let Run { code, err, .. } = run(&words);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{command}");
        count += 1;
    }
    assert!(count >= 6, "{count} commands");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "an SVG and a PNG picture");
}
