//! The sliding log, which keeps all laws in a ring of its own: against the oracle, and against the law itself.

use proptest::prelude::*;
use tidegate_core::{Algorithm, Cost, Decision, Log, LogEntry, LogPlace, LogView, Time, decide_log};

use crate::cases;
use crate::given::{CostDraw, Gap, any_cost, any_gap, any_rules_of, any_start};
use crate::oracle::{Oracle, Rules, Ruling, shown, whole};

/// A log as a store keeps it, with a ring that is just large enough.
#[derive(Clone)]
struct Kept {
    rules: Rules,
    ring: Vec<LogEntry>,
    place: LogPlace,
}

impl Kept {
    fn empty(rules: Rules) -> Self {
        let length = usize::try_from(rules.burst).expect("a ring in memory");
        Self { rules, ring: vec![LogEntry::default(); length], place: LogPlace::default() }
    }

    fn log(&mut self) -> Log<'_> {
        Log::new(&mut self.ring, &mut self.place)
    }

    fn view(&mut self, cost: u64, now_ns: u64) -> LogView {
        let quota = self.rules.quota();
        self.log().view(&quota, Cost::new(cost), Time::from_nanos(now_ns))
    }

    fn ask(&mut self, cost: u64, now_ns: u64) -> Decision {
        let (quota, now, view) = (self.rules.quota(), Time::from_nanos(now_ns), self.view(cost, now_ns));
        let decision = decide_log(&quota, view, Cost::new(cost), now);
        match decision.is_allowed() {
            true => self.log().charge(&quota, Cost::new(cost), now),
            false if !decision.is_never() => self.log().repair(&quota, now),
            false => {}
        }
        decision
    }

    /// The same under other rules, in a ring of their size.
    fn replace(&mut self, rules: Rules, now_ns: u64) {
        let (old, new) = (self.rules.quota(), rules.quota());
        self.log().carry_over(&old, &new, Time::from_nanos(now_ns));
        let mut ring = Self::empty(rules).ring;
        self.place = self.log().copy_to(&mut ring);
        (self.ring, self.rules) = (ring, rules);
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Take(CostDraw),
    Owe(CostDraw),
    Give(CostDraw),
    TakeBack(CostDraw, Gap),
    Replace(usize),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => any_cost().prop_map(Act::Take),
        1 => any_cost().prop_map(Act::Owe),
        1 => any_cost().prop_map(Act::Give),
        1 => (any_cost(), any_gap()).prop_map(|(cost, gap)| Act::TakeBack(cost, gap)),
        1 => (0..2usize).prop_map(Act::Replace),
    ]
}

fn any_log() -> impl Strategy<Value = Rules> {
    any_rules_of(Algorithm::SlidingLog)
}

