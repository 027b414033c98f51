//! Policies over a store, on a clock that stands still unless it is moved: from a request to its answer.

#![cfg(feature = "policy")]

use std::fmt;
use std::future::{Future, ready};
use std::net::IpAddr;
use std::time::Duration;

use tidegate::policy::{Attributes, ClientAddress, OnMissing, Peer, Policies, Policy, PolicyError};
use tidegate::{
    AtBound, Cause, Charge, Cost, Decision, Gate, GateAnswer, Handling, Kept, Limit, LimitId, ManualClock, Memory,
    Mode, Quota, ReservationId, Settled, Store, TableOptions, Verdict,
};

const SECOND: Duration = Duration::from_secs(1);

/// A request from one peer, with the value of its x-api-key if it has one.
#[derive(Clone, Copy)]
struct Request {
    peer: [u8; 4],
    path: &'static str,
    key: Option<&'static str>,
}

const REQUEST: Request = Request { peer: [203, 0, 113, 7], path: "/", key: None };

impl Attributes for Request {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::from(self.peer))
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.path
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        self.key.iter().filter(|_| name == "x-api-key").for_each(|key| each(key.as_bytes()));
    }
}

/// What an answer said, taken off the stack it lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    cause: Option<Cause>,
    is_matched: bool,
    /// The limit that binds, as `policy/limit`.
    binding: Option<String>,
    remaining: Option<u64>,
    retry_after: Option<Duration>,
    /// Each limit that was asked, whether it allowed, and what remains of it.
    charges: Vec<(String, bool, u64)>,
}

impl Seen {
    fn of(answer: &GateAnswer<'_>) -> Self {
        let charges = answer.charges().map(|(place, charge, decision)| {
            assert_eq!((charge.limit, charge.mode), (place.limit.id, place.limit.mode));
            (place.limit.name.clone(), decision.is_allowed(), decision.remaining())
        });
        let binding = answer.binding().map(|place| format!("{}/{}", place.policy.name(), place.limit.name));
        Self {
            cause: answer.answer.cause,
            is_matched: answer.is_matched,
            binding,
            remaining: answer.answer.remaining(),
            retry_after: answer.answer.retry_after(),
            charges: charges.collect(),
        }
    }

    fn is_allowed(&self) -> bool {
        self.cause.is_none()
    }
}

/// A gate, and the clock of its store.
struct Stage {
    gate: Gate<Memory<ManualClock>>,
    clock: ManualClock,
}

impl Stage {
    fn of(policies: impl IntoIterator<Item = Policy>) -> Self {
        let clock = ManualClock::new();
        let policies = Policies::new(ClientAddress::default(), policies.into_iter().collect()).unwrap();
        Self { gate: Gate::new(policies, Memory::new(TableOptions::with_keys(1_000), clock.clone())), clock }
    }

    async fn ask(&self, request: Request) -> Seen {
        self.gate.decide(&request, |answer| Seen::of(&answer)).await.unwrap()
    }

    /// How many of so many equal requests pass.
    async fn passed(&self, request: Request, asked: usize) -> usize {
        let mut passed = 0;
        for _ in 0..asked {
            passed += usize::from(self.ask(request).await.is_allowed());
        }
        passed
    }

