//! Settling: what was used beyond the estimate is owed, and at most one further burst of it.

use proptest::prelude::*;
use tidegate_core::{
    Algorithm, Charge, Cost, LimitId, State, Time, full_at, grant, open_quota, owe, settle, settlements,
};

use crate::given::{CostDraw, Gap, any_cost, any_gap, any_rules, any_rules_of, any_run, any_start};
use crate::oracle::{Oracle, Rules, Ruling, missing_of, shown, whole};
use crate::{ask, cases, used};

/// What happens to a bucket of which reservations are settled.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take(CostDraw),
    Owe(CostDraw),
    Give(CostDraw),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => any_cost().prop_map(Act::Take),
        2 => any_cost().prop_map(Act::Owe),
        1 => any_cost().prop_map(Act::Give),
    ]
}

fn any_acts(length_max: usize) -> impl Strategy<Value = Vec<(Gap, Act)>> {
    proptest::collection::vec((any_gap(), any_act()), 1..=length_max)
}

fn at(ns: u64) -> Time {
    Time::from_nanos(ns)
}

/// A bucket on which all of this was done, by the core and by the oracle, and the time it is then.
fn after(rules: Rules, start_ns: u64, acts: &[(Gap, Act)]) -> (State, Oracle, u64) {
    let (mut state, mut oracle, mut now_ns) = (State::FULL, Oracle::full(rules), start_ns);
    for (gap, act) in acts {
        now_ns = gap.after(now_ns, &rules);
        match act {
            Act::Take(cost) => {
                state = ask(&rules, state, cost.tokens(&rules), now_ns).1;
                oracle.take(cost.tokens(&rules), now_ns);
            }
            Act::Owe(tokens) => {
                state = owe(&rules.quota(), state, tokens.tokens(&rules), at(now_ns));
                oracle.owe(tokens.tokens(&rules), now_ns);
            }
            Act::Give(tokens) => {
                state = grant(&rules.quota(), state, tokens.tokens(&rules), at(now_ns));
                oracle.grant(tokens.tokens(&rules), now_ns);
            }
        }
    }
    (state, oracle, now_ns)
}

