//! Algorithms side by side, sweeps, and what they say for machines.

use serde_json::Value;
use tidegate_core::Algorithm;
use tidegate_lab::simulate::race::Race;
use tidegate_lab::simulate::{Contestant, Keyed, Report, SimulateError, Simulation, Sweep, demonstrated};

use crate::{limit, run, simulation, snapshot};

fn demonstration() -> Report {
    let limits = [limit("59/min")];
    let all: Vec<_> =
        demonstrated().into_iter().map(|algorithm| Contestant::new(algorithm, &limits).unwrap()).collect();
    simulation(&["edge-burst"]).run(&all).unwrap()
}

#[test]
fn the_demonstration_makes_the_trap_obvious_on_one_screen() {
    let text = demonstration().to_text();
    let plain = snapshot::plain(&text);
    assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
    assert!(plain.lines().count() <= 24, "{plain}");
    snapshot::check("demonstration.txt", &text);
}

#[test]
fn the_demonstration_has_its_numbers() {
    let json = demonstration().to_json();
    let number = |algorithm: &str, name: &str| {
        let results = json["results"].as_array().unwrap();
        results.iter().find(|row| row["algorithm"] == algorithm).map(|row| row[name].as_u64().unwrap())
    };
    for (algorithm, most) in [("fixed-window", 118), ("sliding-log", 59), ("sliding-counter", 59), ("token-bucket", 60)]
    {
        assert_eq!(number(algorithm, "admitted"), Some(most), "{algorithm}");
        assert_eq!(number(algorithm, "denied"), Some(118 - most), "{algorithm}");
        assert_eq!(number(algorithm, "worst_second"), Some(59), "{algorithm}");
        assert_eq!(number(algorithm, "worst_minute"), Some(most), "{algorithm}");
        assert_eq!(number(algorithm, "worst_period"), Some(most), "{algorithm}");
        assert_eq!(number(algorithm, "overshoot"), Some(most - 59), "{algorithm}");
    }
}

#[test]
fn a_period_that_is_neither_a_second_nor_a_minute_has_a_column_of_its_own() {
    let limits = [limit("600/15min")];
    let all: Vec<_> =
        demonstrated().into_iter().map(|algorithm| Contestant::new(algorithm, &limits).unwrap()).collect();
    let text = simulation(&["mix"]).run(&all).unwrap().to_text();
    assert!(snapshot::plain(&text).lines().all(|line| line.chars().count() <= 80), "{text}");
    snapshot::check("mix-15min.txt", &text);
}

#[test]
fn several_limits_are_charged_all_or_none() {
    let contestant = Contestant::new(Algorithm::TokenBucket, &[limit("5/min"), limit("50/h")]).unwrap();
    let simulation =
        Simulation { length: Some(std::time::Duration::from_secs(3_600)), ..simulation(&["steady:rate=60/min"]) };
    let row = simulation.run(&[contestant]).unwrap().rows.remove(0);
    // The burst of 50 goes at five a minute, then one passes for each that the hour brings back.
    assert_eq!(row.arrivals, 3_600);
    assert!((90..=100).contains(&row.admitted), "{}", row.admitted);
    assert_eq!(row.state_bytes, Some(32));
}

#[test]
fn all_clients_can_share_one_bucket() {
    let alone = run("steady:clients=10", "60/min");
    assert_eq!((alone.denied, alone.keys), (0, 10));
    let contestant = Contestant::new(Algorithm::TokenBucket, &[limit("60/min")]).unwrap();
    let shared = Simulation { keyed: Keyed::Global, ..simulation(&["steady:clients=10"]) };
    let shared = shared.run(&[contestant]).unwrap().rows.remove(0);
    assert_eq!((shared.arrivals, shared.admitted, shared.keys), (3_000, 60 + 299, 1));
}

#[test]
fn a_sweep_tries_both_ends() {
    let sweep: Sweep = "burst=1..50".parse().unwrap();
    let swept = sweep.run(&simulation(&["page-load:clients=1"]), limit("60/min"), &[Algorithm::TokenBucket]).unwrap();
    let json = swept.to_json();
    let results = json["results"].as_array().unwrap();
    let of = |name: &str| results.iter().map(|row| row[name].as_u64().unwrap()).collect::<Vec<_>>();
    let values = of("value");
    assert_eq!((values.first(), values.last(), json["swept"].as_str()), (Some(&1), Some(&50), Some("burst")));
    assert!(of("false_denials").is_sorted_by(|a, b| a >= b), "a larger burst denies no more");
    assert!(of("admitted").is_sorted(), "and lets no less pass");
    assert!(of("requests").iter().all(|requests| *requests == of("requests")[0]), "the same traffic for all");
    let text = swept.to_text();
    assert!(snapshot::plain(&text).lines().all(|line| line.chars().count() <= 80), "{text}");
    snapshot::check("sweep.txt", &text);
}

#[test]
fn what_cannot_be_swept_says_what_can() {
    for (text, wanted) in [
        ("burst", "nothing is swept"),
        ("period=1..2", "`period` cannot be swept"),
        ("burst=5", "a range has two ends"),
        ("burst=0..5", "whole numbers from 1"),
        ("burst=9..5", "the smaller first"),
        ("rate=1..9:0", "a step is a whole number"),
        ("rate=1..100000:1", "more than 1000 values"),
    ] {
        let error = text.parse::<Sweep>().unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains("burst=1..50"), "{error}");
    }
}

#[test]
fn limits_that_an_algorithm_does_not_take_are_refused_by_name() {
    let error = Contestant::new(Algorithm::FixedWindow, &[limit("60/min burst 5")]).unwrap_err();
    assert!(error.to_string().starts_with("`60/min burst 5` under fixed-window: "), "{error}");
    let unlimited = Contestant::new(Algorithm::TokenBucket, &[limit("unlimited")]).unwrap_err();
    assert_eq!(unlimited, SimulateError::Unlimited);
    let blocked = run("steady:rate=1/s", "0/min");
    assert_eq!((blocked.admitted, blocked.denied, blocked.never), (0, 300, 300));
}

#[test]
fn the_race_is_shown_for_people_and_for_machines() {
    let quota = limit("59/min").quota().unwrap();
    let race = Race::run(quota, 2);
    snapshot::check("race.txt", &race.to_text());
    let json: Value = race.to_json();
    let most: Vec<_> = json["results"].as_array().unwrap().iter().map(|row| row["most_admitted"].as_u64()).collect();
    assert_eq!(most, [Some(2), Some(1), Some(1)]);
}
