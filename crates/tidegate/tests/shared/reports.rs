//! What others reported of limits over a shared store, asked of ours.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::{Attributes, ClientAddress, Peer, Policies, Policy};
use tidegate::{
    Cause, Cost, Gate, Limiter, Memory, Mode, Shared, SharedOptions, Source, Store, SystemClock, TableOptions,
};
use tidegate_redis::RedisStore;
use tokio::task::JoinSet;

use crate::given::{options, patient};
use crate::server::{Kind, Server};

fn shared(server: &Server) -> Shared {
    Shared::new(patient(&server.url()), SharedOptions::default())
}

fn memory() -> Memory<SystemClock> {
    Memory::new(TableOptions::with_keys(1_000), SystemClock::new())
}

fn limiter<S: Store>(limit: &str, store: S) -> Limiter<S> {
    Limiter::builder().limit("limit", limit.parse().unwrap()).over(store)
}

/// Whether each of so many calls passes, and what remains.
async fn answers<S: Store>(limiter: &Limiter<S>, calls: usize) -> Vec<(bool, Option<u64>)> {
    let mut answers = Vec::new();
    for _ in 0..calls {
        let answer = limiter.decide("k", Cost::ONE).await.unwrap();
        answers.push((answer.is_allowed(), answer.remaining()));
    }
    answers
}

#[tokio::test]
async fn br_064_a_remembered_denial_only_shortens_the_way_to_the_same_answer() {
    let server = Server::start(Kind::Redis7);
    let asked = limiter("10/h", patient(&server.url()));
    let expected = answers(&asked, 12).await;
    assert_eq!(expected[9..], [(true, Some(0)), (false, Some(0)), (false, Some(0))]);
    let remembering = limiter("10/h", shared(&server));
    let key = "other";
    let mut sources = Vec::new();
    for expected in expected {
        let answer = remembering.decide(key, Cost::ONE).await.unwrap();
        assert_eq!((answer.is_allowed(), answer.remaining()), expected);
        sources.push(answer.source);
    }
    assert!(sources[..11].iter().all(|source| *source == Source::Store));
    assert_eq!(sources[11], Source::DeniedCache, "the second denial does not reach the server");
}

#[tokio::test]
async fn br_097_a_store_that_fails_is_what_each_limit_declared() {
    for (mode, admitted) in [(Some("allow"), 100), (Some("deny"), 0), (Some("local"), 3), (None, 3)] {
        // A port at which nobody listens.
        let redis = RedisStore::new("redis://127.0.0.1:1", options(Duration::from_millis(50))).unwrap();
        let builder = Limiter::builder().limit("limit", "3/min".parse().unwrap());
        let builder = match mode {
            Some(mode) => builder.on_failure(mode.parse().unwrap()),
            None => builder,
        };
        let limiter = Arc::new(builder.over(Shared::new(redis, SharedOptions::default())));
        let mut calls = JoinSet::new();
        for _ in 0..100 {
            let limiter = Arc::clone(&limiter);
            calls.spawn(async move { limiter.decide("k", Cost::ONE).await.unwrap() });
        }
        let answers = calls.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.is_allowed()).count(), admitted, "{mode:?}");
        assert!(answers.iter().all(|answer| answer.source == Source::Fallback), "each says that it is degraded");
        if mode == Some("deny") {
            let is_told = |cause, wait| cause == Some(Cause::StoreDown) && wait >= Some(1);
            assert!(answers.iter().all(|answer| is_told(answer.cause, answer.retry_after_s())));
        }
    }
}

/// A request of one client.
pub(crate) struct To(pub(crate) &'static str);

impl Attributes for To {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::from([203, 0, 113, 7]))
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.0
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, _: &str, _: &mut dyn FnMut(&'a [u8])) {}
}

/// How many of twelve requests pass, sent to two routes in turn.
async fn passes_on_two_routes<S: Store>(store: S) -> usize {
    let limits = ["10/h".parse().unwrap()];
    let policy = Policy::new("client", "client".parse().unwrap()).with_limits(limits, Mode::Enforce);
    let gate = Gate::new(Policies::new(ClientAddress::default(), vec![policy]).unwrap(), store);
    let mut passed = 0;
    for route in ["/a", "/b"].into_iter().cycle().take(12) {
        passed += usize::from(gate.decide(&To(route), |seen| seen.answer.is_allowed()).await.unwrap());
    }
    passed
}

#[tokio::test]
async fn br_191_what_shares_a_bucket_does_not_depend_on_where_it_is() {
    let server = Server::start(Kind::Valkey9);
    assert_eq!(passes_on_two_routes(memory()).await, 10);
    assert_eq!(passes_on_two_routes(shared(&server)).await, 10);
}

#[tokio::test]
async fn br_193_processes_share_a_limit_only_through_a_shared_store() {
    let server = Server::start(Kind::Redis8);
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let apart = [limiter("10/h", memory()), limiter("10/h", memory())];
    let joined = [limiter("10/h", shared(&server)), limiter("10/h", shared(&server))];
    for i in 0..20 {
        alone.extend(answers(&apart[i % 2], 1).await);
        together.extend(answers(&joined[i % 2], 1).await);
    }
    let passed = |answers: &[(bool, Option<u64>)]| answers.iter().filter(|(passed, _)| *passed).count();
    assert_eq!((passed(&alone), passed(&together)), (20, 10));
    let falling: Vec<_> = (0..10).rev().map(|left| (true, Some(left))).collect();
    assert_eq!(together[..10], falling);
}
