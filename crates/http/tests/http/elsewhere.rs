//! Stores that are not in this process: their answers take time, and can fail to come.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use tidegate::policy::{Policies, Policy};
use tidegate::{
    Charge, Cost, Decision, Gate, Kept, LimitId, Limiter, ManualClock, Memory, Mode, Quota, ReservationId, Settled,
    Source, Store, TableOptions, Verdict,
};
use tidegate_http::{ByKey, ClientAddress, LimitLayer, OnMissing, Onlook, Onlooker, Sight};
use tower::Layer;

use crate::given::{Body, Hello, Limited, Seen, from, get, limiter, send, with};

/// Buckets that a future has to be awaited for. Clones share them, as processes would.
#[derive(Clone)]
struct Elsewhere(Arc<(Memory<ManualClock>, Mutex<Mood>)>);

#[derive(Clone, Copy)]
enum Mood {
    Answers,
    Fails,
    /// The store is away, and the limits go on in this process.
    GoesOnAlone,
    /// The store is away, and the limits deny.
    Denies,
}

#[derive(Debug)]
struct Away;

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("away")
    }
}

impl std::error::Error for Away {}

impl Elsewhere {
    fn new(clock: ManualClock) -> Self {
        Self(Arc::new((Memory::new(TableOptions::with_keys(1_000), clock), Mutex::new(Mood::Answers))))
    }

    fn now(&self, mood: Mood) {
        *self.0.1.lock().unwrap() = mood;
    }
}

impl Store for Elsewhere {
    type Error = Away;

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, Away> {
        tokio::task::yield_now().await;
        let mood = *self.0.1.lock().unwrap();
        match mood {
            Mood::Answers => self.0.0.decide_now(charges, decisions).map_err(|_| Away),
            Mood::Fails => Err(Away),
            Mood::GoesOnAlone => {
                let verdict = self.0.0.decide_now(charges, decisions).map_err(|_| Away)?;
                Ok(verdict.from_source(Source::Fallback))
            }
            Mood::Denies => {
                for (decision, charge) in decisions.iter_mut().zip(charges) {
                    *decision = Decision::without_store(&charge.quota, charge.cost, Duration::from_millis(1_200));
                }
                Ok(Verdict::over(charges, decisions).from_source(Source::Fallback))
            }
        }
    }

    async fn reset(&self, _: LimitId, _: &[u8]) -> Result<(), Away> {
        Err(Away)
    }

    async fn grant(&self, _: LimitId, _: &Quota, _: &[u8], _: u64) -> Result<(), Away> {
        Err(Away)
    }

    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        _: ReservationId,
        _: Duration,
    ) -> Result<Verdict, Away> {
        self.decide(charges, decisions).await
    }

    async fn settle(&self, _: ReservationId, _: &[Charge<'_>], _: &[Cost]) -> Result<Settled, Away> {
        Err(Away)
    }

    async fn inspect(&self, _: LimitId, _: &Quota, _: &[u8]) -> Result<Option<Kept>, Away> {
        Err(Away)
    }
}

fn limiter_over(store: &Elsewhere, limit: &str) -> Arc<Limiter<Elsewhere>> {
    Arc::new(Limiter::builder().limit("default", limit.parse().unwrap()).over(store.clone()))
}

fn policies_of(limits: &[&str]) -> Policies {
    let limits = limits.iter().map(|limit| limit.parse().unwrap());
    let policy = Policy::new("default", "header:x-key".parse().unwrap()).with_limits(limits, Mode::Enforce);
    Policies::new(ClientAddress::default(), vec![policy]).unwrap()
}

fn gate_over(store: &Elsewhere, limits: &[&str]) -> Arc<Gate<Elsewhere>> {
    Arc::new(Gate::new(policies_of(limits), store.clone()))
}

fn keyed(key: &str) -> Request<Body> {
    with(from("203.0.113.7"), &[("x-key", key)])
}

fn key_of(request: &Request<Body>) -> Option<Vec<u8>> {
    Some(request.headers().get("x-key")?.as_bytes().to_vec())
}

fn told(seen: &Seen) -> (u16, Option<String>, Option<String>, String) {
    let field = |name: &str| seen.field(name).map(str::to_owned);
    (seen.status.as_u16(), field("ratelimit"), field("retry-after"), String::from_utf8_lossy(&seen.body).into())
}

