//! Counting by outcome and penalties where processes share a store, and while it is away.

use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::{ClientAddress, Counting, Offence, Penalty, Policies, Policy, Statuses};
use tidegate::{Cause, Gate, Mode, Open, ResponseOutcome, Shared, SharedOptions, Source, Tally};
use tidegate_redis::RedisStore;
use tokio::task::JoinSet;

use crate::given::{options, patient, quota};
use crate::reports::To;
use crate::server::{Kind, Server};

const HOUR: Duration = Duration::from_secs(3_600);

fn failures() -> Statuses {
    "401".parse().unwrap()
}

fn policy(limit: &str) -> Policy {
    Policy::new("log-in", "client".parse().unwrap()).with_limit("tries", limit.parse().unwrap(), Mode::Enforce)
}

fn penalty(of: Offence, after: &str) -> Penalty {
    Penalty { of, after: quota(after), hold: HOUR }
}

/// One process of those that serve by this policy.
fn process(url: &str, policy: Policy) -> Arc<Gate<Shared>> {
    let store = Shared::new(patient(url), SharedOptions::default());
    Arc::new(Gate::new(Policies::new(ClientAddress::default(), vec![policy]).unwrap(), store))
}

type Told = (Option<Cause>, Source, Option<Duration>);

async fn ask(gate: &Arc<Gate<Shared>>) -> (Told, Option<Open<Shared>>) {
    let told = gate.begin(&To("/login"), |seen| (seen.answer.cause, seen.answer.source, seen.answer.retry_after()));
    told.await.unwrap()
}

async fn close(open: Open<Shared>, status: u16) -> Tally {
    open.closing(Some(ResponseOutcome { status, field: &|_| None })).await
}

#[tokio::test]
async fn no_interleaving_of_processes_lets_more_failures_through_than_stated() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let policy = policy("10000/day").with_penalty(penalty(Offence::Responses(failures()), "5/day"));
        let processes = [process(&server.url(), policy.clone()), process(&server.url(), policy)];
        let mut guesses = JoinSet::new();
        for i in 0..200 {
            let gate = Arc::clone(&processes[i % 2]);
            guesses.spawn(async move {
                let (told, open) = ask(&gate).await;
                let Some(open) = open else { return (told.0, Tally::default()) };
                tokio::task::yield_now().await;
                (told.0, close(open, 401).await)
            });
        }
        let guesses = guesses.join_all().await;
        let passed = guesses.iter().filter(|(cause, _)| cause.is_none()).count();
        assert_eq!(passed, 5, "{kind:?}");
        assert!(guesses.iter().all(|(cause, _)| matches!(cause, None | Some(Cause::Penalty))));
        assert_eq!(guesses.iter().map(|(_, tally)| tally.holds).sum::<u32>(), 1);
        for gate in &processes {
            // The offences are forgiven later than the hold ends.
            let (told, _) = ask(gate).await;
            assert_eq!(told.0, Some(Cause::Penalty));
            assert!(told.2.unwrap() > HOUR, "{told:?}");
            let looked = gate.peek(&To("/login"), |seen| (seen.answer.cause, seen.answer.remaining()));
            assert_eq!(looked.await.unwrap(), (Some(Cause::Penalty), Some(0)));
        }
    }
}

#[tokio::test]
async fn br_071_denials_hold_back_in_all_processes_and_a_flood_does_not_reach_the_store() {
    let server = Server::start(Kind::Valkey9);
    let policy = policy("2/min").with_penalty(penalty(Offence::Denials, "1/min"));
    let [one, other] = [process(&server.url(), policy.clone()), process(&server.url(), policy)];
    assert_eq!([ask(&one).await.0.0, ask(&other).await.0.0], [None, None]);
    let (cause, _, wait) = ask(&one).await.0;
    assert_eq!((cause, wait), (Some(Cause::Penalty), Some(HOUR)), "the one that trips it says so");
    let (cause, _, rest) = ask(&other).await.0;
    assert!(cause == Some(Cause::Penalty) && rest < Some(HOUR) && rest > Some(HOUR - Duration::from_secs(20)));
    let flood = [ask(&other).await.0, ask(&other).await.0];
    assert!(flood.iter().all(|told| (told.0, told.1) == (Some(Cause::Penalty), Source::DeniedCache)), "{flood:?}");
}

#[tokio::test]
async fn what_the_fallback_reserved_is_settled_there() {
    // A port at which nobody listens.
    let redis = RedisStore::new("redis://127.0.0.1:1", options(Duration::from_millis(50))).unwrap();
    let policy = policy("3/day").with_counting(Counting::Responses(failures()));
    let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
    let gate = Arc::new(Gate::new(policies, Shared::new(redis, SharedOptions::default())));
    for status in [200, 401, 200, 200, 401, 200, 401] {
        let (told, open) = ask(&gate).await;
        assert_eq!((told.0, told.1), (None, Source::Fallback));
        assert_eq!(close(open.unwrap(), status).await.settled, 1);
    }
    assert_eq!(ask(&gate).await.0.0, Some(Cause::Limit));
}

#[tokio::test]
async fn a_penalty_goes_on_in_each_process_while_the_store_is_away() {
    let redis = RedisStore::new("redis://127.0.0.1:1", options(Duration::from_millis(50))).unwrap();
    let policy = policy("1000/day").with_penalty(penalty(Offence::Responses(failures()), "2/day"));
    let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
    let gate = Arc::new(Gate::new(policies, Shared::new(redis, SharedOptions::default())));
    let holds =
        [close(ask(&gate).await.1.unwrap(), 401).await.holds, close(ask(&gate).await.1.unwrap(), 401).await.holds];
    assert_eq!(holds, [0, 1]);
    assert_eq!(ask(&gate).await.0.0, Some(Cause::Penalty));
}
