//! Law 7: all or nothing.

use core::time::Duration;
use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_core::{
    AtBound, Charge, Cost, Decision, Handling, Held, LimitId, Mode, Standing, State, Time, Verdict, decide_all,
};

use crate::cases;
use crate::given::{CostDraw, Gap, any_cost, any_gap, any_rules, any_start};
use crate::oracle::{Answer, Oracle, Rules, Ruling, shown};

const KEYS: [&[u8]; 2] = [b"alice", b"bob"];

/// A limit of the test. Its place is its name.
#[derive(Clone, Copy, Debug)]
struct Given {
    rules: Rules,
    mode: Mode,
}

/// Which limit, which key, which cost; the places are drawn before it is known how many limits there are.
type ChargeDraw = (prop::sample::Index, prop::sample::Index, CostDraw);

/// A bucket: the place of its limit, and of its key.
type Place = (usize, usize);

fn any_limits() -> impl Strategy<Value = Vec<Given>> {
    let mode = prop_oneof![3 => Just(Mode::Enforce), 1 => Just(Mode::Shadow)];
    prop::collection::vec((any_rules(), mode).prop_map(|(rules, mode)| Given { rules, mode }), 1..5)
}

fn any_decisions() -> impl Strategy<Value = Vec<(Gap, Vec<ChargeDraw>)>> {
    let charge = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any_cost());
    prop::collection::vec((any_gap(), prop::collection::vec(charge, 0..6)), 1..12)
}

/// The charges of one decision, each with its bucket.
fn charges(limits: &[Given], draws: &[ChargeDraw]) -> Vec<(Place, Charge<'static>)> {
    let charge = |(limit, key, cost): &ChargeDraw| {
        let (limit, key) = (limit.index(limits.len()), key.index(KEYS.len()));
        let Given { rules, mode } = limits[limit];
        let id = LimitId::of("policy", &limit.to_string());
        let cost = Cost::new(cost.tokens(&rules));
        (
            (limit, key),
            Charge {
                limit: id,
                quota: rules.quota(),
                key: KEYS[key],
                cost,
                mode,
                handling: Handling::default().with_at_bound(AtBound::Deny),
            },
        )
    };
    draws.iter().map(charge).collect()
}

