//! Replays `vectors/decisions.jsonl` through the core. `vectors/README.md` says what the lines mean.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::{
    Algorithm, Charge, Cost, Decision, Handling, Limit, LimitId, Log, LogEntry, LogPlace, LogView, Mode, Outcome,
    Quota, Standing, State, Time, carry_over, decide, decide_all_with_logs, decide_log, grant, owe, total_cost,
};

/// Fewer lines than this, and something is wrong with the file.
const LINES_MIN: usize = 150;

#[test]
fn the_core_gives_the_decisions_of_the_vectors() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/decisions.jsonl");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).expect("each line is JSON");
        match vector.get("limits") {
            Some(limits) => replay_several(&vector, limits),
            None if algorithm(&vector) == Algorithm::SlidingLog => replay_log(&vector),
            None => replay_one(&vector),
        }
    }
    assert!(text.lines().count() >= LINES_MIN, "only {} lines", text.lines().count());
}

fn replay_one(vector: &Value) {
    let algorithm = algorithm(vector);
    let (mut quota, mut state) = (quota(&vector["limit"], algorithm), State::FULL);
    for (i, step) in steps(vector).iter().enumerate() {
        let now = at(step);
        if let Some(limit) = step.get("replace") {
            let new = self::quota(limit, algorithm);
            state = carry_over(&quota, &new, state, now);
            quota = new;
        } else if let Some(tokens) = step.get("grant") {
            state = grant(&quota, state, number(tokens), now);
        } else if let Some(tokens) = step.get("owe") {
            state = owe(&quota, state, number(tokens), now);
        } else {
            let (decision, next) = decide(&quota, state, cost(step), now);
            assert_answer(vector, i, step, &decision);
            state = next;
        }
    }
}

/// A log and its ring, with room for each line's largest limit.
struct Kept(Vec<LogEntry>, LogPlace);

const RING: usize = 10_000;

impl Kept {
    fn empty() -> Self {
        Self(vec![LogEntry::default(); RING], LogPlace::default())
    }

    /// The log in a ring of this quota's size.
    fn log(&mut self, quota: &Quota) -> Log<'_> {
        let length = usize::try_from(quota.burst()).expect("a ring in memory");
        let mut ring = vec![LogEntry::default(); length.max(1)];
        self.1 = Log::new(&mut self.0, &mut self.1).copy_to(&mut ring);
        self.0 = ring;
        Log::new(&mut self.0, &mut self.1)
    }
}

fn replay_log(vector: &Value) {
    let algorithm = algorithm(vector);
    let (mut quota, mut kept) = (quota(&vector["limit"], algorithm), Kept::empty());
    for (i, step) in steps(vector).iter().enumerate() {
        let now = at(step);
        let mut log = kept.log(&quota);
        if let Some(limit) = step.get("replace") {
            let new = self::quota(limit, algorithm);
            log.carry_over(&quota, &new, now);
            quota = new;
        } else if let Some(tokens) = step.get("grant") {
            log.grant(&quota, number(tokens), now);
        } else if let Some(tokens) = step.get("owe") {
            log.owe(&quota, number(tokens), now);
        } else {
            let decision = decide_log(&quota, log.view(&quota, cost(step), now), cost(step), now);
            assert_answer(vector, i, step, &decision);
            match decision.outcome() {
                Outcome::Allowed => log.charge(&quota, cost(step), now),
                Outcome::Denied { .. } => log.repair(&quota, now),
                Outcome::Never => {}
            }
        }
    }
}

