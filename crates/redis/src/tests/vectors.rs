//! The decision vectors, replayed through the script on each server, on a clock that the test drives.

use std::collections::BTreeSet;

use redis::{Connection, ConnectionLike as _, cmd};
use serde_json::Value;
use tidegate_core::{
    Algorithm, AtBound, CHARGES_MAX, Charge, Cost, Decision, Handling, Limit, LimitId, Mode, Outcome, Quota, Verdict,
};

use super::server::{Kind, Server};
use crate::RedisStore;
use crate::names::Names;
use crate::script::{READS_THE_CLOCK, Script};
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request, replies};

/// The script with two lines changed: the time is an argument, and buckets stay for an hour longer, since the server
/// expires them by its own clock.
pub(super) struct Driven {
    pub(super) connection: Connection,
    script: Script,
    pub(super) names: Names,
}

const EXPIRES: &str = "floor((full - now) / 1000) + 2";

impl Driven {
    pub(super) fn new(server: &Server) -> Self {
        let mut script = Script::new();
        for line in [READS_THE_CLOCK, EXPIRES] {
            assert_eq!(script.source.matches(line).count(), 1, "the script has one such line");
        }
        script.source = script.source.replace(READS_THE_CLOCK, "local time = { ARGV[#KEYS + 1], ARGV[#KEYS + 2] }");
        script.source = script.source.replace(EXPIRES, "3600000");
        Self { connection: server.connection(), script, names: Names::new("test") }
    }

    pub(super) fn call(&mut self, request: &Request, at_us: u64) -> redis::Value {
        let mut call = self.script.by_source([request].into_iter());
        call.arg(at_us / 1_000_000).arg(at_us % 1_000_000);
        self.connection.req_command(&call).unwrap()
    }

    pub(super) fn decide(&mut self, charges: &[Charge<'_>], at_us: u64) -> (Verdict, Vec<Decision>) {
        let unmade = Decision::unmade(&charges[0].quota);
        let mut decisions = [unmade; CHARGES_MAX];
        let decisions = &mut decisions[..charges.len()];
        let asked = Asked::new(charges);
        if asked.is_never() {
            let verdict = Asked::never(charges, decisions);
            return (verdict, decisions.to_vec());
        }
        let request = asked.request(&self.names).unwrap();
        let reply = self.call(&request, at_us);
        let seen = replies(reply, &[request.keys.len()]).remove(0).unwrap();
        let verdict = asked.decide(charges, &seen, decisions).unwrap();
        (verdict, decisions.to_vec())
    }

    pub(super) fn correct(&mut self, charge: &Charge<'_>, act: Act, tokens: u64, at_us: u64) {
        let terms = Terms::of(&charge.quota).unwrap().pack(act, Cost::new(tokens), true);
        self.call(&Request { keys: vec![self.names.bucket(charge)], terms: vec![terms] }, at_us);
    }

    fn forget_all(&mut self) {
        self.connection.req_command(&cmd("FLUSHALL")).unwrap();
    }
}

fn lines() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/decisions.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn quota(line: &Value, limit: &str) -> Quota {
    let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
    quota.with_algorithm(text(line, "algorithm").parse::<Algorithm>().unwrap()).unwrap()
}

fn charge<'a>(quota: Quota, limit: &str, key: &'a str, step: &Value) -> Charge<'a> {
    let cost = step.get("cost").map_or(Cost::ONE, |cost| Cost::new(cost.as_u64().unwrap()));
    let mode = if step.get("mode").is_some_and(|mode| mode == "shadow") { Mode::Shadow } else { Mode::Enforce };
    Charge {
        limit: LimitId::of("test", limit),
        quota,
        key: key.as_bytes(),
        cost,
        mode,
        handling: Handling::default().with_at_bound(AtBound::Displace),
    }
}

/// Whole microseconds, or `None` if the server's clock cannot stand there.
fn at_us(step: &Value) -> Option<u64> {
    let ns = step["at_ns"].as_u64().unwrap();
    // Doubles hold microseconds exactly up to 2^53.
    (ns.is_multiple_of(1_000) && ns / 1_000 < 1 << 52).then_some(ns / 1_000)
}

/// Can a store with a clock of microseconds replay the line, and give its answers exactly?
fn is_fit(line: &Value) -> bool {
    let limits: Vec<&str> = match line.get("limits") {
        Some(limits) => limits.as_object().unwrap().values().map(|limit| limit.as_str().unwrap()).collect(),
        None => vec![text(line, "limit")],
    };
    let steps = line["steps"].as_array().unwrap();
    let fits = limits.iter().all(|limit| RedisStore::takes(&quota(line, limit)).is_ok());
    // A changed limit is converted when a key is next seen, and rounded to a token: other tests are about that.
    fits && steps.iter().all(|step| at_us(step).is_some() && step.get("replace").is_none())
}

