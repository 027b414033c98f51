//! Counting by outcome and penalties, seen by clients: over a store in this process, and over one that takes its time.

use std::convert::Infallible;
use std::future::{Future, Pending, Ready, pending, ready};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use tidegate::policy::{CostRule, Counting, Offence, Penalty, Policies, Policy, Statuses};
use tidegate::{
    Charge, Cost, Decision, Gate, LimitId, ManualClock, Memory, MemoryError, Mode, Quota, ReservationId, Settled,
    Store, TableOptions, Tally, Verdict,
};
use tidegate_http::{ByPolicies, ClientAddress, LimitLayer, LimitService, Task};
use tower::{Layer, Service};

use crate::given::{Body, Seen, get, send};

/// Answers with the status that the path names, and says what it used.
#[derive(Clone)]
struct ByPath;

impl Service<Request<Body>> for ByPath {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let status = request.uri().path().trim_start_matches('/').parse::<u16>().unwrap_or(200);
        ready(Ok(Response::builder().status(status).header("x-used", "7").body(Body::default()).unwrap()))
    }
}

/// Never answers.
#[derive(Clone)]
struct Silent;

impl Service<Request<Body>> for Silent {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pending<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        pending()
    }
}

/// A service that has no answer but an error.
#[derive(Clone)]
struct Broken;

impl Service<Request<Body>> for Broken {
    type Response = Response<Body>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Body>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Err("broken"))
    }
}

type Here = Memory<ManualClock>;

/// The same store, whose answers have to be waited for.
#[derive(Clone)]
struct Slow(Arc<Here>);

impl Store for Slow {
    type Error = MemoryError;

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, MemoryError> {
        tokio::task::yield_now().await;
        Ok(self.0.decide_now(charges, decisions)?)
    }

    async fn reset(&self, limit: LimitId, key: &[u8]) -> Result<(), MemoryError> {
        self.0.reset(limit, key).await
    }

    async fn grant(&self, limit: LimitId, quota: &Quota, key: &[u8], tokens: u64) -> Result<(), MemoryError> {
        self.0.grant(limit, quota, key, tokens).await
    }

    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, MemoryError> {
        let reserved = self.0.reserve_now(charges, decisions, id, open_for);
        tokio::task::yield_now().await;
        reserved
    }

    async fn settle(&self, id: ReservationId, charges: &[Charge<'_>], actual: &[Cost]) -> Result<Settled, MemoryError> {
        tokio::task::yield_now().await;
        self.0.settle_now(id, charges, actual)
    }

    async fn inspect(&self, limit: LimitId, quota: &Quota, key: &[u8]) -> Result<Option<tidegate::Kept>, MemoryError> {
        self.0.inspect(limit, quota, key).await
    }
}

fn here() -> Here {
    Memory::new(TableOptions::with_keys(1_000), ManualClock::new())
}

fn slow() -> Slow {
    Slow(Arc::new(here()))
}

fn gate<S: Store>(policy: Policy, store: S) -> Arc<Gate<S>> {
    Arc::new(Gate::new(Policies::new(ClientAddress::default(), vec![policy]).unwrap(), store))
}

fn policy(limit: &str) -> Policy {
    Policy::new("log-in", "global".parse().unwrap()).with_limit("tries", limit.parse().unwrap(), Mode::Enforce)
}

fn failures() -> Statuses {
    "401".parse().unwrap()
}

fn counting_failures(limit: &str) -> Policy {
    policy(limit).with_counting(Counting::Responses(failures()))
}

fn held_after(after: &str, of: Offence) -> Policy {
    let after = after.parse::<tidegate::Limit>().unwrap().quota().unwrap();
    policy("100/day").with_penalty(Penalty { of, after, hold: Duration::from_secs(600) })
}

/// What asking for these paths is answered with, and what is left as each answer tells it.
fn walk<S: Store + 'static>(gate: &Arc<Gate<S>>, paths: &[&str]) -> Vec<(u16, i64)> {
    let service = LimitLayer::by_policies(Arc::clone(gate)).layer(ByPath);
    let seen = paths.iter().map(|path| send(service.clone(), get(path)));
    seen.map(|seen: Seen| (seen.status.as_u16(), seen.remaining())).collect()
}

#[test]
fn failures_are_charged_and_the_rest_is_given_back_before_the_response_goes_out() {
    let paths = ["/401", "/200", "/200", "/401", "/200", "/401", "/200"];
    let told = [(401, 2), (200, 1), (200, 1), (401, 1), (200, 0), (401, 0), (429, 0)];
    assert_eq!(walk(&gate(counting_failures("3/day"), here()), &paths), told);
    assert_eq!(walk(&gate(counting_failures("3/day"), slow()), &paths), told);
}

#[test]
fn br_045_what_the_response_says_it_used_is_charged() {
    let policy = || {
        let cost = CostRule::Response { name: "x-used".parse().unwrap(), estimate: Cost::new(2) };
        policy("30/day").with_cost(cost)
    };
    let paths = ["/"; 6];
    // Each answer tells what was left when two were reserved; then seven are charged, and the last is owed in part.
    let told = [(200, 28), (200, 21), (200, 14), (200, 7), (200, 0), (429, 0)];
    assert_eq!(walk(&gate(policy(), here()), &paths), told);
    assert_eq!(walk(&gate(policy(), slow()), &paths), told);
}

