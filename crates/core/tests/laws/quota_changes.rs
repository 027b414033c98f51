//! Law 10: changing a limit is smooth.

use proptest::prelude::*;
use tidegate_core::{Algorithm, State, Time, carry_over, grant};

use crate::given::{any_change, any_gap, any_rules, any_run, any_start};
use crate::oracle::{Oracle, Rules, missing_of, shown, whole};
use crate::{ask, cases, used};

/// What a state must be after the quota was changed: the debt in tokens, cut to the new burst.
fn check_carried(
    (old, new): (Rules, Rules),
    before: &Oracle,
    state: State,
    now_ns: u64,
) -> Result<Oracle, TestCaseError> {
    let mut ideal = before.clone();
    ideal.replace(new, now_ns);
    if new.algorithm != Algorithm::TokenBucket || old == new {
        return Ok(ideal);
    }
    let (owed, carried) = (ideal.missing(now_ns), missing_of(&new, state, now_ns));
    prop_assert!(carried >= owed, "{} is owed, {} was carried over", owed, carried);
    let paid_ns = (owed.ceil() - &owed) / new.rate();
    let most = if paid_ns > whole(now_ns) {
        // The part that was paid would have begun before the clock did: up to a whole token.
        owed.ceil()
    } else {
        &owed + new.rate()
    };
    prop_assert!(carried <= most, "{} is owed, {} was carried over, at most {} may", owed, carried, most);
    prop_assert!(carried <= whole(new.burst));
    Ok(Oracle::lacking(new, carried, now_ns))
}

proptest! {
    #![proptest_config(cases(700))]

    /// Law 10: a changed quota keeps the debt, to within what comes back in one nanosecond, in the limit's favour; and
    /// from then on the numbers are again exact.
    #[test]
    fn law_10_changing_a_limit_is_smooth(
        change in any_change(), start_ns in any_start(), run in any_run(30), gap in any_gap(), rest in any_run(10),
        given_back in 0..3u64,
    ) {
        let (old, new) = change;
        let (state, oracle, now_ns) = used(old, start_ns, &run);
        let mut now_ns = gap.after(now_ns, &old);
        let mut state = carry_over(&old.quota(), &new.quota(), state, Time::from_nanos(now_ns));
        let mut oracle = check_carried(change, &oracle, state, now_ns)?;
        state = grant(&new.quota(), state, given_back, Time::from_nanos(now_ns));
        oracle.grant(given_back, now_ns);
        for (gap, cost) in rest {
            let cost = cost.tokens(&new);
            let (decision, next) = ask(&new, state, cost, now_ns);
            prop_assert_eq!(shown(&decision), oracle.take(cost, now_ns));
            state = next;
            now_ns = gap.after(now_ns, &new);
        }
    }

    /// Law 10: many changes, to and fro, refill nobody: in all no more passes than the largest burst and what came
    /// back at the fastest rate.
    #[test]
    fn law_10_reloads_refill_nobody(change in any_change(), start_ns in any_start(), run in any_run(40)) {
        let (mut rules, mut other) = change;
        let (mut state, mut now_ns, mut passed) = (State::FULL, start_ns, 0u128);
        // To a smaller burst and back is the one gift; so both bursts are equal here.
        let burst = rules.burst.min(other.burst);
        // A changed period of windows moves the count to another edge.
        if rules.algorithm != Algorithm::TokenBucket {
            return Ok(());
        }
        (rules.burst, other.burst) = (burst, burst);
        for (gap, cost) in run {
            now_ns = gap.after(now_ns, &rules);
            let (decision, next) = ask(&rules, state, cost.tokens(&rules), now_ns);
            passed += if decision.is_allowed() { u128::from(cost.tokens(&rules)) } else { 0 };
            state = carry_over(&rules.quota(), &other.quota(), next, Time::from_nanos(now_ns));
            (rules, other) = (other, rules);
            let fastest = rules.rate().max(other.rate());
            prop_assert!(whole(passed) <= whole(burst) + fastest * whole(now_ns - start_ns));
        }
    }

    /// A quota that did not change, and one of another algorithm: the first keeps everything, the second starts fresh.
    #[test]
    fn law_10_same_quota_keeps_and_other_algorithm_starts_fresh(
        rules in any_rules(), other in any_rules(), start_ns in any_start(), run in any_run(20), gap in any_gap(),
    ) {
        let (state, _, now_ns) = used(rules, start_ns, &run);
        let now = Time::from_nanos(gap.after(now_ns, &rules));
        prop_assert_eq!(carry_over(&rules.quota(), &rules.quota(), state, now), state);
        if rules.algorithm != other.algorithm {
            prop_assert_eq!(carry_over(&rules.quota(), &other.quota(), state, now), State::FULL);
        }
    }
}
