//! Audits of limiters whose limits are known, on a clock that runs only when somebody waits.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header::HeaderName, header::RETRY_AFTER};
use tidegate::Time;
use tidegate_core::{Algorithm, Cost, Limit, Quota, State, decide};

use super::auditor::Service;
use super::finding::Limiter as Found;
use super::model::{Edges, Guess, Model};
use super::*;
use crate::wire::{Answer, Exchange};

/// A service at hand: a call takes so long, and is decided halfway.
struct Pretended<L> {
    now: Cell<u64>,
    way: Duration,
    limiter: RefCell<L>,
    /// What Retry-After says of every denial. Seconds.
    claim: Option<u64>,
}

/// Decides at an instant, for a caller.
trait Decides {
    fn admits(&mut self, at: Time, fields: &[(HeaderName, HeaderValue)]) -> bool;
}

impl<L: Decides> Service for Pretended<L> {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.get())
    }

    async fn wait_until(&self, then: Time) {
        self.now.set(self.now.get().max(then.as_nanos()));
    }

    async fn call(&self, fields: &[(HeaderName, HeaderValue)]) -> Exchange {
        let sent = self.now();
        let is_admitted = self.limiter.borrow_mut().admits(sent.saturating_add(self.way / 2), fields);
        self.now.set(sent.saturating_add(self.way).as_nanos());
        let status = if is_admitted { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
        let claim = self.claim.filter(|_| !is_admitted).map(|claim| (RETRY_AFTER, HeaderValue::from(claim)));
        let fields = claim.into_iter().collect::<HeaderMap>();
        Exchange { sent, answered: self.now(), outcome: Ok(Answer { status, fields, length: 0 }) }
    }
}

/// Nothing here waits for anything but its own clock.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

fn options() -> Options {
    Options { key_field: None, denials: DENIALS.to_vec(), budget: BUDGET, time: Duration::from_secs(600) }
}

fn audited<L: Decides>(limiter: L, claim: Option<u64>, options: &Options) -> Report {
    // Some odd instant of some day.
    let now = Cell::new(1_764_428_645_123_456_789);
    let service = Pretended { now, way: Duration::from_micros(200), limiter: limiter.into(), claim };
    let target = "http://127.0.0.1/".parse().unwrap();
    at_once(audit_service(&service, target, options, &mut |_, _| {})).unwrap()
}

/// The decisions of the core, for one key.
struct Exact {
    quota: Quota,
    state: State,
}

impl Exact {
    fn new(limit: &str, algorithm: Algorithm) -> Self {
        let quota = limit.parse::<Limit>().unwrap().quota().unwrap().with_algorithm(algorithm).unwrap();
        Self { quota, state: State::FULL }
    }
}

impl Decides for Exact {
    fn admits(&mut self, at: Time, _: &[(HeaderName, HeaderValue)]) -> bool {
        let (decision, next) = decide(&self.quota, self.state, Cost::ONE, at);
        self.state = next;
        decision.is_allowed()
    }
}

/// One that goes by a field, if there is one, and whose denials count if it wants.
struct Other {
    guess: Guess,
    models: HashMap<String, Model>,
    field: &'static str,
}

impl Other {
    fn new(kind: Kind, count: u32, period: f64, counts_denied: bool) -> Self {
        let guess = Guess { kind, count, period, edges: Edges::FirstCall, counts_denied, rounds_down: true };
        Self { guess, models: HashMap::new(), field: "" }
    }

    fn by(field: &'static str) -> Self {
        Self { field, ..Self::new(Kind::TokenBucket, 10, 1.0, false) }
    }
}

impl Decides for Other {
    fn admits(&mut self, at: Time, fields: &[(HeaderName, HeaderValue)]) -> bool {
        let own = fields.iter().find(|(name, _)| name.as_str() == self.field);
        let key = own.map_or_else(String::new, |(_, value)| value.to_str().unwrap().to_owned());
        let model = self.models.entry(key).or_insert_with(|| Model::new(self.guess));
        let at = at.as_nanos() as f64 / 1e9 - 1_764_428_000.0;
        let admits = model.admits(at);
        model.follow(at, admits);
        admits
    }
}

fn found(report: &Report) -> &Found {
    match &report.finding {
        Finding::Found(limiter) => limiter,
        other => panic!("{other:?}"),
    }
}

/// Of this kind, of this burst, and of this rate: to one per cent, or to what the report says of itself.
fn assert_found(report: &Report, kind: Kind, burst: u32, rate: f64) {
    let limiter = found(report);
    let is_near = (limiter.rate() - rate).abs() < limiter.uncertainty.clamp(0.01, 0.03) * rate;
    let is_right = limiter.kind == kind && limiter.burst == burst && is_near;
    assert!(is_right, "a {kind} of {burst} at {rate}/s:\n{}", report.to_text());
    assert!(limiter.explained + 1 >= report.answered, "{}", report.to_text());
}

#[test]
fn token_buckets_are_found_from_a_few_a_minute_to_thousands_a_second() {
    let limits = [
        ("3/min", 3, 0.05),
        ("10/s burst 1", 1, 10.0),
        ("10/s burst 20", 20, 10.0),
        ("60/min burst 10", 10, 1.0),
        ("100/s burst 50", 50, 100.0),
        ("1000/s burst 100", 100, 1_000.0),
    ];
    for (limit, burst, rate) in limits {
        let report = audited(Exact::new(limit, Algorithm::TokenBucket), None, &options());
        assert_found(&report, Kind::TokenBucket, burst, rate);
        assert!(!found(&report).counts_denied && report.calls <= BUDGET);
    }
}