proptest! {
    #![proptest_config(cases(700))]

    /// Every number that is shown is the one that the definition gives, in debt too.
    #[test]
    fn all_numbers_are_the_oracles_in_debt(
        rules in any_rules(), start_ns in any_start(), acts in any_acts(30), rest in any_run(10),
    ) {
        let (mut state, mut oracle, mut now_ns) = after(rules, start_ns, &acts);
        for (gap, cost) in rest {
            let cost = cost.tokens(&rules);
            let (decision, next) = ask(&rules, state, cost, now_ns);
            prop_assert_eq!(shown(&decision), oracle.take(cost, now_ns), "cost {} at {}", cost, now_ns);
            prop_assert!(next.deficit() < State::DEFICIT_END);
            state = next;
            now_ns = gap.after(now_ns, &rules);
        }
    }

    /// Laws 3, 4 and 8: in debt a denial changes nothing, the wait is true, and the bucket is full when it says, after
    /// at most twice the time to fill.
    #[test]
    fn laws_3_4_and_8_hold_in_debt(
        rules in any_rules(), start_ns in any_start(), acts in any_acts(20), owed in any_cost(), cost in any_cost(),
    ) {
        let (state, _, now_ns) = after(rules, start_ns, &acts);
        let state = owe(&rules.quota(), state, owed.tokens(&rules), at(now_ns));
        let cost = cost.tokens(&rules);
        let (decision, next) = ask(&rules, state, cost, now_ns);
        prop_assert!(decision.is_allowed() || next == state);
        let (look, _) = ask(&rules, state, 0, now_ns);
        prop_assert!(look.reset_after() <= 2 * rules.quota().time_to_fill());
        let wait_ns = decision.retry_after().and_then(|wait| u64::try_from(wait.as_nanos()).ok());
        if let Some(then_ns) = wait_ns.and_then(|wait_ns| now_ns.checked_add(wait_ns)) {
            prop_assert!(ask(&rules, state, cost, then_ns).0.is_allowed());
            prop_assert!(!ask(&rules, state, cost, then_ns - 1).0.is_allowed());
        }
        let full_ns = full_at(&rules.quota(), state).as_nanos();
        if full_ns > 0 && full_ns < u64::MAX {
            prop_assert_eq!(ask(&rules, state, 0, full_ns).0.remaining(), rules.burst);
            prop_assert!(ask(&rules, state, 0, full_ns - 1).0.remaining() < rules.burst);
            prop_assert_eq!(look.reset_after().as_nanos(), u128::from(full_ns.saturating_sub(now_ns)));
        }
    }

    /// A debt is what was owed, to the token, and at most one further burst; nothing remains meanwhile.
    #[test]
    fn a_debt_is_at_most_one_further_burst(
        rules in any_rules(), start_ns in any_start(), run in any_run(20), debts in proptest::collection::vec(any_cost(), 1..6),
    ) {
        let (mut state, oracle, now_ns) = used(rules, start_ns, &run);
        let mut missing = oracle.missing(now_ns);
        for tokens in debts {
            let tokens = tokens.tokens(&rules);
            state = owe(&rules.quota(), state, tokens, at(now_ns));
            // A counter's debt is in whole tokens.
            let most = whole(2 * rules.burst);
            let room = if rules.algorithm == Algorithm::SlidingCounter { (most.clone() - &missing).floor() } else { &most - &missing };
            missing += whole(tokens).min(room);
            if rules.algorithm == Algorithm::TokenBucket {
                prop_assert_eq!(missing_of(&rules, state, now_ns), missing.clone());
            }
            let (look, _) = ask(&rules, state, 0, now_ns);
            prop_assert!(missing < whole(rules.burst) || look.remaining() == 0);
        }
    }

    /// Law 9: a debt is not forgiven where the clock steps back by less than the time to fill.
    #[test]
    fn law_9_a_small_step_back_forgives_no_debt(
        rules in any_rules_of(Algorithm::TokenBucket), start_ns in any_start(), acts in any_acts(20),
        owed in any_cost(), part in any::<u16>(),
    ) {
        let (state, mut oracle, now_ns) = after(rules, start_ns, &acts);
        let owed = owed.tokens(&rules).max(1);
        let state = owe(&rules.quota(), state, owed, at(now_ns));
        oracle.owe(owed, now_ns);
        let back = rules.quota().time_to_fill().as_nanos() * u128::from(part) / (1 << 16);
        let earlier_ns = now_ns.saturating_sub(u64::try_from(back).unwrap_or(u64::MAX));
        let (decision, next) = ask(&rules, state, rules.burst, earlier_ns);
        prop_assert!(!decision.is_allowed());
        if state.deficit() <= 2 * rules.burst {
            prop_assert_eq!(next, state);
            prop_assert_eq!(missing_of(&rules, next, now_ns), oracle.missing(now_ns));
        }
    }

    /// Settling is giving back, or owing, the difference; of charges on one bucket that of the sum.
    #[test]
    fn settling_corrects_by_the_difference(
        rules in any_rules(), start_ns in any_start(), run in any_run(10), gap in any_gap(),
        reserved in any_cost(), actual in any_cost(),
    ) {
        let (state, oracle, reserved_ns) = used(rules, start_ns, &run);
        let (reserved, actual) = (reserved.tokens(&rules), actual.tokens(&rules));
        let charge = Charge::new(LimitId::of("p", "l"), rules.quota(), b"k").with_cost(Cost::new(reserved));
        let mut asked = oracle.clone();
        let (_, state) = ask(&rules, state, reserved, reserved_ns);
        if asked.take(reserved, reserved_ns).ruling != Ruling::Allowed {
            return Ok(());
        }
        let now_ns = gap.after(reserved_ns, &rules);
        let settled = settle(&charge, state, at(reserved_ns), Cost::new(actual), at(now_ns));
        if actual >= reserved {
            asked.owe(actual - reserved, now_ns);
        } else {
            asked.take_back(reserved - actual, reserved_ns, now_ns);
        }
        let (look, _) = ask(&rules, settled, 0, now_ns);
        prop_assert_eq!(shown(&look), asked.take(0, now_ns));
        let halves = [charge.with_cost(Cost::new(reserved / 2)), charge.with_cost(Cost::new(reserved - reserved / 2))];
        let both: Vec<_> = settlements(&halves, &[Cost::new(actual), Cost::ZERO]).collect();
        prop_assert_eq!(both, vec![(charge, Cost::new(actual))]);
    }

    /// A record is open for as long as was asked, or a 64th longer, and a millisecond.
    #[test]
    fn a_record_is_open_for_as_long_as_was_asked(ns in 0..=365 * 86_400 * 1_000_000_000_u64) {
        let open_for = core::time::Duration::from_nanos(ns);
        let fill = open_quota(open_for).time_to_fill();
        prop_assert!(fill >= open_for && fill <= open_for + open_for / 64 + core::time::Duration::from_millis(2));
    }
}