#[test]
fn what_takes_time_is_answered_as_what_does_not() {
    let (here, _) = limiter("2/min");
    let here = Limited::new(LimitLayer::new(here).key(key_of));
    let there = limiter_over(&Elsewhere::new(ManualClock::new()), "2/min");
    let there = Limited::new(LimitLayer::new(there).key(key_of));
    for key in ["a", "a", "a", "b"] {
        assert_eq!(told(&there.send(keyed(key))), told(&here.send(keyed(key))));
    }
    assert_eq!(there.hello.count(), 3);
}

#[test]
fn policies_take_the_same_road_and_the_watch_sees_every_decision() {
    let store = Elsewhere::new(ManualClock::new());
    let sights = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sights);
    let layer = LimitLayer::by_policies(gate_over(&store, &["2/min", "10/h", "20/h", "30/h", "40/h", "50/h"]));
    let limited = Limited::new(layer.watch(move |sight| {
        let decided = sight.charges().map(|(place, charge, decision)| {
            assert_eq!(place.limit.id, charge.limit);
            decision.is_allowed()
        });
        kept.lock().unwrap().push((sight.answer.map(|answer| answer.is_allowed()), decided.collect::<Vec<_>>()));
    }));
    let statuses = ["a", "a", "a", "b"].map(|key| limited.send(keyed(key)).status.as_u16());
    assert_eq!(statuses, [200, 200, 429, 200]);
    store.now(Mood::Fails);
    assert_eq!(limited.send(keyed("a")).status, 503);
    let (all, but_one) = (vec![true; 6], vec![false, true, true, true, true, true]);
    let allowed = (Some(true), all);
    let seen = sights.lock().unwrap();
    assert_eq!(*seen, [allowed.clone(), allowed.clone(), (Some(false), but_one), allowed, (None, vec![])]);
}

type PassedWithLeft = Option<(bool, Option<u64>)>;

/// Keeps what it sees: did the request pass, and what is left to it?
#[derive(Default)]
struct Keeps(Mutex<Vec<PassedWithLeft>>);

impl Onlook for Keeps {
    fn see(&self, sight: &Sight<'_>) {
        let seen = sight.answer.map(|answer| (answer.is_allowed(), answer.remaining()));
        self.0.lock().unwrap().push(seen);
    }
}

#[test]
fn an_onlooker_sees_what_was_decided_on_its_request_at_once_or_later() {
    let store = Elsewhere::new(ManualClock::new());
    let memory = Gate::new(policies_of(&["2/min"]), Memory::new(TableOptions::with_keys(10), ManualClock::new()));
    let here = Limited::new(LimitLayer::by_policies(Arc::new(memory)));
    let there = Limited::new(LimitLayer::by_policies(gate_over(&store, &["2/min"])));
    let seen_with = |send: &dyn Fn(Request<Body>) -> Seen| {
        let (keeps, mut request) = (Arc::new(Keeps::default()), keyed("a"));
        Onlooker::new(keeps.clone()).accompany(&mut request);
        send(request);
        keeps.0.lock().unwrap().clone()
    };
    for expected in [Some((true, Some(1))), Some((true, Some(0))), Some((false, Some(0)))] {
        assert_eq!(seen_with(&|request| here.send(request)), [expected]);
        assert_eq!(seen_with(&|request| there.send(request)), [expected]);
    }
    there.send(keyed("a"));
    store.now(Mood::Fails);
    assert_eq!(seen_with(&|request| there.send(request)), [None]);
}

#[test]
fn br_066_layers_of_one_limiter_or_of_one_gate_take_one() {
    let store = Elsewhere::new(ManualClock::new());
    let limiter = limiter_over(&store, "10/min");
    let layer = || LimitLayer::new(Arc::clone(&limiter)).key(key_of);
    let twice = layer().layer(layer().layer(Hello::default()));
    assert_eq!(send(twice, keyed("a")).remaining(), 9);
    assert_eq!(send(layer().layer(Hello::default()), keyed("a")).remaining(), 8);

    let gate = gate_over(&store, &["10/min"]);
    let layer = || LimitLayer::by_policies(Arc::clone(&gate));
    let twice = layer().layer(layer().layer(Hello::default()));
    assert_eq!(send(twice, keyed("b")).remaining(), 9);
    assert_eq!(send(layer().layer(Hello::default()), keyed("b")).remaining(), 8);
}

