//! The sliding log: what passed counts for exactly a period.

use core::time::Duration;

use tidegate_core::{
    Algorithm, Charge, Cost, Decision, Limit, LimitId, Log, LogEntry, LogPlace, Mode, Quota, QuotaError, State, Time,
    decide_all_with_logs, decide_log,
};

use crate::script::S;

struct Kept {
    quota: Quota,
    ring: Vec<LogEntry>,
    place: LogPlace,
}

impl Kept {
    fn new(limit: &str) -> Self {
        let quota = limit.parse::<Limit>().unwrap().quota().unwrap().with_algorithm(Algorithm::SlidingLog).unwrap();
        Self { quota, ring: vec![LogEntry::default(); quota.burst() as usize], place: LogPlace::default() }
    }

    fn take(&mut self, at_ns: u64) -> Decision {
        let (now, mut log) = (Time::from_nanos(at_ns), Log::new(&mut self.ring, &mut self.place));
        let decision = decide_log(&self.quota, log.view(&self.quota, Cost::ONE, now), Cost::ONE, now);
        if decision.is_allowed() {
            log.charge(&self.quota, Cost::ONE, now);
        }
        decision
    }

    fn passes(&mut self, at_ns: u64, times: usize) -> usize {
        (0..times).filter(|_| self.take(at_ns).is_allowed()).count()
    }

    fn wait_s(&mut self, at_ns: u64) -> u64 {
        self.take(at_ns).retry_after().map_or(0, |wait| wait.as_secs())
    }
}

#[test]
fn br_061_the_wait_ends_when_the_oldest_leaves() {
    let mut log = Kept::new("3/10s");
    assert_eq!([0, 4, 8].map(|second| log.passes(second * S, 1)), [1, 1, 1]);
    assert_eq!(log.wait_s(9 * S), 1);
    assert_eq!(log.passes(10 * S - 1, 1), 0);
    assert_eq!(log.passes(10 * S, 1), 1);
    assert_eq!(log.wait_s(10 * S), 4);
}

#[test]
fn br_101_requests_of_one_instant_are_as_many_as_they_are() {
    let mut log = Kept::new("10/60s");
    assert_eq!(log.passes(7 * S, 50), 10);
    assert_eq!(log.passes(67 * S - 1, 50), 0);
    assert_eq!(log.passes(67 * S, 50), 10);
}

#[test]
fn around_an_edge_a_log_passes_59() {
    let mut log = Kept::new("59/min");
    assert_eq!((log.passes(59 * S, 59), log.passes(61 * S, 59)), (59, 0));
}

#[test]
fn a_guard_of_a_log_denies_and_takes_nothing() {
    let mut log = Kept::new("3/10s");
    let two = |log: &mut Kept, mode, second| {
        let now = Time::from_secs(second);
        let charge = Charge::new(LimitId::of("guard", "log"), log.quota, b"k").with_cost(Cost::new(2)).with_mode(mode);
        let view = Log::new(&mut log.ring, &mut log.place).view(&log.quota, charge.cost, now);
        let mut decisions = [Decision::unmade(&log.quota)];
        let verdict = decide_all_with_logs(&[charge], &mut [Ok(State::FULL)], &[Some(view)], &mut decisions, now);
        (verdict.allowed, decisions[0].remaining(), decisions[0].retry_after())
    };
    assert_eq!(two(&mut log, Mode::Guard, 0), (true, 3, None));
    assert_eq!(two(&mut log, Mode::Enforce, 0), (true, 1, None));
    assert_eq!(log.passes(0, 2), 2);
    assert_eq!(two(&mut log, Mode::Guard, 1), (false, 1, Some(Duration::from_secs(9))));
}

#[test]
fn a_log_of_more_than_ten_thousand_is_refused_by_name() {
    let log = |limit: &str| limit.parse::<Limit>().unwrap().quota().unwrap().with_algorithm(Algorithm::SlidingLog);
    assert!(log("10000/h").is_ok());
    let error = log("10001/h").unwrap_err();
    assert_eq!(error, QuotaError::TooLargeForALog);
    assert!(error.to_string().contains("an entry for each request, 10000 at most"));
    assert_eq!(log("10/s burst 20"), Err(QuotaError::BurstIsNotTheCount(Algorithm::SlidingLog)));
}