fn replay_several(vector: &Value, limits: &Value) {
    let mut logs: BTreeMap<(String, String), Kept> = BTreeMap::new();
    let mut states: BTreeMap<(String, String), State> = BTreeMap::new();
    for (i, step) in steps(vector).iter().enumerate() {
        let given = step["charges"].as_array().expect("a list of charges");
        let place = |charge: &Value| (text(&charge["limit"]).to_owned(), text(&charge["key"]).to_owned());
        let charges: Vec<Charge<'_>> = given.iter().map(|charge| read_charge(vector, limits, charge)).collect();
        let stored = |charge| Ok(states.get(&place(charge)).copied().unwrap_or(State::FULL));
        let mut standings: Vec<Standing> = given.iter().map(stored).collect();
        let mut decisions: Vec<Decision> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let views: Vec<Option<LogView>> = given
            .iter()
            .enumerate()
            .map(|(i, charge)| {
                let quota = &charges[i].quota;
                let log = || {
                    logs.entry(place(charge)).or_insert_with(Kept::empty).log(quota).view(
                        quota,
                        total_cost(&charges, i),
                        at(step),
                    )
                };
                (quota.algorithm() == Algorithm::SlidingLog).then(log)
            })
            .collect();
        let verdict = decide_all_with_logs(&charges, &mut standings, &views, &mut decisions, at(step));
        assert_eq!(json!(verdict.allowed), step["allowed"], "{}, step {i}", vector["name"]);
        assert_eq!(json!(verdict.binding), step["binding"], "{}, step {i}", vector["name"]);
        // Of several charges on one bucket the first holds its state, so it is written last.
        for ((charge, decision), standing) in given.iter().zip(&decisions).zip(standings).rev() {
            assert_answer(vector, i, charge, decision);
            states.insert(place(charge), standing.expect("every charge has a bucket"));
        }
        for (i, charge) in charges.iter().enumerate() {
            let is_first = !charges[..i].iter().any(|earlier| earlier.shares_bucket(charge));
            if let (true, true, Some(kept)) =
                (verdict.allowed && decisions[i].is_allowed(), is_first, logs.get_mut(&place(&given[i])))
            {
                kept.log(&charge.quota).charge(&charge.quota, total_cost(&charges, i), at(step));
            }
        }
    }
}

fn read_charge<'a>(vector: &Value, limits: &Value, charge: &'a Value) -> Charge<'a> {
    let name = text(&charge["limit"]);
    Charge {
        limit: LimitId::of("vectors", name),
        quota: quota(&limits[name], algorithm(vector)),
        key: text(&charge["key"]).as_bytes(),
        cost: cost(charge),
        mode: if charge["mode"] == "shadow" { Mode::Shadow } else { Mode::Enforce },
        handling: Handling::default(),
    }
}

/// Holds the decision against the four fields of the answer; a field that is absent must have no counterpart.
fn assert_answer(vector: &Value, i: usize, expected: &Value, decision: &Decision) {
    let name = match decision.outcome() {
        Outcome::Allowed => "allowed",
        Outcome::Denied { .. } => "denied",
        Outcome::Never => "never",
    };
    let retry_after = decision.retry_after().map(|wait| nanoseconds(wait.as_nanos()));
    let found = [
        json!(name),
        json!(decision.remaining()),
        retry_after.unwrap_or(Value::Null),
        nanoseconds(decision.reset_after().as_nanos()),
    ];
    let fields = ["outcome", "remaining", "retry_after_ns", "reset_after_ns"];
    let expected = fields.map(|field| expected.get(field).cloned().unwrap_or(Value::Null));
    assert_eq!(found, expected, "{}, step {i}: {fields:?}", vector["name"]);
}

/// Waits beyond 2^64 ns are written as a decimal string, since few JSON readers keep such a number.
fn nanoseconds(ns: u128) -> Value {
    u64::try_from(ns).map_or_else(|_| json!(ns.to_string()), |ns| json!(ns))
}

fn steps(vector: &Value) -> &[Value] {
    vector["steps"].as_array().expect("a list of steps")
}

fn algorithm(vector: &Value) -> Algorithm {
    text(&vector["algorithm"]).parse().expect("the name of an algorithm")
}

fn quota(limit: &Value, algorithm: Algorithm) -> Quota {
    let limit: Limit = text(limit).parse().unwrap_or_else(|error| panic!("{error}"));
    let quota = limit.quota().expect("a limit that charges");
    quota.with_algorithm(algorithm).expect("a limit for this algorithm")
}

fn at(step: &Value) -> Time {
    Time::from_nanos(number(&step["at_ns"]))
}

fn cost(value: &Value) -> Cost {
    value.get("cost").map_or(Cost::ONE, |cost| Cost::new(number(cost)))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number of 64 bits"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
