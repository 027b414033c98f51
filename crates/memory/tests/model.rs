//! The table against a map of states that never forgets: for every sequence of operations the answers are the same.
//!
//! A decision says at which time it was made. That is the time that was handed in, or a later one that some other
//! call was handed before; the model decides at the same time.
#![cfg(not(loom))]

mod common;

use std::collections::HashMap;

use common::{quota, table};
use proptest::prelude::*;
use tidegate_core::{
    Algorithm, AtBound, Charge, Cost, Decision, Handling, Held, LimitId, Mode, Quota, Source, State, Time, Verdict,
    carry_over, decide, decide_all, full_at, grant,
};
use tidegate_memory::Table;

const KEYS: u8 = 9;
/// One group of slots: fewer than there are keys.
const TINY: usize = 5;

#[derive(Clone, Debug)]
enum Op {
    Check(Draw),
    Several(Vec<Draw>),
    Reset {
        limit: u8,
        key: u8,
    },
    Grant {
        limit: u8,
        key: u8,
        tokens: u64,
    },
    /// From now on the limit has this quota.
    Change {
        limit: u8,
        quota: u8,
    },
    Wait(u64),
    /// The next operation was handed a time so long ago.
    Late(u64),
}

#[derive(Clone, Copy, Debug)]
struct Draw {
    limit: u8,
    key: u8,
    cost: u64,
    shadow: bool,
}

fn any_draw() -> impl Strategy<Value = Draw> {
    let cost = prop_oneof![1 => Just(0), 8 => 1..3u64, 1 => 3..9u64];
    (0..2u8, 0..KEYS, cost, any::<bool>()).prop_map(|(limit, key, cost, shadow)| Draw { limit, key, cost, shadow })
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => any_draw().prop_map(Op::Check),
        4 => proptest::collection::vec(any_draw(), 0..6).prop_map(Op::Several),
        1 => (0..2u8, 0..KEYS).prop_map(|(limit, key)| Op::Reset { limit, key }),
        1 => (0..2u8, 0..KEYS, 1..4u64).prop_map(|(limit, key, tokens)| Op::Grant { limit, key, tokens }),
        1 => (0..2u8, 0..8u8).prop_map(|(limit, quota)| Op::Change { limit, quota }),
        6 => prop_oneof![0..400_000_000u64, 0..3_000_000_000u64].prop_map(Op::Wait),
        2 => (0..700_000_000u64).prop_map(Op::Late),
    ]
}

fn quotas() -> [Quota; 8] {
    let window = |text| quota(text).with_algorithm(Algorithm::FixedWindow).unwrap();
    let counter = |text| quota(text).with_algorithm(Algorithm::SlidingCounter).unwrap();
    [
        quota("3/s"),
        quota("7/s burst 2"),
        quota("1/s burst 5"),
        quota("4/2s"),
        window("4/s"),
        window("2/s"),
        counter("4/s"),
        counter("3/s"),
    ]
}

struct Model {
    states: HashMap<(u8, u8), (Quota, State)>,
    quotas: [Quota; 2],
    now: Time,
    /// The next time that is handed in is so much earlier, in nanoseconds.
    late_ns: u64,
    latest: Time,
}

impl Model {
    fn new() -> Self {
        let [first, second, ..] = quotas();
        let now = Time::from_secs(100);
        Self { states: HashMap::new(), quotas: [first, second], now, late_ns: 0, latest: now }
    }

    /// The time to hand in.
    fn next_time(&mut self) -> Time {
        let now = Time::from_nanos(self.now.as_nanos() - std::mem::take(&mut self.late_ns));
        self.latest = self.latest.max(now);
        now
    }

    fn limit(&self, limit: u8) -> Quota {
        self.quotas[usize::from(limit)]
    }

    fn state(&self, limit: u8, key: u8, now: Time) -> State {
        let Some((quota, state)) = self.states.get(&(limit, key)) else { return State::FULL };
        if *quota == self.limit(limit) {
            return *state;
        }
        carry_over(quota, &self.limit(limit), *state, now)
    }

    fn set(&mut self, limit: u8, key: u8, state: State) {
        self.states.insert((limit, key), (self.limit(limit), state));
    }

    fn full_ats(&self) -> impl Iterator<Item = ((u8, u8), Time)> {
        self.states.iter().map(|(key, (quota, state))| (*key, full_at(quota, *state)))
    }

    /// The wait of a newcomer, if a table of [`TINY`] has no room for it.
    fn held(&self, draw: Draw, now: Time) -> Option<Held> {
        let live = || self.full_ats().filter(move |(_, full)| *full > now);
        let is_newcomer = live().all(|(key, _)| key != (draw.limit, draw.key));
        (is_newcomer && live().count() >= TINY)
            .then(|| Held(live().map(|(_, full)| full).min().unwrap_or(now).since(now)))
    }
}

fn limit_id(limit: u8) -> LimitId {
    LimitId::of("model", if limit == 0 { "0" } else { "1" })
}

fn assert_time(decided_at: Time, handed_in: Time, latest: Time) {
    assert!(handed_in <= decided_at && decided_at <= latest, "{handed_in:?} <= {decided_at:?} <= {latest:?}");
}

fn assert_same(ours: &Decision, model: &Decision) {
    let numbers = |d: &Decision| (d.outcome(), d.remaining(), d.reset_after(), d.next_token_after());
    assert_eq!(numbers(ours), numbers(model));
}

