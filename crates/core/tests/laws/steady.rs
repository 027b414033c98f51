//! Laws 1 to 6 and 8, and grants: one bucket, and a clock that runs on.

use proptest::prelude::*;
use tidegate_core::{Algorithm, State, Time, full_at, grant};

use crate::given::{any_cost, any_gap, any_rules, any_rules_of, any_run, any_start};
use crate::oracle::{Oracle, shown, whole};
use crate::{ask, cases, used};

proptest! {
    #![proptest_config(cases(700))]

    /// Every number that is shown is the one that the definition gives, whatever came before.
    #[test]
    fn all_numbers_are_the_oracles(rules in any_rules(), start_ns in any_start(), run in any_run(40)) {
        let (mut state, mut oracle, mut now_ns) = (State::FULL, Oracle::full(rules), start_ns);
        for (gap, cost) in run {
            now_ns = gap.after(now_ns, &rules);
            let cost = cost.tokens(&rules);
            let (decision, next) = ask(&rules, state, cost, now_ns);
            prop_assert_eq!(shown(&decision), oracle.take(cost, now_ns), "cost {} at {}", cost, now_ns);
            state = next;
        }
    }

    /// Law 1: between any two requests that passed, no more passed than the burst and what came back.
    #[test]
    fn law_1_sound(rules in any_rules(), start_ns in any_start(), run in any_run(40)) {
        let (mut state, mut now_ns, mut passed) = (State::FULL, start_ns, Vec::new());
        for (gap, cost) in run {
            now_ns = gap.after(now_ns, &rules);
            let (decision, next) = ask(&rules, state, cost.tokens(&rules), now_ns);
            state = next;
            if decision.is_allowed() {
                passed.push((now_ns, cost.tokens(&rules)));
            }
        }
        for first in 0..passed.len() {
            let mut sum: u128 = 0;
            for (at_ns, cost) in &passed[first..] {
                sum += u128::from(*cost);
                let most = rules.most_within(at_ns - passed[first].0);
                prop_assert!(whole(sum) <= most, "{} passed where {} may", sum, most);
            }
        }
    }

    /// Law 2, stronger than it asks: of a bucket that never fills up, all that the law permits passes, to the token,
    /// however often it was asked.
    #[test]
    fn law_2_complete_token_bucket(
        mut rules in any_rules_of(Algorithm::TokenBucket),
        start_ns in any_start(),
        gaps in proptest::collection::vec(any::<u16>(), 1..60),
    ) {
        rules.burst = rules.burst.max(2);
        let fill_ns = u64::try_from(rules.quota().time_to_fill().as_nanos()).unwrap_or(u64::MAX);
        let (mut state, mut now_ns, mut passed) = (State::FULL, start_ns, 0u128);
        for gap in gaps {
            let (look, _) = ask(&rules, state, 0, now_ns);
            let (decision, next) = ask(&rules, state, look.remaining(), now_ns);
            prop_assert!(decision.is_allowed(), "what remains can be taken");
            state = next;
            passed += u128::from(look.remaining());
            prop_assert_eq!(whole(passed), rules.most_within(now_ns - start_ns).floor());
            // Less than half of the time to fill, so that a bucket of two or more that has less than one left never fills.
            now_ns = now_ns.saturating_add(fill_ns / 65_536 * u64::from(gap) / 2);
        }
    }

    /// Law 2 for windows: each window passes its whole count.
    #[test]
    fn law_2_complete_fixed_window(rules in any_rules_of(Algorithm::FixedWindow), first in 0..1000u64, gaps in any_run(20)) {
        let (mut state, mut now_ns) = (State::FULL, first.saturating_mul(rules.period_ns));
        let mut window = None;
        for (gap, _) in gaps {
            now_ns = gap.after(now_ns, &rules);
            let (look, _) = ask(&rules, state, 0, now_ns);
            let opened = window.replace(now_ns / rules.period_ns) != Some(now_ns / rules.period_ns);
            prop_assert_eq!(look.remaining(), if opened { rules.count } else { 0 });
            let (decision, next) = ask(&rules, state, look.remaining(), now_ns);
            prop_assert!(decision.is_allowed());
            state = next;
        }
    }

    /// Laws 3, 5 and 6: a denial, a never and a look leave the very state they found; and a never is one whatever the
    /// bucket holds.
    #[test]
    fn laws_3_5_and_6_only_what_passes_changes_anything(
        rules in any_rules(), start_ns in any_start(), run in any_run(30), gap in any_gap(), cost in any_cost(),
    ) {
        let (state, _, now_ns) = used(rules, start_ns, &run);
        let (now_ns, cost) = (gap.after(now_ns, &rules), cost.tokens(&rules));
        let (decision, next) = ask(&rules, state, cost, now_ns);
        prop_assert_eq!(decision.is_never(), cost > rules.burst);
        prop_assert_eq!(decision.is_never() && decision.retry_after().is_some(), false);
        if cost == 0 || !decision.is_allowed() {
            prop_assert_eq!(next, state);
        }
        let (look, after_look) = ask(&rules, state, 0, now_ns);
        prop_assert!(look.is_allowed() && after_look == state);
        let remaining = look.remaining();
        prop_assert_eq!(decision.remaining(), if decision.is_allowed() { remaining - cost } else { remaining });
        prop_assert_eq!(decision.is_allowed(), cost <= remaining, "remaining is what would still pass");
    }

    /// Law 4: after exactly the wait the same cost passes, a nanosecond earlier it does not; and the wait counts down.
    #[test]
    fn law_4_the_wait_is_true(
        rules in any_rules(), start_ns in any_start(), run in any_run(30), cost in any_cost(), part in 0..=1000u64,
    ) {
        let (state, _, now_ns) = used(rules, start_ns, &run);
        let cost = cost.tokens(&rules);
        let (decision, _) = ask(&rules, state, cost, now_ns);
        let Some(wait) = decision.retry_after() else { return Ok(()) };
        prop_assert!(wait.as_nanos() >= 1);
        let Ok(wait_ns) = u64::try_from(wait.as_nanos()) else { return Ok(()) };
        let Some(then_ns) = now_ns.checked_add(wait_ns) else { return Ok(()) };
        prop_assert!(ask(&rules, state, cost, then_ns).0.is_allowed());
        prop_assert!(!ask(&rules, state, cost, then_ns - 1).0.is_allowed());
        let between_ns = now_ns + (u128::from(wait_ns - 1) * u128::from(part) / 1000) as u64;
        let later = ask(&rules, state, cost, between_ns).0.retry_after();
        prop_assert_eq!(later.map(|wait| wait.as_nanos()), Some(u128::from(then_ns - between_ns)));
    }

    /// The time to the next token and the time to full are as true as the wait.
    #[test]
    fn law_4_next_token_and_reset_are_true(rules in any_rules(), start_ns in any_start(), run in any_run(30)) {
        let (state, _, now_ns) = used(rules, start_ns, &run);
        let (look, _) = ask(&rules, state, 0, now_ns);
        let spans = [(look.next_token_after(), look.remaining() + 1), (look.reset_after(), rules.burst)];
        for (span, tokens) in spans {
            let Ok(span_ns) = u64::try_from(span.as_nanos()) else { continue };
            let Some(then_ns) = now_ns.checked_add(span_ns) else { continue };
            if span_ns > 0 {
                prop_assert!(ask(&rules, state, 0, then_ns).0.remaining() >= tokens);
                prop_assert!(ask(&rules, state, 0, then_ns - 1).0.remaining() < tokens);
            } else {
                prop_assert_eq!(look.remaining(), rules.burst);
            }
        }
    }

    /// Law 8: from `full_at` on the state answers as one that was never there, and not a nanosecond earlier.
    #[test]
    fn law_8_a_full_bucket_is_no_bucket(
        rules in any_rules(), start_ns in any_start(), run in any_run(30), gap in any_gap(), cost in any_cost(),
    ) {
        let (state, _, now_ns) = used(rules, start_ns, &run);
        let full_ns = full_at(&rules.quota(), state).as_nanos();
        if full_ns == u64::MAX {
            return Ok(());
        }
        let cost = cost.tokens(&rules);
        let then_ns = gap.after(full_ns.max(now_ns), &rules);
        prop_assert_eq!(ask(&rules, state, cost, then_ns).0, ask(&rules, State::FULL, cost, then_ns).0);
        if cost > 0 && cost <= rules.burst {
            prop_assert_eq!(ask(&rules, state, cost, then_ns).1, ask(&rules, State::FULL, cost, then_ns).1);
        }
        if full_ns > 0 {
            prop_assert!(ask(&rules, state, 0, full_ns - 1).0.remaining() < rules.burst);
            let reset_ns = ask(&rules, state, 0, now_ns).0.reset_after().as_nanos();
            prop_assert_eq!(u128::from(now_ns) + reset_ns, u128::from(full_ns.max(now_ns)));
        }
    }

    /// What is given back is there at once, and never fills a bucket beyond full.
    #[test]
    fn a_grant_gives_back_exactly(
        rules in any_rules(), start_ns in any_start(), run in any_run(30), tokens in any_cost(), rest in any_run(10),
    ) {
        let (state, mut oracle, mut now_ns) = used(rules, start_ns, &run);
        let tokens = tokens.tokens(&rules);
        let mut state = grant(&rules.quota(), state, tokens, Time::from_nanos(now_ns));
        oracle.grant(tokens, now_ns);
        for (gap, cost) in rest {
            let cost = cost.tokens(&rules);
            let (decision, next) = ask(&rules, state, cost, now_ns);
            prop_assert_eq!(shown(&decision), oracle.take(cost, now_ns));
            state = next;
            now_ns = gap.after(now_ns, &rules);
        }
    }
}