#[test]
fn a_store_that_gives_no_answer_is_a_problem_of_its_own() {
    let store = Elsewhere::new(ManualClock::new());
    store.now(Mood::Fails);
    let app = "https://app.example";
    let layer = LimitLayer::new(limiter_over(&store, "10/min")).key(key_of).cors(app.parse().unwrap());
    let limited = Limited::new(layer);
    let seen = limited.send(with(keyed("a"), &[("origin", app)]));
    assert_eq!((seen.status.as_u16(), seen.field("retry-after"), seen.field("ratelimit")), (503, Some("1"), None));
    assert_eq!(seen.field("access-control-allow-origin"), Some(app), "a script can read that too");
    let problem = seen.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    assert_eq!((seen.field("tidegate-source"), problem.get("source")), (None, None));
    assert_eq!(limited.hello.count(), 0);
}

#[test]
fn an_answer_of_the_fallback_says_so_whatever_it_is() {
    let store = Elsewhere::new(ManualClock::new());
    store.now(Mood::GoesOnAlone);
    let limited = Limited::new(LimitLayer::new(limiter_over(&store, "1/min")).key(key_of));
    let allowed = limited.send(keyed("a"));
    assert_eq!((allowed.status.as_u16(), allowed.field("tidegate-source")), (200, Some("fallback")));
    let denied = limited.send(keyed("a"));
    assert_eq!((denied.status.as_u16(), denied.field("tidegate-source")), (429, Some("fallback")));
    assert_eq!(
        denied.json(),
        serde_json::json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "limit \"default\" (1/min) is used up; try again in 60 seconds",
            "violated-policies": ["default"],
            "source": "fallback",
        })
    );
    store.now(Mood::Answers);
    let denied = limited.send(keyed("a"));
    assert_eq!(
        (denied.status.as_u16(), denied.field("tidegate-source"), denied.json().get("source")),
        (429, None, None)
    );
}

#[test]
fn limits_that_deny_without_their_store_say_when_to_come_back() {
    let store = Elsewhere::new(ManualClock::new());
    store.now(Mood::Denies);
    for seen in [
        Limited::new(LimitLayer::new(limiter_over(&store, "10/min")).key(key_of)).send(keyed("a")),
        Limited::new(LimitLayer::by_policies(gate_over(&store, &["10/min"]))).send(keyed("a")),
    ] {
        assert_eq!((seen.status.as_u16(), seen.field("retry-after"), seen.field("ratelimit")), (503, Some("2"), None));
        assert_eq!((seen.field("tidegate-source"), &seen.json()["source"]), (Some("fallback"), &"fallback".into()));
        assert_eq!(seen.detail(), "the server cannot check its limits at present; try again in 2 seconds");
    }
    let call = with(keyed("a"), &[("content-type", "application/grpc")]);
    let seen = Limited::new(LimitLayer::new(limiter_over(&store, "10/min")).key(key_of)).send(call);
    assert_eq!((seen.status.as_u16(), seen.field("grpc-status")), (200, Some("14")));
    assert_eq!((seen.field("tidegate-source"), seen.field("grpc-retry-pushback-ms")), (Some("fallback"), Some("1200")));
}

#[test]
fn br_112_clients_without_a_key_are_the_same_ones_in_all_processes_and_no_key_reaches_them() {
    let store = Elsewhere::new(ManualClock::new());
    let process = || -> Limited<ByKey<Elsewhere, Body>> {
        Limited::new(LimitLayer::new(limiter_over(&store, "2/min")).key(key_of).on_missing(OnMissing::Client))
    };
    let statuses = [process(), process(), process()].map(|process| process.send(from("203.0.113.7")).status.as_u16());
    assert_eq!(statuses, [200, 200, 429]);
    // The very bytes of the client's address are another bucket.
    let spoofed = LimitLayer::new(limiter_over(&store, "2/min")).key(|_: &Request<Body>| Some(b"c\x04\xcb\0\x71\x07"));
    assert_eq!(Limited::new(spoofed).send(get("/")).remaining(), 1);
}

#[test]
fn a_plan_counts_elsewhere_too() {
    let store = Elsewhere::new(ManualClock::new());
    let plan = |request: &Request<Body>| {
        request.headers().contains_key("x-pro").then(|| "5/min".parse::<tidegate::Limit>().unwrap().quota().unwrap())
    };
    let limited = Limited::new(LimitLayer::new(limiter_over(&store, "1/min")).key(key_of).quota(plan));
    let pro = || with(keyed("a"), &[("x-pro", "yes")]);
    let seen = limited.send(pro());
    assert_eq!((seen.remaining(), seen.field("ratelimit-policy")), (4, Some(r#""default";q=5;w=60"#)));
    let statuses: Vec<_> = (0..5).map(|_| limited.send(pro()).status.as_u16()).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 429]);
}
