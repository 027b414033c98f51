//! What others reported of their shared limits, asked of ours.

use tokio::task::JoinSet;

use crate::given::{ask, charge, left, of_cost, patient};
use crate::server::{Kind, Server};

#[tokio::test]
async fn br_064_the_last_permitted_request_passes() {
    let server = Server::start(Kind::Redis8);
    let store = patient(&server.url());
    let mut answers = Vec::new();
    for _ in 0..12 {
        let decision = ask(&store, charge("10/h", b"k")).await.unwrap();
        answers.push((decision.is_allowed(), decision.remaining()));
    }
    let passed: Vec<_> = (0..10).rev().map(|left| (true, left)).collect();
    assert_eq!(answers[..10], passed);
    assert_eq!(answers[10..], [(false, 0), (false, 0)]);
}

#[tokio::test]
async fn br_103_a_limit_is_never_split_so_small_ones_are_exact() {
    let server = Server::start(Kind::Valkey9);
    let nodes: Vec<_> = (0..4).map(|_| patient(&server.url())).collect();
    for count in [1, 4, 6, 11, 12, 1_000] {
        let limit = format!("{count}/h");
        for (key, through) in [("spread", 4), ("one", 1)] {
            let key = format!("{key} {count}");
            let mut tasks = JoinSet::new();
            for i in 0..3 * count {
                let (store, limit, key) = (nodes[i % through].clone(), limit.clone(), key.clone());
                tasks.spawn(async move { ask(&store, charge(&limit, key.as_bytes())).await.unwrap().is_allowed() });
            }
            let passed = tasks.join_all().await.into_iter().filter(|passed| *passed).count();
            assert_eq!(passed, count, "{key}");
        }
    }
}

#[tokio::test]
async fn br_193_remaining_falls_by_one_whichever_process_is_asked() {
    let server = Server::start(Kind::Redis7);
    let processes = [patient(&server.url()), patient(&server.url())];
    let mut remaining = Vec::new();
    for i in 0..20 {
        let decision = ask(&processes[i % 2], charge("10/h", b"k")).await.unwrap();
        if decision.is_allowed() {
            remaining.push(decision.remaining());
        }
    }
    assert_eq!(remaining, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(left(&processes[0], of_cost(charge("10/h", b"k"), 0)).await, 0);
}
