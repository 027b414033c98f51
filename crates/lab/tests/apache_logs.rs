//! A real log of 10,000 lines, half of them out of order by up to a minute.
//!
//! It lies beside the checkout, not in it: `Common Data Formats/apache_logs` of elastic/examples. A model in another
//! language, of a few lines and in exact fractions, counts the same.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tidegate_core::{Limit, Mode};
use tidegate_lab::log::{Feed, Feeds, Source, Zone};
use tidegate_lab::replay::{Options, Report, replay, to_json};
use tidegate_lab::tune::{Ask, Of, to_json as tune_to_json, tune};
use tidegate_policy::{ClientAddress, KeyParts, Policies, Policy};

/// Names another place of the log.
const APACHE_LOGS: &str = "TIDEGATE_APACHE_LOGS";

fn log() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/lab is two folders down");
    std::env::var_os(APACHE_LOGS).map_or_else(|| root.join("../shared/data/apache_logs"), PathBuf::from)
}

/// Is it not there? Then it is said, past what captures the words of tests, and there is nothing to test.
fn is_absent() -> bool {
    let log = log();
    if !log.exists() {
        let _ = writeln!(std::io::stderr(), "not tested: {} is not there; {APACHE_LOGS} can name it", log.display());
    }
    !log.exists()
}

fn feeds() -> Feeds {
    let source = Source::open(&log()).unwrap();
    Feeds::new(vec![Feed::new(source, None, Zone::UTC).unwrap()])
}

fn policies(limits: &[&str]) -> Policies {
    let limits: Vec<Limit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    let policy = Policy::new("default", KeyParts::default()).with_limits(limits, Mode::Enforce);
    Policies::new(ClientAddress::default(), vec![policy]).unwrap()
}

fn replayed(limit: &str) -> Report {
    replay(&mut feeds(), policies(&[limit]), None, &Options::default(), &mut |_| {})
}

/// The requests, the clients, the denied requests and the denied clients.
fn figures(report: &Report) -> [u64; 4] {
    [report.requests, report.clients, report.outcome.denied, report.outcome.denied_clients]
}

#[test]
fn the_figures_are_those_that_are_known() {
    if is_absent() {
        return;
    }
    let report = replayed("60/min burst 20");
    assert_eq!(figures(&report), [10_000, 1_753, 35, 1]);
    assert_eq!((report.late, report.unparsed, report.outcome.admitted), (0, 0, 9_965));
    assert_eq!(report.logs[0].1, "combined");
    let report = replayed("10/min burst 5");
    assert_eq!(figures(&report), [10_000, 1_753, 1_399, 74]);
    let json = to_json(&report);
    let at = |name: &str| json[name].as_u64();
    assert_eq!((at("requests"), at("clients"), at("admitted")), (Some(10_000), Some(1_753), Some(8_601)));
    assert_eq!((at("denied"), at("denied_clients"), at("unparsed")), (Some(1_399), Some(74), Some(0)));
}

#[test]
fn a_model_in_another_language_counts_the_same() {
    if is_absent() {
        return;
    }
    for (count, period_s, burst) in
        [(60, 60, 20), (10, 60, 5), (1, 1, 1), (7, 3, 2), (33, 3600, 33), (1, 86_400, 3), (2, 1, 2)]
    {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model.py");
        let words = [count, period_s, burst].map(|number: u64| number.to_string());
        let run = Command::new("python3").arg(model).arg(log()).args(words).output().expect("python3 runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let said = String::from_utf8(run.stdout).unwrap();
        let said: Vec<u64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let limit = format!("{count}/{period_s}s burst {burst}");
        assert_eq!(figures(&replayed(&limit)).as_slice(), said, "{limit}");
    }
}

#[test]
fn a_comparison_says_what_changes() {
    if is_absent() {
        return;
    }
    let options = Options::default();
    let report = replay(
        &mut feeds(),
        policies(&["60/min burst 20"]),
        Some(policies(&["10/min burst 5"])),
        &options,
        &mut |_| {},
    );
    assert_eq!(figures(&report), [10_000, 1_753, 35, 1]);
    let there = report.comparison.unwrap();
    assert_eq!((there.outcome.denied, there.outcome.denied_clients), (1_399, 74));
    assert_eq!(there.newly_denied - there.newly_admitted, 1_399 - 35);
    assert_eq!((there.newly_denied_clients, there.newly_admitted_clients), (73, 0));
}

#[test]
fn several_limits_are_charged_together_or_not_at_all() {
    if is_absent() {
        return;
    }
    let both =
        replay(&mut feeds(), policies(&["60/min burst 20", "10/min burst 5"]), None, &Options::default(), &mut |_| {});
    // Whatever the looser one would deny alone, the tighter one denies before.
    assert_eq!(both.outcome.denied, 1_399);
    assert_eq!(both.outcome.limits[1].denied, 1_399);
}

#[test]
fn what_tune_answers_is_what_a_replay_finds() {
    if is_absent() {
        return;
    }
    let ask = Ask {
        allow: "99%".parse().unwrap(),
        of: Of::Clients,
        periods: [1, 60, 3_600].map(Duration::from_secs).to_vec(),
        set_apart: Vec::new(),
    };
    let client = ClientAddress::default();
    let answer = tune(&mut feeds(), &KeyParts::default(), client, ask, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!((answer.clients, answer.most_touched), (1_753, 17));
    let first: Vec<_> = answer
        .periods
        .iter()
        .map(|period| {
            let (smaller, touch) = period.first.smaller.unwrap();
            (period.first.quota.to_string(), period.first.touch.clients, smaller.to_string(), touch.clients)
        })
        .collect();
    let known = [("3/s", 3, "2/s", 27), ("18/min", 13, "17/min", 23), ("33/h", 17, "32/h", 27)];
    assert_eq!(
        first,
        known.map(|(limit, touched, smaller, more)| (limit.to_owned(), touched, smaller.to_owned(), more))
    );
    let ten = answer.periods[1].candidates.iter().find(|candidate| candidate.quota.rate().count() == 10).unwrap();
    assert_eq!((ten.quota.to_string(), ten.touch.clients), ("10/min burst 25".to_owned(), 15));
    assert_eq!(ten.smaller.map(|(quota, touch)| (quota.burst(), touch.clients)), Some((24, 18)));
    assert_eq!(tune_to_json(&answer)["periods"][0]["limit"], "3/s");

    for period in &answer.periods {
        for candidate in [&period.first].into_iter().chain(&period.candidates) {
            let report = replayed(&candidate.quota.to_string());
            assert_eq!(report.outcome.denied_clients, candidate.touch.clients, "{}", candidate.quota);
            assert_eq!(report.outcome.denied, candidate.touch.denied, "{}", candidate.quota);
            assert!(candidate.touch.clients <= 17);
            if let Some((_, touch)) = candidate.smaller {
                assert!(touch.clients > 17, "{}", candidate.quota);
            }
        }
    }
}

#[test]
fn of_requests_as_well() {
    if is_absent() {
        return;
    }
    let ask = Ask {
        allow: "99%".parse().unwrap(),
        of: Of::Requests,
        periods: vec![Duration::from_secs(60)],
        set_apart: vec![],
    };
    let client = ClientAddress::default();
    let answer = tune(&mut feeds(), &KeyParts::default(), client, ask, &Options::default(), &mut |_| {}).unwrap();
    let first = &answer.periods[0].first;
    assert!(first.touch.denied <= 100 && first.smaller.unwrap().1.denied > 100, "{first:?}");
    assert_eq!(replayed(&first.quota.to_string()).outcome.denied, first.touch.denied);
}