    fn keys(&self) -> usize {
        self.gate.store().table().live_keys_at(self.gate.store().now())
    }
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn policy(name: &str, key: &str, limits: &[&str]) -> Policy {
    Policy::new(name, key.parse().unwrap()).with_limits(limits.iter().map(|text| limit(text)), Mode::Enforce)
}

#[tokio::test]
async fn a_request_is_charged_until_the_limit_denies_it_and_then_waits() {
    let stage = Stage::of([policy("api", "client", &["3/min"])]);
    for remaining in [2, 1, 0] {
        let seen = stage.ask(REQUEST).await;
        assert!(seen.is_allowed() && seen.is_matched);
        assert_eq!((seen.remaining, seen.retry_after), (Some(remaining), None));
        assert_eq!(seen.charges, [("limit-1".to_owned(), true, remaining)]);
    }
    let denied = stage.ask(REQUEST).await;
    assert_eq!((denied.cause, denied.retry_after), (Some(Cause::Limit), Some(20 * SECOND)));
    assert_eq!((denied.binding.as_deref(), denied.remaining), (Some("api/limit-1"), Some(0)));
    assert!(stage.ask(Request { peer: [203, 0, 113, 8], ..REQUEST }).await.is_allowed(), "another client");

    stage.clock.advance(20 * SECOND - Duration::from_nanos(1));
    assert_eq!(stage.passed(REQUEST, 3).await, 0);
    stage.clock.advance(Duration::from_nanos(1));
    assert_eq!(stage.passed(REQUEST, 3).await, 1);
}

#[tokio::test]
async fn what_no_policy_matches_passes_and_is_known_as_unmatched() {
    let seen = Stage::of([]).ask(REQUEST).await;
    assert!(seen.is_allowed() && !seen.is_matched);
    assert_eq!((seen.binding, seen.charges), (None, vec![]));
}

#[tokio::test]
async fn what_is_unlimited_or_skipped_passes_without_a_charge() {
    let unlimited = policy("free", "client", &["unlimited"]);
    let skipped = policy("keyed", "header:x-api-key", &["0/min"]).with_on_missing(OnMissing::Skip);
    let stage = Stage::of([unlimited, skipped]);
    let seen = stage.ask(REQUEST).await;
    assert!(seen.is_allowed() && seen.is_matched);
    assert_eq!((seen.binding, seen.remaining, seen.charges, stage.keys()), (None, None, vec![], 0));

    let denied = stage.ask(Request { key: Some("k"), ..REQUEST }).await;
    assert_eq!((denied.cause, denied.retry_after), (Some(Cause::Limit), None), "never, so there is no wait");
    assert_eq!(denied.charges.len(), 1);
}

#[tokio::test]
async fn a_request_without_its_key_is_denied_if_the_policy_says_so_and_charged_to_nobody() {
    let keyed = policy("keyed", "header:x-api-key", &["1/min"]).with_on_missing(OnMissing::Deny);
    let stage = Stage::of([policy("all", "client", &["5/min"]), keyed]);
    let denied = stage.ask(REQUEST).await;
    assert_eq!((denied.cause, denied.is_matched), (Some(Cause::MissingKey), true));
    assert_eq!((denied.binding, denied.retry_after, denied.charges), (None, None, vec![]));
    assert_eq!(stage.keys(), 0, "the limit by client was not charged either");
    assert_eq!(stage.passed(Request { key: Some("k"), ..REQUEST }, 2).await, 1);
    assert_eq!(stage.keys(), 2);
}

#[tokio::test]
async fn a_missing_key_falls_back_to_the_client_in_a_namespace_of_its_own() {
    let stage = Stage::of([policy("keyed", "header:x-api-key", &["1/min"])]);
    assert_eq!(stage.passed(REQUEST, 2).await, 1);
    assert_eq!(stage.passed(Request { key: Some("203.0.113.7"), ..REQUEST }, 2).await, 1);
    assert_eq!(stage.passed(Request { peer: [203, 0, 113, 8], ..REQUEST }, 2).await, 1);
}

#[tokio::test]
async fn a_limit_in_shadow_is_counted_after_the_enforced_ones_and_denies_nothing() {
    let policy = Policy::new("api", "client".parse().unwrap())
        .with_limit("trial", limit("1/min"), Mode::Shadow)
        .with_limit("real", limit("3/min"), Mode::Enforce);
    let stage = Stage::of([policy]);
    let mut trial = Vec::new();
    for expected in [2, 1, 0] {
        let seen = stage.ask(REQUEST).await;
        assert!(seen.is_allowed());
        assert_eq!((seen.binding.as_deref(), seen.remaining), (Some("api/real"), Some(expected)));
        trial.push((seen.charges[0].0.clone(), seen.charges[0].1));
    }
    assert_eq!(trial.iter().map(|(_, allowed)| *allowed).collect::<Vec<_>>(), [true, false, false]);
    assert!(trial.iter().all(|(name, _)| name == "trial"));
}

#[tokio::test]
async fn what_an_enforced_limit_denies_is_not_charged_to_one_in_shadow() {
    let policy = Policy::new("api", "client".parse().unwrap())
        .with_limit("trial", limit("2/min"), Mode::Shadow)
        .with_limit("real", limit("1/min"), Mode::Enforce);
    let stage = Stage::of([policy]);
    assert!(stage.ask(REQUEST).await.is_allowed());
    for _ in 0..3 {
        let denied = stage.ask(REQUEST).await;
        assert_eq!((denied.cause, denied.binding.as_deref()), (Some(Cause::Limit), Some("api/real")));
        assert_eq!(denied.charges, [("trial".to_owned(), true, 1), ("real".to_owned(), false, 0)]);
    }
}

#[tokio::test]
async fn the_limit_that_binds_is_named_with_its_policy() {
    let stage =
        Stage::of([policy("edge", "client", &["10/min", "3/h"]), policy("api", "header:x-api-key", &["2/min"])]);
    let request = Request { key: Some("k"), ..REQUEST };
    let bindings = async |count: usize| {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(stage.ask(request).await.binding.unwrap());
        }
        names
    };
    assert_eq!(bindings(2).await, ["api/limit-1"; 2], "the least remaining");
    let denied = stage.ask(request).await;
    assert_eq!((denied.binding.as_deref(), denied.retry_after), (Some("api/limit-1"), Some(30 * SECOND)));
    assert_eq!(denied.charges.iter().map(|(_, allowed, _)| *allowed).collect::<Vec<_>>(), [true, true, false]);
    let other = Request { key: Some("other"), ..REQUEST };
    let last = stage.ask(other).await;
    assert_eq!((last.binding.as_deref(), last.remaining), (Some("edge/limit-2"), Some(0)));
    // Both deny now: the longest wait binds.
    let denied = stage.ask(request).await;
    assert_eq!((denied.binding.as_deref(), denied.retry_after), (Some("edge/limit-2"), Some(1_200 * SECOND)));
}

