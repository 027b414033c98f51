//! The decision vectors, replayed through a bucket and through the table.
#![cfg(not(loom))]

mod common;

use common::{limit_id, quota, table};
use serde_json::Value;
use tidegate_core::{Algorithm, AtBound, Charge, Cost, Decision, Handling, LimitId, Mode, Outcome, Quota, Time};
use tidegate_memory::{Bucket, Table, TableLimit};

/// The lines of the file, parsed.
fn lines() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/decisions.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 100, "the vectors are there");
    lines
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn number(value: &Value) -> Option<u128> {
    value.as_u64().map(u128::from).or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn at(step: &Value) -> Time {
    Time::from_nanos(step["at_ns"].as_u64().unwrap())
}

fn cost(value: &Value) -> Cost {
    value.get("cost").map_or(Cost::ONE, |cost| Cost::new(cost.as_u64().unwrap()))
}

fn quota_of(line: &Value, limit: &str) -> Quota {
    let algorithm: Algorithm = text(line, "algorithm").parse().unwrap();
    quota(limit).with_algorithm(algorithm).unwrap()
}

/// Does the decision say what the line says?
fn assert_answer(decision: &Decision, answer: &Value, context: &str) {
    let outcome = match decision.outcome() {
        Outcome::Allowed => "allowed",
        Outcome::Denied { .. } => "denied",
        Outcome::Never => "never",
    };
    assert_eq!(outcome, text(answer, "outcome"), "{context}");
    assert_eq!(Some(decision.remaining()), answer["remaining"].as_u64(), "{context}");
    assert_eq!(decision.retry_after().map(|wait| wait.as_nanos()), number(&answer["retry_after_ns"]), "{context}");
    assert_eq!(Some(decision.reset_after().as_nanos()), number(&answer["reset_after_ns"]), "{context}");
}

/// What a line of one limit is replayed on.
trait Single {
    fn ask(&self, cost: Cost, now: Time) -> Decision;
    fn replace(&mut self, quota: &Quota, now: Time);
    fn grant(&self, tokens: u64, now: Time);
    fn owe(&self, tokens: u64, now: Time);
}

impl Single for Bucket {
    fn ask(&self, cost: Cost, now: Time) -> Decision {
        self.decide_at(cost, now)
    }

    fn replace(&mut self, quota: &Quota, now: Time) {
        self.replace_at(quota, now);
    }

    fn grant(&self, tokens: u64, now: Time) {
        self.grant_at(tokens, now);
    }

    fn owe(&self, tokens: u64, now: Time) {
        self.owe_at(tokens, now);
    }
}

/// One key of a table, and its limit as it is in force.
struct Keyed<'a>(&'a Table, TableLimit);

impl Single for Keyed<'_> {
    fn ask(&self, cost: Cost, now: Time) -> Decision {
        self.0.check_at(&self.1, &b"key"[..], cost, now)
    }

    fn replace(&mut self, quota: &Quota, now: Time) {
        self.1 = self.0.know(limit_id(), quota, AtBound::Deny).unwrap().in_force_since(now);
    }

    fn grant(&self, tokens: u64, now: Time) {
        self.0.grant_at(limit_id(), &b"key"[..], tokens, now);
    }

    fn owe(&self, tokens: u64, now: Time) {
        // Nothing was reserved, and so much was used.
        let charge = Charge::new(limit_id(), *self.1.quota().quota(), b"key").with_cost(Cost::ZERO);
        self.0.settle_at(&charge, now, Cost::new(tokens), now).unwrap();
    }
}

fn replay(on: &mut impl Single, line: &Value) {
    for (i, step) in line["steps"].as_array().unwrap().iter().enumerate() {
        if let Some(limit) = step.get("replace") {
            on.replace(&quota_of(line, limit.as_str().unwrap()), at(step));
        } else if let Some(tokens) = step.get("grant") {
            on.grant(tokens.as_u64().unwrap(), at(step));
        } else if let Some(tokens) = step.get("owe") {
            on.owe(tokens.as_u64().unwrap(), at(step));
        } else {
            assert_answer(&on.ask(cost(step), at(step)), step, &format!("{}, step {i}", text(line, "name")));
        }
    }
}

#[test]
fn a_bucket_answers_as_every_line_of_one_limit_says() {
    // A log does not fit a bucket.
    let fits = |line: &&Value| line.get("limit").is_some() && text(line, "algorithm") != Algorithm::SlidingLog.name();
    for line in lines().iter().filter(fits) {
        replay(&mut Bucket::new(&quota_of(line, text(line, "limit"))), line);
    }
}

#[test]
fn a_key_of_the_table_answers_as_every_line_of_one_limit_says() {
    for line in lines().iter().filter(|line| line.get("limit").is_some()) {
        let table = table(1_000);
        let quota = quota_of(line, text(line, "limit"));
        let limit = table.know(limit_id(), &quota, AtBound::Deny).unwrap();
        replay(&mut Keyed(&table, limit), line);
    }
}

#[test]
fn the_table_answers_as_every_line_of_several_limits_says() {
    let lines = lines();
    let several: Vec<_> = lines.iter().filter(|line| line.get("limits").is_some()).collect();
    for line in &several {
        replay_several(line);
    }
    assert!(several.len() > 10, "there are such lines");
}

fn replay_several(line: &Value) {
    // One home for all keys, so that some decisions involve several groups.
    let table = table(40);
    for (i, step) in line["steps"].as_array().unwrap().iter().enumerate() {
        let context = format!("{}, step {i}", text(line, "name"));
        let answers = step["charges"].as_array().unwrap();
        let charges: Vec<_> = answers.iter().map(|answer| charge(line, answer)).collect();
        let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let verdict = table.decide_at(&charges, &mut decisions, at(step)).unwrap();
        assert_eq!(Some(verdict.allowed), step["allowed"].as_bool(), "{context}");
        assert_eq!(verdict.binding.map(|i| i as u64), step["binding"].as_u64(), "{context}");
        for (decision, answer) in decisions.iter().zip(answers) {
            assert_answer(decision, answer, &context);
        }
    }
}

fn charge<'a>(line: &Value, answer: &'a Value) -> Charge<'a> {
    let name = text(answer, "limit");
    Charge {
        limit: LimitId::of("vectors", name),
        quota: quota_of(line, text(&line["limits"], name)),
        key: text(answer, "key").as_bytes(),
        cost: cost(answer),
        mode: if answer["mode"] == "shadow" { Mode::Shadow } else { Mode::Enforce },
        handling: Handling::default().with_at_bound(AtBound::Deny),
    }
}
