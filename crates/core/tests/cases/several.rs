//! Several limits in one decision.

use core::time::Duration;
use std::collections::BTreeMap;

use tidegate_core::{Charge, Cost, Decision, Handling, LimitId, Mode, Standing, State, Time, Verdict, decide_all};

use crate::script::{S, quota};

/// Some limits, each with one bucket, charged together in the order in which they were given.
struct Limits<'a> {
    limits: Vec<(&'a str, &'a str)>,
    states: BTreeMap<&'a str, State>,
}

impl<'a> Limits<'a> {
    /// Names and texts.
    fn new(limits: &[(&'a str, &'a str)]) -> Self {
        Self { limits: limits.to_vec(), states: BTreeMap::new() }
    }

    /// Charges each limit that `costs` names; gives the verdict and the decisions in that order.
    fn take(&mut self, costs: &[(&'a str, u64)], at_ns: u64) -> (Verdict, Vec<Decision>) {
        let charges: Vec<Charge<'_>> = costs.iter().map(|(name, cost)| self.charge(name, *cost)).collect();
        let stored = |(name, _): &(&str, u64)| Ok(self.states.get(name).copied().unwrap_or(State::FULL));
        let mut standings: Vec<Standing> = costs.iter().map(stored).collect();
        let mut decisions: Vec<Decision> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let verdict = decide_all(&charges, &mut standings, &mut decisions, Time::from_nanos(at_ns));
        for ((name, _), standing) in costs.iter().zip(standings) {
            self.states.insert(name, standing.expect("every charge has a bucket"));
        }
        (verdict, decisions)
    }

    /// One of each limit: whether it passed, and if not, which limit binds and how long to wait.
    fn take_one_of_each(&mut self, at_ns: u64) -> Result<(), (&'a str, Duration)> {
        let costs: Vec<(&str, u64)> = self.limits.iter().map(|(name, _)| (*name, 1)).collect();
        let (verdict, decisions) = self.take(&costs, at_ns);
        if verdict.allowed {
            return Ok(());
        }
        let binding = verdict.binding.expect("a denial binds");
        Err((costs[binding].0, decisions[binding].retry_after().expect("it is not for ever")))
    }

    fn remaining(&mut self, name: &'a str, at_ns: u64) -> u64 {
        self.take(&[(name, 0)], at_ns).1[0].remaining()
    }

    fn charge(&self, name: &str, cost: u64) -> Charge<'static> {
        let (_, limit) = self.limits.iter().find(|(known, _)| *known == name).expect("a limit of that name");
        Charge {
            limit: LimitId::of("policy", name),
            quota: quota(limit),
            key: b"client-1",
            cost: Cost::new(cost),
            mode: Mode::Enforce,
            handling: Handling::default(),
        }
    }
}

#[test]
fn br_066_one_limit_takes_one_and_two_limits_take_one_each() {
    let mut limits = Limits::new(&[("limiter", "600/min"), ("other", "600/min")]);
    for _ in 0..2 {
        assert!(limits.take(&[("limiter", 1)], 0).0.allowed);
    }
    assert_eq!(limits.remaining("limiter", 0), 598);
    assert_eq!(limits.take_one_of_each(0), Ok(()));
    assert_eq!((limits.remaining("limiter", 0), limits.remaining("other", 0)), (597, 599));
}

#[test]
fn br_067_what_the_minute_denies_the_day_is_not_charged_for() {
    let mut limits = Limits::new(&[("minute", "5/min"), ("day", "50/day")]);
    for _ in 0..5 {
        assert_eq!(limits.take_one_of_each(0), Ok(()));
    }
    assert_eq!(limits.take_one_of_each(0), Err(("minute", Duration::from_secs(12))));
    assert_eq!(limits.remaining("day", 0), 45);
    for k in 1..10 {
        for _ in 0..5 {
            assert_eq!(limits.take_one_of_each(k * 60 * S), Ok(()));
        }
    }
    for _ in 0..5 {
        assert_eq!(limits.take_one_of_each(600 * S), Err(("day", Duration::from_secs(1_128))));
    }
    assert_eq!(limits.remaining("minute", 600 * S), 5);
}

#[test]
fn br_138_a_limit_is_not_charged_for_what_another_denied() {
    let mut limits = Limits::new(&[("d1", "10/min"), ("d2", "10000/min")]);
    let costs = [("d1", 1), ("d2", 1_500)];
    for _ in 0..6 {
        assert!(limits.take(&costs, 0).0.allowed);
    }
    for _ in 0..2 {
        let (verdict, decisions) = limits.take(&costs, 0);
        assert_eq!((verdict.allowed, verdict.binding), (false, Some(1)));
        let each: Vec<(bool, u64)> = decisions.iter().map(|d| (d.is_allowed(), d.remaining())).collect();
        assert_eq!(each, [(true, 4), (false, 1_000)]);
    }
}

#[test]
fn br_139_either_order_gives_the_same() {
    let (a, b) = (("a", "10/min"), ("b", "30/30min"));
    for order in [[a, b], [b, a]] {
        let mut limits = Limits::new(&order);
        for _ in 0..10 {
            assert_eq!(limits.take_one_of_each(0), Ok(()));
        }
        for _ in 0..21 {
            assert_eq!(limits.take_one_of_each(0), Err(("a", Duration::from_secs(6))));
        }
        assert_eq!(limits.remaining("b", 0), 20);
    }
}

#[test]
fn br_141_all_limits_that_match_apply() {
    let mut limits = Limits::new(&[("default", "1/s"), ("p1", "100/2s")]);
    assert_eq!(limits.take_one_of_each(0), Ok(()));
    for _ in 0..49 {
        assert_eq!(limits.take_one_of_each(0), Err(("default", Duration::from_secs(1))));
    }
    assert_eq!(limits.remaining("p1", 0), 99);
    assert!(!limits.take(&[("default", 1)], 0).0.allowed);
}

#[test]
fn br_071_a_guard_denies_all_and_takes_nothing() {
    let mut limits = Limits::new(&[("hold", "1/10min"), ("limit", "5/h")]);
    let mut ask = |mode: Mode, at_ns: u64| {
        let hold = limits.charge("hold", 1).with_mode(mode);
        let (charges, stored) = ([limits.charge("limit", 1), hold], ["limit", "hold"]);
        let mut standings = stored.map(|name| Ok(limits.states.get(name).copied().unwrap_or(State::FULL)));
        let mut decisions = charges.map(|charge| Decision::unmade(&charge.quota));
        let verdict = decide_all(&charges, &mut standings, &mut decisions, Time::from_nanos(at_ns));
        for (name, state) in stored.iter().zip(standings) {
            limits.states.insert(name, state.unwrap());
        }
        (verdict.allowed, decisions.map(|decision| decision.remaining()), decisions[1].retry_after())
    };
    assert_eq!([(); 3].map(|()| ask(Mode::Guard, 0).1), [[4, 1], [3, 1], [2, 1]]);
    assert_eq!(ask(Mode::Enforce, 0), (true, [1, 0], None), "the hold begins");
    let minutes = |count: u64| Some(Duration::from_secs(60 * count));
    assert_eq!(ask(Mode::Guard, 0), (false, [1, 0], minutes(10)));
    assert_eq!(ask(Mode::Enforce, 60 * S), (false, [1, 0], minutes(9)), "it does not become longer");
    assert_eq!(ask(Mode::Guard, 60 * S), (false, [1, 0], minutes(9)));
    assert_eq!(ask(Mode::Guard, 600 * S), (true, [0, 1], None));
}