#[tokio::test]
async fn br_139_what_one_limit_denies_is_not_charged_to_the_other_in_either_order() {
    for limits in [["10/min", "30/30min"], ["30/30min", "10/min"]] {
        let stage = Stage::of([policy("api", "client", &limits)]);
        assert_eq!(stage.passed(REQUEST, 31).await, 10);
        let denied = stage.ask(REQUEST).await;
        assert_eq!(denied.retry_after, Some(6 * SECOND));
        let mut left: Vec<_> = denied.charges.iter().map(|(_, _, remaining)| *remaining).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 20]);
    }
}

#[tokio::test]
async fn br_191_one_limit_and_one_client_is_one_bucket_whatever_the_route() {
    let stage = Stage::of([policy("api", "client", &["10/min"])]);
    let mut passed = 0;
    for _ in 0..6 {
        for path in ["/a", "/b"] {
            passed += stage.passed(Request { path, ..REQUEST }, 1).await;
        }
    }
    assert_eq!((passed, stage.keys()), (10, 1));
}

#[tokio::test]
async fn a_request_may_cost_more_than_one() {
    let stage = Stage::of([policy("api", "client", &["10/min"]).with_cost(Cost::new(4))]);
    assert_eq!(stage.passed(REQUEST, 3).await, 2);
    assert_eq!(stage.ask(REQUEST).await.retry_after, Some(12 * SECOND), "2 are left, and 2 are to come");
    let dear = Stage::of([policy("api", "client", &["10/min"]).with_cost(Cost::new(11))]);
    let never = dear.ask(REQUEST).await;
    assert_eq!((never.cause, never.retry_after), (Some(Cause::Limit), None));
}

#[tokio::test]
async fn without_room_for_another_key_the_cause_is_the_memory_bound() {
    let clock = ManualClock::new();
    let policy = policy("api", "client", &["1/min"]).with_handling(Handling::default().with_at_bound(AtBound::Deny));
    let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
    let gate = Gate::new(policies, Memory::new(TableOptions::with_keys(1), clock));
    let mut causes = Vec::new();
    for i in 0..=255 {
        let request = Request { peer: [203, 0, 113, i], ..REQUEST };
        causes.push(gate.decide(&request, |answer| answer.answer.cause).await.unwrap());
    }
    let full = causes.iter().position(Option::is_some).unwrap();
    assert!(full >= 1 && causes[full..].contains(&Some(Cause::MemoryBound)), "{causes:?}");
    assert!(!causes.contains(&Some(Cause::Limit)));
}

/// A store that cannot answer.
struct Unreachable;

#[derive(Debug, PartialEq, Eq)]
struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer")
    }
}

impl std::error::Error for NoAnswer {}

impl Store for Unreachable {
    type Error = NoAnswer;

    fn decide(&self, _: &[Charge<'_>], _: &mut [Decision]) -> impl Future<Output = Result<Verdict, NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }

    fn reset(&self, _: LimitId, _: &[u8]) -> impl Future<Output = Result<(), NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }

    fn grant(&self, _: LimitId, _: &Quota, _: &[u8], _: u64) -> impl Future<Output = Result<(), NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }

    fn reserve(
        &self,
        _: &[Charge<'_>],
        _: &mut [Decision],
        _: ReservationId,
        _: Duration,
    ) -> impl Future<Output = Result<Verdict, NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }

    fn settle(
        &self,
        _: ReservationId,
        _: &[Charge<'_>],
        _: &[Cost],
    ) -> impl Future<Output = Result<Settled, NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }

    fn inspect(&self, _: LimitId, _: &Quota, _: &[u8]) -> impl Future<Output = Result<Option<Kept>, NoAnswer>> + Send {
        ready(Err(NoAnswer))
    }
}

#[tokio::test]
async fn a_store_that_cannot_answer_is_an_error_and_is_asked_only_if_there_is_something_to_charge() {
    let gate = |text| {
        let policies = Policies::new(ClientAddress::default(), vec![policy("api", "client", &[text])]);
        Gate::new(policies.unwrap(), Unreachable)
    };
    let limited = gate("1/min").decide(&REQUEST, |answer| answer.answer.is_allowed()).await;
    assert_eq!(limited, Err(NoAnswer));
    let unlimited = gate("unlimited").decide(&REQUEST, |answer| answer.answer.is_allowed()).await;
    assert_eq!(unlimited, Ok(true));
}

#[test]
fn a_gate_shows_its_policies() {
    let stage = Stage::of([policy("api", "client", &["1/min"])]);
    assert_eq!(stage.gate.policies().as_slice()[0].name(), "api");
    assert!(format!("{:?}", stage.gate).contains("api"));
    let twice = vec![policy("api", "client", &["1/min"]), policy("api", "global", &["1/s"])];
    let refused = Policies::new(ClientAddress::default(), twice);
    assert_eq!(refused, Err(PolicyError::SameLimit { policy: "api".into(), limit: "limit-1".into() }));
}