fn assert_answer(decision: &Decision, answer: &Value, context: &str) {
    let number = |value: &Value| value.as_u64().map(u128::from).or_else(|| value.as_str()?.parse().ok());
    let outcome = match decision.outcome() {
        Outcome::Allowed => "allowed",
        Outcome::Denied { .. } => "denied",
        Outcome::Never => "never",
    };
    assert_eq!(outcome, text(answer, "outcome"), "{context}");
    // What can never pass is decided without the store, which was not asked how full the bucket is.
    if outcome != "never" {
        assert_eq!(Some(decision.remaining()), answer["remaining"].as_u64(), "{context}");
        assert_eq!(decision.retry_after().map(|wait| wait.as_nanos()), number(&answer["retry_after_ns"]), "{context}");
        assert_eq!(Some(decision.reset_after().as_nanos()), number(&answer["reset_after_ns"]), "{context}");
    }
}

fn replay(driven: &mut Driven, line: &Value) {
    let limit = quota(line, text(line, "limit"));
    for (i, step) in line["steps"].as_array().unwrap().iter().enumerate() {
        let (charge, at) = (charge(limit, "limit", "key", step), at_us(step).unwrap());
        let correction =
            [("grant", Act::Give), ("owe", Act::Owe)].into_iter().find(|(name, _)| step.get(name).is_some());
        match correction {
            Some((name, act)) => driven.correct(&charge, act, step[name].as_u64().unwrap(), at),
            None => {
                let (_, decisions) = driven.decide(&[charge], at);
                assert_answer(&decisions[0], step, &format!("{}, step {i}", text(line, "name")));
            }
        }
    }
}

fn replay_several(driven: &mut Driven, line: &Value) {
    for (i, step) in line["steps"].as_array().unwrap().iter().enumerate() {
        let answers = step["charges"].as_array().unwrap();
        let charges: Vec<_> = answers
            .iter()
            .map(|answer| {
                let limit = text(answer, "limit");
                charge(quota(line, line["limits"][limit].as_str().unwrap()), limit, text(answer, "key"), answer)
            })
            .collect();
        if charges.is_empty() {
            continue;
        }
        let context = format!("{}, step {i}", text(line, "name"));
        let (verdict, decisions) = driven.decide(&charges, at_us(step).unwrap());
        assert_eq!(Some(verdict.allowed), step["allowed"].as_bool(), "{context}");
        let is_never = answers.iter().any(|answer| answer["outcome"] == "never");
        if !is_never {
            assert_eq!(verdict.binding.map(|place| place as u64), step["binding"].as_u64(), "{context}");
            decisions.iter().zip(answers).for_each(|(decision, answer)| assert_answer(decision, answer, &context));
        }
    }
}

#[test]
fn the_script_gives_the_decisions_of_the_vectors() {
    let lines = lines();
    let fit: Vec<_> = lines.iter().filter(|line| is_fit(line)).collect();
    assert!(fit.len() > 60, "only {} of {} lines are fit for a clock of microseconds", fit.len(), lines.len());
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        for line in &fit {
            driven.forget_all();
            if line.get("limits").is_some() { replay_several(&mut driven, line) } else { replay(&mut driven, line) }
        }
    }
    let names: BTreeSet<_> = fit.iter().map(|line| text(line, "name")).collect();
    assert_eq!(names.len(), fit.len(), "each line has a name of its own");
}

#[test]
fn every_key_that_is_written_expires() {
    let server = Server::start(Kind::Redis7);
    let mut connection = server.connection();
    let names = Names::new("test");
    let script = Script::new();
    for (limit, cost) in
        [("10/s", 1), ("10/s", 10), ("1000000/s", 1), ("1/year", 1), ("3/min burst 2", 2), ("5/min", 5)]
    {
        for algorithm in Algorithm::ALL {
            let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
            let Ok(quota) = quota.with_algorithm(algorithm) else { continue };
            if RedisStore::takes(&quota).is_err() {
                continue;
            }
            let step = serde_json::json!({ "cost": cost });
            let charge = charge(quota, limit, "key", &step);
            let request = Asked::new(&[charge]).request(&names).unwrap();
            connection.req_command(&script.by_source([&request].into_iter())).unwrap();
            let key = names.bucket(&charge);
            let mut expires = cmd("PTTL");
            let ms = match connection.req_command(expires.arg(&key)).unwrap() {
                redis::Value::Int(ms) => ms,
                other => panic!("{other:?}"),
            };
            // Gone already, or within the time that the bucket takes to fill, and two milliseconds.
            let longest = quota.time_to_fill().as_millis() as i64 + 2;
            assert!(ms == -2 || (0..=longest).contains(&ms), "{limit} {algorithm}: expires in {ms} ms of {longest}");
        }
    }
}
