//! Law 9: time may misbehave.

use proptest::prelude::*;
use tidegate_core::{Algorithm, State};

use crate::given::{any_cost, any_gap, any_rules, any_rules_of, any_start};
use crate::oracle::{Answer, Number, Oracle, Rules, Ruling, missing_of, shown, whole};
use crate::{ask, cases};

/// One request of a run whose clock may step back, checked against what law 9 allows a token bucket.
///
/// The oracle keeps what was missing at the last charge, and gives nothing for time that was counted. The core may
/// know that instant less well: its stamp lies up to one step of the reduced rate before it, so for as long as the
/// clock is behind, it may hold up to that much as not yet paid.
fn check_stepped(
    rules: &Rules,
    oracle: &mut Oracle,
    state: State,
    cost: u64,
    now_ns: u64,
) -> Result<State, TestCaseError> {
    let (decision, next) = ask(rules, state, cost, now_ns);
    let behind_ns = oracle.changed_ns().saturating_sub(now_ns);
    let refill = rules.rate() * whole(behind_ns);
    let missing = oracle.missing(now_ns);
    let worst = (&missing + &refill).min(whole(rules.burst));
    let passes = |missing: &Number| cost == 0 || missing + whole(cost) <= whole(rules.burst);
    prop_assert!(!decision.is_allowed() || passes(&missing), "time that was counted refills nothing");
    prop_assert!(decision.is_allowed() || !passes(&worst), "no debt but for the time that the clock is behind");
    if let Some(wait) = decision.retry_after() {
        // Of a deficit above the burst up to a step of the stamp can have come back already, or be a debt.
        let step = Number::from_integer(rules.rate().numer().clone()).min(whole(rules.burst));
        let most_ns = (whole(2 * rules.burst + cost) + whole(2) * step) / rules.rate() + whole(1);
        prop_assert!(whole(wait.as_nanos()) <= most_ns, "wait {} ns", wait.as_nanos());
    }
    let charged = whole(if decision.is_allowed() { cost } else { 0 });
    let changed_ns = oracle.changed_ns().max(if charged > whole(0) { now_ns } else { 0 });
    let steady = oracle.missing(changed_ns) + charged;
    if missing_of(rules, next, changed_ns) == steady {
        *oracle = Oracle::lacking(*rules, steady, changed_ns);
    } else {
        prop_assert!(refill > whole(rules.burst), "repaired though waiting explains it");
        let kept = missing_of(rules, next, now_ns);
        let most = whole(2 * rules.burst);
        prop_assert!(steady <= kept && kept <= most, "{} was missing, {} was kept", missing, kept);
        *oracle = Oracle::lacking(*rules, kept, now_ns);
    }
    if behind_ns == 0 {
        let Answer { remaining, reset_ns, .. } = oracle.answer(Ruling::Allowed, now_ns);
        prop_assert_eq!((decision.remaining(), decision.reset_after().as_nanos()), (remaining, reset_ns));
    }
    Ok(next)
}

proptest! {
    #![proptest_config(cases(1500))]

    /// Law 9, token bucket: no refill for time that was counted, no debt that waiting does not explain, and at most
    /// one burst gained where the clock went back further than that.
    #[test]
    fn law_9_time_may_step_back_token_bucket(
        rules in any_rules_of(Algorithm::TokenBucket),
        start_ns in any_start(),
        run in proptest::collection::vec((any_gap(), any::<bool>(), any_cost()), 1..40),
    ) {
        let (mut state, mut oracle, mut now_ns) = (State::FULL, Oracle::full(rules), start_ns);
        for (gap, back, cost) in run {
            now_ns = if back { gap.before(now_ns, &rules) } else { gap.after(now_ns, &rules) };
            state = check_stepped(&rules, &mut oracle, state, cost.tokens(&rules), now_ns)?;
        }
    }

    /// Law 9, windows: a window that was closed does not open again, and one that is more than a period ahead becomes
    /// the present one with its counts.
    #[test]
    fn law_9_time_may_step_back_windows(
        rules in prop_oneof![any_rules_of(Algorithm::FixedWindow), any_rules_of(Algorithm::SlidingCounter)],
        start_ns in any_start(),
        run in proptest::collection::vec((any_gap(), any::<bool>(), any_cost()), 1..40),
    ) {
        let (mut state, mut oracle, mut now_ns) = (State::FULL, Oracle::full(rules), start_ns);
        for (gap, back, cost) in run {
            now_ns = if back { gap.before(now_ns, &rules) } else { gap.after(now_ns, &rules) };
            let cost = cost.tokens(&rules);
            let (decision, next) = ask(&rules, state, cost, now_ns);
            // A look and a never write no repair.
            let mut asked = oracle.clone();
            prop_assert_eq!(shown(&decision), asked.take(cost, now_ns), "cost {} at {}", cost, now_ns);
            if cost > 0 && cost <= rules.burst {
                oracle = asked;
            }
            state = next;
        }
    }

    /// Law 9: whatever the clock did, the wait is true on a clock that then runs steadily.
    #[test]
    fn law_9_the_wait_stays_true(
        rules in any_rules(),
        start_ns in any_start(),
        run in proptest::collection::vec((any_gap(), any::<bool>(), any_cost()), 1..30),
    ) {
        let (mut state, mut now_ns) = (State::FULL, start_ns);
        for (gap, back, cost) in run {
            now_ns = if back { gap.before(now_ns, &rules) } else { gap.after(now_ns, &rules) };
            let cost = cost.tokens(&rules);
            let (decision, next) = ask(&rules, state, cost, now_ns);
            let wait_ns = decision.retry_after().and_then(|wait| u64::try_from(wait.as_nanos()).ok());
            if let Some(then_ns) = wait_ns.and_then(|wait_ns| now_ns.checked_add(wait_ns)) {
                prop_assert!(ask(&rules, next, cost, then_ns).0.is_allowed());
                prop_assert!(!ask(&rules, next, cost, then_ns - 1).0.is_allowed());
            }
            state = next;
        }
    }
}