fn check(table: &Table, model: &mut Model, draw: Draw, has_room: bool) {
    let now = model.next_time();
    let quota = model.limit(draw.limit);
    let limit = table.know(limit_id(draw.limit), &quota, AtBound::Deny).unwrap();
    let ours = table.check_at(&limit, [draw.key].as_slice(), Cost::new(draw.cost), now);
    let at = ours.decided_at();
    assert_time(at, now, model.latest);
    if let Some(Held(wait)) = model.held(draw, at).filter(|_| !has_room) {
        return assert_same(&ours, &Decision::held(&quota, Cost::new(draw.cost), at, wait));
    }
    let (decision, next) = decide(&quota, model.state(draw.limit, draw.key, at), Cost::new(draw.cost), at);
    assert_same(&ours, &decision);
    if draw.cost > 0 {
        model.set(draw.limit, draw.key, next);
    }
}

fn several(table: &Table, model: &mut Model, draws: &[Draw]) {
    let now = model.next_time();
    let keys: Vec<_> = draws.iter().map(|draw| [draw.key]).collect();
    let charges: Vec<_> = draws.iter().zip(&keys).map(|(draw, key)| charge(model, *draw, key)).collect();
    let mut ours: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let mut decisions = ours.clone();
    let verdict = table.decide_at(&charges, &mut ours, now).unwrap();
    let Some(at) = ours.first().map(Decision::decided_at) else {
        return assert_eq!(verdict, Verdict { allowed: true, binding: None, source: Source::Store });
    };
    assert_time(at, now, model.latest);
    let mut standings: Vec<_> = draws.iter().map(|draw| Ok(model.state(draw.limit, draw.key, at))).collect();
    let before = standings.clone();
    assert_eq!(verdict, decide_all(&charges, &mut standings, &mut decisions, at));
    for (i, draw) in draws.iter().enumerate() {
        assert_same(&ours[i], &decisions[i]);
        let is_first = !charges[..i].iter().any(|earlier| earlier.shares_bucket(&charges[i]));
        // A look writes nothing, not even what was carried over to a new quota.
        let is_look = draw.cost == 0 && before[i] == standings[i];
        if let (true, false, Ok(state)) = (is_first, is_look, standings[i]) {
            model.set(draw.limit, draw.key, state);
        }
    }
}

fn charge<'a>(model: &Model, draw: Draw, key: &'a [u8]) -> Charge<'a> {
    Charge {
        limit: limit_id(draw.limit),
        quota: model.limit(draw.limit),
        key,
        cost: Cost::new(draw.cost),
        mode: if draw.shadow { Mode::Shadow } else { Mode::Enforce },
        handling: Handling::default().with_at_bound(AtBound::Deny),
    }
}

fn run(table: &Table, ops: Vec<Op>, has_room: bool) {
    let mut model = Model::new();
    for op in ops {
        match op {
            Op::Check(draw) => check(table, &mut model, draw, has_room),
            Op::Several(draws) if has_room => several(table, &mut model, &draws),
            Op::Several(draws) => draws.into_iter().for_each(|draw| check(table, &mut model, draw, has_room)),
            Op::Reset { limit, key } => {
                table.reset(limit_id(limit), [key].as_slice());
                model.states.remove(&(limit, key));
            }
            Op::Grant { limit, key, tokens } => {
                let now = model.next_time();
                table.grant_at(limit_id(limit), [key].as_slice(), tokens, now);
                if let Some((quota, state)) = model.states.get_mut(&(limit, key)) {
                    *state = grant(quota, *state, tokens, now);
                }
            }
            Op::Change { limit, quota } => model.quotas[usize::from(limit)] = quotas()[usize::from(quota)],
            Op::Wait(ns) => model.now = Time::from_nanos(model.now.as_nanos() + ns),
            // Without room it would depend on who was forgotten when.
            Op::Late(ns) => model.late_ns = if has_room { ns } else { 0 },
        }
    }
}

/// A key takes the seat again that it had left behind, while the flag of its home is down.
#[test]
fn a_seat_that_is_taken_again_is_found() {
    let draw = |limit, key, cost| Draw { limit, key, cost, shadow: false };
    let ops = vec![
        Op::Check(draw(0, 0, 1)),
        Op::Wait(50_000_000),
        Op::Check(draw(0, 1, 1)),
        Op::Several(vec![draw(1, 0, 1), draw(1, 1, 1)]),
        // The look keeps the last slot of the home, so that the other one sits behind it.
        Op::Several(vec![draw(0, 2, 0), draw(1, 7, 1)]),
        Op::Wait(1_000_000_000),
        Op::Several(vec![draw(0, 1, 1), draw(0, 0, 1), draw(0, 4, 1)]),
        Op::Check(draw(0, 2, 1)),
        Op::Check(draw(1, 0, 1)),
        Op::Check(draw(1, 7, 1)),
        Op::Wait(140_000_000),
        Op::Reset { limit: 0, key: 0 },
        Op::Check(draw(1, 7, 0)),
    ];
    run(&table(20), ops, true);
}

fn any_ops() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(any_op(), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_ordinary_table_answers_like_a_map(ops in any_ops()) {
        run(&table(10_000), ops, true);
    }

    /// All keys have one home and most of them sit behind it.
    #[test]
    fn a_table_whose_keys_crowd_one_home_answers_like_a_map(ops in any_ops()) {
        run(&table(20), ops, true);
    }

    #[test]
    fn a_table_with_less_room_than_keys_denies_exactly_the_newcomers(ops in any_ops()) {
        run(&table(TINY), ops, false);
    }
}
