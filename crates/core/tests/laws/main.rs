//! The laws, as properties over the whole range of quotas, costs and times, against an oracle in rational arithmetic.
//!
//! One file for a bucket left to itself, one for several limits in one decision, one for clocks that step back, one for
//! quotas that change, one for debts, and one for the sliding log, whose
//! state is a ring. `PROPTEST_CASES` sets the number of cases of each property; a failure shrinks, and is kept in a
//! file beside the law's.

mod clock_steps;
mod debts;
#[path = "../given/mod.rs"]
mod given;
mod logs;
#[path = "../oracle/mod.rs"]
mod oracle;
mod quota_changes;
mod several_limits;
mod steady;

use given::{CostDraw, Gap};
use oracle::{Oracle, Rules};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tidegate_core::{Cost, Decision, State, Time, decide};

pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let told = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig {
        cases: told.unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

pub(crate) fn ask(rules: &Rules, state: State, cost: u64, now_ns: u64) -> (Decision, State) {
    decide(&rules.quota(), state, Cost::new(cost), Time::from_nanos(now_ns))
}

/// A bucket that has seen some traffic, by the core and by the oracle, and the time it is then.
pub(crate) fn used(rules: Rules, start_ns: u64, run: &[(Gap, CostDraw)]) -> (State, Oracle, u64) {
    let (mut state, mut oracle, mut now_ns) = (State::FULL, Oracle::full(rules), start_ns);
    for (gap, cost) in run {
        now_ns = gap.after(now_ns, &rules);
        state = ask(&rules, state, cost.tokens(&rules), now_ns).1;
        oracle.take(cost.tokens(&rules), now_ns);
    }
    (state, oracle, now_ns)
}