#[test]
fn fixed_windows_are_found_with_their_double_edge() {
    for (limit, burst, rate) in [("59/min", 59, 59.0 / 60.0), ("20/2s", 20, 10.0), ("100/s", 100, 100.0)] {
        let report = audited(Exact::new(limit, Algorithm::FixedWindow), None, &options());
        assert_found(&report, Kind::FixedWindow, burst, rate);
        let (most, _) = report.worst.unwrap();
        assert!(most > u64::from(burst) * 3 / 2, "the edge was seen: {most}");
    }
}

#[test]
fn windows_that_begin_with_the_first_call_are_found() {
    let report = audited(Other::new(Kind::FixedWindow, 30, 5.0, false), None, &options());
    assert_found(&report, Kind::FixedWindow, 30, 6.0);
}

#[test]
fn sliding_windows_are_told_from_fixed_ones() {
    let report = audited(Other::new(Kind::SlidingLog, 20, 2.0, false), None, &options());
    assert_found(&report, Kind::SlidingLog, 20, 10.0);
    let report = audited(Other::new(Kind::SlidingCounter, 20, 2.0, false), None, &options());
    assert_found(&report, Kind::SlidingCounter, 20, 10.0);
}

#[test]
fn the_sliding_windows_of_the_core_are_found_too() {
    for (limit, burst, rate) in [("20/s", 20, 20.0), ("100/10s", 100, 10.0)] {
        let report = audited(Exact::new(limit, Algorithm::SlidingCounter), None, &options());
        assert_found(&report, Kind::SlidingCounter, burst, rate);
    }
}

#[test]
fn denied_calls_that_count_are_noticed() {
    for kind in [Kind::SlidingLog, Kind::SlidingCounter] {
        let report = audited(Other::new(kind, 20, 10.0, true), None, &options());
        assert_found(&report, kind, 20, 2.0);
        assert!(found(&report).counts_denied, "{}", report.to_text());
    }
}

#[test]
fn a_field_that_is_believed_is_named() {
    let report = audited(Other::by("x-forwarded-for"), None, &options());
    assert_eq!(report.believed, Some(vec!["x-forwarded-for"]));
    let report = audited(Other::by("x-api-key"), None, &options());
    assert_eq!(report.believed, Some(vec![]));
}

#[test]
fn a_key_of_its_own_spares_an_audit_the_rests_and_is_told_if_it_makes_no_difference() {
    let with_key = Options { key_field: Some(HeaderName::from_static("x-api-key")), ..options() };
    let report = audited(Other::by("x-api-key"), None, &with_key);
    assert_eq!(report.key_chooses, Some(true));
    assert_found(&report, Kind::TokenBucket, 10, 10.0);
    let report = audited(Other::by("x-other"), None, &with_key);
    assert_eq!(report.key_chooses, Some(false));
    assert_found(&report, Kind::TokenBucket, 10, 10.0);
}

#[test]
fn promises_are_put_to_the_test() {
    let promised = |claim| audited(Exact::new("1/s burst 5", Algorithm::TokenBucket), Some(claim), &options());
    let report = promised(1);
    assert_eq!(report.promises, Some(Promises { tried: 2, kept: 2 }));
    assert!(report.needless.unwrap() < Duration::from_secs(1));
    assert_eq!(promised(0).promises, Some(Promises { tried: 2, kept: 0 }));
    assert!(promised(9).needless.unwrap() > Duration::from_secs(7));
}

#[test]
fn what_has_no_limit_or_no_return_is_told_so_within_the_budget() {
    let report = audited(Other::new(Kind::TokenBucket, u32::MAX, 1.0, false), None, &options());
    assert_eq!(report.finding, Finding::NoLimit);
    assert!(report.calls <= BUDGET * 6 / 10 + 1);
    let report = audited(Other::new(Kind::FixedWindow, 100, 86_400.0, false), None, &options());
    assert!(matches!(report.finding, Finding::NoReturn { burst: 100, .. }), "{}", report.to_text());
    let few = Options { budget: 10, ..options() };
    assert_eq!(audited(Exact::new("1000/s", Algorithm::TokenBucket), None, &few).finding, Finding::NoLimit);
}

#[test]
fn what_is_expected_is_held_against_what_was_found() {
    let report = audited(Exact::new("10/s burst 20", Algorithm::TokenBucket), None, &options());
    let expects = |limit: &str| Expectation::new(limit.parse::<Limit>().unwrap().quota().unwrap()).checks(&report);
    assert!(expects("10/s burst 20").hold() && expects("600/min burst 20").hold());
    let failing = |limit: &str| {
        let checks = expects(limit);
        checks.0.iter().filter(|check| !check.holds).map(|check| check.what).collect::<Vec<_>>()
    };
    assert_eq!(failing("10/s burst 40"), ["burst"]);
    assert_eq!(failing("12/s burst 20"), ["sustained rate"]);
    assert_eq!(failing("5/s burst 10"), ["burst", "sustained rate", "most in a period"]);
}