#[test]
fn a_key_that_is_held_back_is_told_so_in_a_problem_of_its_own() {
    fn check<S: Store + 'static>(store: S) {
        let gate = gate(held_after("2/h", Offence::Responses(failures())), store);
        let service = LimitLayer::by_policies(Arc::clone(&gate)).layer(ByPath);
        assert_eq!([(); 2].map(|()| send(service.clone(), get("/401")).status.as_u16()), [401, 401]);
        let held = send(service, get("/200"));
        // An offence is forgiven within half an hour, which is longer than the hold.
        assert_eq!((held.status.as_u16(), held.number("retry-after"), held.remaining()), (429, Some(1_800), 0));
        assert_eq!(held.parameter("ratelimit", "t"), Some(1_800));
        assert_eq!(
            held.json(),
            serde_json::json!({
                "type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
                "title": "Request not satisfied due to detection of abnormal request pattern",
                "status": 429,
                "detail": "held back for earlier requests, whatever limit \"tries\" (100/day) allows; \
                           try again in 1800 seconds",
                "violated-policies": ["tries"],
            })
        );
    }
    check(here());
    check(slow());
}

#[test]
fn br_071_denials_hold_back_and_the_one_that_trips_it_says_so() {
    fn check<S: Store + 'static>(store: S) {
        let after = "1/10s".parse::<tidegate::Limit>().unwrap().quota().unwrap();
        let penalty = Penalty { of: Offence::Denials, after, hold: Duration::from_secs(600) };
        let service = LimitLayer::by_policies(gate(policy("2/10s").with_penalty(penalty), store)).layer(ByPath);
        let told = [(); 4].map(|()| {
            let seen = send(service.clone(), get("/"));
            (seen.status.as_u16(), seen.number("retry-after"))
        });
        assert_eq!(told, [(200, None), (200, None), (429, Some(600)), (429, Some(600))]);
    }
    check(here());
    check(slow());
}

type Kept<T> = Arc<Mutex<Vec<T>>>;

/// A layer that tells what was done, and keeps what is left over.
fn telling<S: Store + 'static>(gate: &Arc<Gate<S>>) -> (LimitLayer<ByPolicies<S>>, Kept<Tally>, Kept<Task>) {
    let (tallies, tasks) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (told, left) = (Arc::clone(&tallies), Arc::clone(&tasks));
    let layer = LimitLayer::by_policies(Arc::clone(gate))
        .tell(move |tally| told.lock().unwrap().push(*tally))
        .spawn(move |task| left.lock().unwrap().push(task));
    (layer, tallies, tasks)
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_client_that_goes_away_is_settled_as_if_the_upstream_had_failed() {
    let gate = gate(counting_failures("3/day"), here());
    let (layer, tallies, _) = telling(&gate);
    let mut service: LimitService<Silent, _> = layer.layer(Silent);
    let open: Vec<_> = (0..3).map(|_| service.call(get("/"))).collect();
    assert_eq!(walk(&gate, &["/200"]), [(429, 0)]);
    drop(open);
    assert_eq!(tallies.lock().unwrap().iter().map(|tally| tally.settled).sum::<u32>(), 3);
    assert_eq!(walk(&gate, &["/200"]), [(200, 2)]);
}

#[test]
fn an_inner_error_counts_as_a_bad_gateway() {
    for (charged, told) in [("5xx", (200, 1)), ("401", (200, 2))] {
        let gate = gate(policy("3/day").with_counting(Counting::Responses(charged.parse().unwrap())), here());
        let mut service = LimitLayer::by_policies(Arc::clone(&gate)).layer(Broken);
        let failed = pin!(service.call(get("/"))).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(failed, Poll::Ready(Err("broken"))));
        assert_eq!(walk(&gate, &["/200"]), [told], "{charged}");
    }
}

/// Polls a request a few times and drops it; then what is left over is run.
fn given_up_after(polls: usize, path: &str) -> (usize, Vec<(u16, i64)>) {
    let gate = gate(counting_failures("3/day"), slow());
    let (layer, _, tasks) = telling(&gate);
    let mut service = layer.layer(ByPath);
    let mut request = Box::pin(service.call(get(path)));
    (0..polls).for_each(|_| assert!(poll(request.as_mut()).is_pending(), "it takes longer than {polls} polls"));
    drop(request);
    let mut count = 0;
    // What is left over can leave something over itself.
    let next = || tasks.lock().unwrap().pop();
    while let Some(mut task) = next() {
        count += 1;
        while poll(task.as_mut()).is_pending() {}
    }
    (count, walk(&gate, &["/200"]))
}

#[test]
fn whenever_a_client_goes_away_a_slow_store_is_told() {
    // Before it was asked, while it is asked, and while it is told of the response.
    assert_eq!(given_up_after(0, "/200").1, [(200, 2)]);
    assert_eq!(given_up_after(1, "/200"), (2, vec![(200, 2)]));
    assert_eq!(given_up_after(2, "/200"), (1, vec![(200, 2)]));
    assert_eq!(given_up_after(2, "/401"), (1, vec![(200, 1)]));
}

#[test]
fn without_a_spawner_what_is_left_open_stays_spent() {
    let gate = gate(counting_failures("3/day"), slow());
    let mut service = LimitLayer::by_policies(Arc::clone(&gate)).layer(ByPath);
    let mut request = Box::pin(service.call(get("/200")));
    assert!(poll(request.as_mut()).is_pending());
    drop(request);
    assert_eq!(walk(&gate, &["/200"]), [(200, 1)]);
}

#[test]
fn policies_that_do_not_wait_for_responses_leave_nothing_open() {
    let gate = gate(held_after("1/h", Offence::Denials), here());
    let (layer, tallies, tasks) = telling(&gate);
    let mut service: LimitService<Silent, _> = layer.layer(Silent);
    drop(service.call(get("/")));
    assert!(tasks.lock().unwrap().is_empty());
    assert_eq!(*tallies.lock().unwrap(), [Tally::default()]);
    assert_eq!(walk(&gate, &["/200"]), [(200, 98)]);
}