/// Asks the core, and gives the verdict, the decision of each bucket and the states that follow.
fn decided(
    charges: &[(Place, Charge<'static>)],
    before: &BTreeMap<Place, State>,
    now_ns: u64,
) -> (Verdict, BTreeMap<Place, Decision>, BTreeMap<Place, State>) {
    let (places, charges): (Vec<Place>, Vec<Charge<'_>>) = charges.iter().copied().unzip();
    let standing = |place: &Place| Ok(before.get(place).copied().unwrap_or(State::FULL));
    let mut standings: Vec<Standing> = places.iter().map(standing).collect();
    let mut decisions: Vec<Decision> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let verdict = decide_all(&charges, &mut standings, &mut decisions, Time::from_nanos(now_ns));
    let (mut by_place, mut after) = (BTreeMap::new(), before.clone());
    for i in (0..places.len()).rev() {
        assert!(by_place.insert(places[i], decisions[i]).is_none_or(|later| later == decisions[i]));
        after.insert(places[i], standings[i].expect("every charge has a bucket"));
    }
    (verdict, by_place, after)
}

/// The costs of one decision, summed by bucket.
fn summed(charges: &[(Place, Charge<'_>)]) -> BTreeMap<Place, u64> {
    let mut sums = BTreeMap::new();
    for (place, charge) in charges {
        let sum: &mut u64 = sums.entry(*place).or_default();
        *sum = sum.saturating_add(charge.cost.tokens());
    }
    sums
}

/// What the law says of the same charges: may the request pass, and the answer of each bucket.
fn expected(
    limits: &[Given],
    sums: &BTreeMap<Place, u64>,
    buckets: &mut BTreeMap<Place, Oracle>,
    now_ns: u64,
) -> (bool, BTreeMap<Place, Answer>) {
    let mut rulings = BTreeMap::new();
    for (place, sum) in sums {
        let bucket = buckets.entry(*place).or_insert_with(|| Oracle::full(limits[place.0].rules));
        rulings.insert(*place, bucket.ruling(*sum, now_ns));
    }
    let enforced = |place: &Place| limits[place.0].mode == Mode::Enforce;
    let allowed = rulings.iter().all(|(place, ruling)| !enforced(place) || *ruling == Ruling::Allowed);
    let mut answers = BTreeMap::new();
    for (place, ruling) in rulings {
        let bucket = buckets.get_mut(&place).expect("every bucket was looked at");
        let answer = if allowed { bucket.take(sums[&place], now_ns) } else { bucket.answer(ruling, now_ns) };
        answers.insert(place, answer);
    }
    (allowed, answers)
}

/// The rank of an answer among those that could bind: the longest wait, else the least remaining.
fn rank(answer: &Answer) -> (u8, u128, u64) {
    match answer.ruling {
        Ruling::Never => (0, 0, 0),
        Ruling::Denied { wait_ns } => (1, u128::MAX - wait_ns, 0),
        Ruling::Allowed => (2, 0, answer.remaining),
    }
}

fn check_binding(
    limits: &[Given],
    charges: &[(Place, Charge<'_>)],
    answers: &BTreeMap<Place, Answer>,
    verdict: Verdict,
) -> Result<(), TestCaseError> {
    let enforced = charges.iter().enumerate().filter(|(_, (place, _))| limits[place.0].mode == Mode::Enforce);
    let first = enforced.min_by_key(|(_, (place, _))| rank(&answers[place])).map(|(i, _)| i);
    prop_assert_eq!(verdict.binding, first);
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    /// Law 7: every number of every charge is the oracle's; either all enforced limits are charged or none; charges on
    /// one bucket are summed; a limit in shadow denies nobody, and is charged only if the enforced ones allowed.
    #[test]
    fn law_7_all_or_nothing(limits in any_limits(), start_ns in any_start(), run in any_decisions()) {
        let (mut states, mut buckets, mut now_ns) = (BTreeMap::new(), BTreeMap::new(), start_ns);
        for (gap, draws) in run {
            now_ns = gap.after(now_ns, &limits[0].rules);
            let charges = charges(&limits, &draws);
            let sums = summed(&charges);
            let (verdict, decisions, after) = decided(&charges, &states, now_ns);
            let (allowed, answers) = expected(&limits, &sums, &mut buckets, now_ns);
            prop_assert_eq!(verdict.allowed, allowed);
            for (place, decision) in &decisions {
                prop_assert_eq!(shown(decision), answers[place], "limit {} of key {}", place.0, place.1);
                let same = after[place] == states.get(place).copied().unwrap_or(State::FULL);
                prop_assert!(allowed || same, "a denied request changed limit {}", place.0);
            }
            check_binding(&limits, &charges, &answers, verdict)?;
            states = after;
        }
    }

    /// Law 7: in whatever order the limits stand, the answer and what follows are the same.
    #[test]
    fn law_7_the_order_does_not_matter(
        limits in any_limits(), start_ns in any_start(), run in any_decisions(), order in any::<u64>(),
    ) {
        let (mut states, mut now_ns) = (BTreeMap::new(), start_ns);
        for (gap, draws) in run {
            now_ns = gap.after(now_ns, &limits[0].rules);
            let charges = charges(&limits, &draws);
            let mut shuffled = charges.clone();
            for i in (1..shuffled.len()).rev() {
                shuffled.swap(i, (order >> (8 * i)) as usize % (i + 1));
            }
            let (verdict, decisions, after) = decided(&charges, &states, now_ns);
            let (verdict_shuffled, decisions_shuffled, after_shuffled) = decided(&shuffled, &states, now_ns);
            prop_assert_eq!(verdict.allowed, verdict_shuffled.allowed);
            prop_assert_eq!(decisions, decisions_shuffled);
            prop_assert_eq!(&after, &after_shuffled);
            states = after;
        }
    }

    /// Law 7 where a charge has no bucket: it denies, for the time that it was told, and the others are not charged.
    #[test]
    fn law_7_a_charge_without_a_bucket_denies_all(
        limits in any_limits(), start_ns in any_start(), draws in any_decisions(), wait_ns in 1..=u64::MAX,
    ) {
        let charges: Vec<Charge<'_>> = charges(&limits, &draws[0].1).into_iter().map(|(_, charge)| charge).collect();
        let Some(held) = charges.iter().position(|charge| charge.mode == Mode::Enforce) else { return Ok(()) };
        let mut standings: Vec<Standing> = vec![Ok(State::FULL); charges.len()];
        standings[held] = Err(Held(Duration::from_nanos(wait_ns)));
        let mut decisions: Vec<Decision> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let before = standings.clone();
        let verdict = decide_all(&charges, &mut standings, &mut decisions, Time::from_nanos(start_ns));
        let cost = decisions[held].cost().tokens();
        let expected = match cost {
            0 => Ruling::Allowed,
            _ if cost > charges[held].quota.burst() => Ruling::Never,
            _ => Ruling::Denied { wait_ns: wait_ns.into() },
        };
        prop_assert_eq!(shown(&decisions[held]).ruling, expected);
        prop_assert!(cost == 0 || !verdict.allowed);
        if !verdict.allowed {
            prop_assert_eq!(standings, before);
        }
    }
}