fn act(kept: &mut Kept, oracle: &mut Oracle, both: &[Rules; 2], act: Act, now_ns: u64) -> Result<(), TestCaseError> {
    let (quota, now) = (kept.rules.quota(), Time::from_nanos(now_ns));
    match act {
        Act::Take(cost) => {
            let cost = cost.tokens(&kept.rules);
            let mut asked = oracle.clone();
            prop_assert_eq!(shown(&kept.ask(cost, now_ns)), asked.take(cost, now_ns), "cost {} at {}", cost, now_ns);
            // A look and a never write no repair.
            if cost > 0 && cost <= kept.rules.burst {
                *oracle = asked;
            }
        }
        Act::Owe(tokens) => {
            let tokens = tokens.tokens(&kept.rules);
            kept.log().owe(&quota, tokens, now);
            oracle.owe(tokens, now_ns);
        }
        Act::Give(tokens) => {
            let tokens = tokens.tokens(&kept.rules);
            kept.log().grant(&quota, tokens, now);
            oracle.repair(now_ns);
            oracle.grant(tokens, now_ns);
        }
        Act::TakeBack(tokens, gap) => {
            let (tokens, taken_ns) = (tokens.tokens(&kept.rules), gap.before(now_ns, &kept.rules));
            kept.log().give_back(&quota, tokens, Time::from_nanos(taken_ns), now);
            if now_ns - taken_ns < kept.rules.period_ns {
                oracle.repair(now_ns);
            }
            oracle.take_back(tokens, taken_ns, now_ns);
        }
        Act::Replace(which) => {
            kept.replace(both[which], now_ns);
            oracle.repair(now_ns);
            oracle.replace(both[which], now_ns);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(700))]

    /// Laws 3 to 6 and 9 to 10: every number that is shown is the one that the definition gives, whatever was done
    /// before, and however the clock went.
    #[test]
    fn all_numbers_of_a_log_are_the_oracles(
        both in [any_log(), any_log()], start_ns in any_start(),
        run in proptest::collection::vec((any_gap(), proptest::bool::weighted(0.1), any_act()), 1..40),
    ) {
        let (mut kept, mut oracle, mut now_ns) = (Kept::empty(both[0]), Oracle::full(both[0]), start_ns);
        for (gap, back, one) in run {
            now_ns = if back { gap.before(now_ns, &kept.rules) } else { gap.after(now_ns, &kept.rules) };
            act(&mut kept, &mut oracle, &both, one, now_ns)?;
            prop_assert!(kept.log().len() as u64 <= kept.rules.burst, "no more entries than the count");
        }
    }

    /// Law 1: at most the count in any half-open period, and in any of several periods.
    #[test]
    fn law_1_sound_logs(
        rules in any_log(), start_ns in any_start(), run in proptest::collection::vec((any_gap(), any_cost()), 1..60),
    ) {
        let (mut kept, mut now_ns, mut passed) = (Kept::empty(rules), start_ns, Vec::new());
        for (gap, cost) in run {
            now_ns = gap.after(now_ns, &rules);
            let cost = cost.tokens(&rules);
            if kept.ask(cost, now_ns).is_allowed() {
                passed.push((now_ns, cost));
            }
        }
        for first in 0..passed.len() {
            let mut sum = 0;
            for (at_ns, cost) in &passed[first..] {
                sum += cost;
                prop_assert!(whole(sum) <= rules.most_within(at_ns - passed[first].0));
            }
        }
    }

    /// Laws 3 and 4: a denial leaves the log as it was; after exactly the wait the same cost passes, and a nanosecond
    /// earlier it does not. Law 8: from `full_at` on it answers as one that was never there, and not earlier.
    #[test]
    fn laws_3_4_and_8_hold_in_logs(
        both in [any_log(), any_log()], start_ns in any_start(),
        run in proptest::collection::vec((any_gap(), any_act()), 1..30), cost in any_cost(),
    ) {
        let (mut kept, mut oracle, mut now_ns) = (Kept::empty(both[0]), Oracle::full(both[0]), start_ns);
        for (gap, one) in run {
            now_ns = gap.after(now_ns, &kept.rules);
            act(&mut kept, &mut oracle, &both, one, now_ns)?;
        }
        let (cost, before) = (cost.tokens(&kept.rules), (kept.ring.clone(), kept.place));
        let mut asked = kept.clone();
        let decision = asked.ask(cost, now_ns);
        if !decision.is_allowed() || cost == 0 {
            prop_assert_eq!((asked.ring.clone(), asked.place), before);
        }
        let then_ns = decision.retry_after().and_then(|wait| now_ns.checked_add(u64::try_from(wait.as_nanos()).ok()?));
        if let Some(then_ns) = then_ns {
            prop_assert!(asked.clone().ask(cost, then_ns).is_allowed());
            prop_assert!(!asked.ask(cost, then_ns - 1).is_allowed());
        }
        let quota = kept.rules.quota();
        let full_ns = kept.log().full_at(&quota).as_nanos();
        if full_ns < u64::MAX && full_ns > now_ns {
            prop_assert_eq!(kept.view(cost, full_ns), Kept::empty(kept.rules).view(cost, full_ns));
            prop_assert!(kept.ask(0, full_ns - 1).remaining() < kept.rules.burst);
        }
    }
}

#[test]
fn a_look_is_always_answered() {
    let rules = Rules { count: 1, period_ns: 10, burst: 1, algorithm: Algorithm::SlidingLog };
    assert_eq!(shown(&Kept::empty(rules).ask(0, 7)).ruling, Ruling::Allowed);
}
