//! Three processes share a limit by leases: what they pass together is what the limit permits over time, and in no window
//! more than the law's bound and the tokens out on lease.
//!
//! The processes are real (`examples/node`), and so is the server.

mod nodes;

use std::num::NonZeroU32;
use std::thread::sleep;
use std::time::Duration;

use tidegate::redis::{RedisOptions, RedisStore};
use tidegate::{Cost, Limiter, Shared, SharedOptions, Sharing, Source};

use crate::nodes::{Node, Run, Server, excess};

const LIMIT: &str = "1000/s burst 100";
const NODES: u64 = 3;
const TASKS: u64 = 4;
/// The largest lease: a quarter of the burst.
const MOST: u64 = 25;

fn seconds() -> u64 {
    if std::env::var_os("TIDEGATE_LONG").is_some() { 30 } else { 5 }
}

fn start(server: &Server, limit: &str, seconds: u64) -> Vec<Node> {
    (0..NODES).map(|_| Node::start(server, limit, MOST, TASKS, seconds)).collect()
}

/// Over time: tokens are paid for before they are spent, and hardly any are lost.
fn assert_the_limit_holds_over_time(run: &Run) {
    let count = run.passed.len() as u64;
    let (at_least, at_most) = (run.permitted_at_least(LIMIT), run.permitted_at_most(LIMIT));
    assert!(count <= at_most, "{count} of {at_most}");
    // Who ends, or is killed, may hold a lease.
    assert!(count + NODES * MOST >= at_least * 99 / 100, "{count} of {at_least}");
}

#[test]
fn over_time_the_limit_holds_and_in_no_window_more_than_the_leases_come_on_top() {
    let server = Server::start();
    let run = Run::of(start(&server, LIMIT, seconds()));
    assert_the_limit_holds_over_time(&run);
    // A request is stamped after it was decided, so each task may be late by one.
    let stamps: Vec<_> = run.passed.iter().map(|one| one.at_ns).collect();
    let over = excess(LIMIT, &stamps);
    assert!(over <= NODES * (MOST + TASKS), "{over} more than the law in a window");
    assert!(run.passed.iter().any(|one| one.is_leased), "leases took part");
}

#[test]
fn a_node_that_dies_loses_at_most_its_lease() {
    let server = Server::start();
    let mut nodes = start(&server, LIMIT, seconds());
    sleep(Duration::from_secs(seconds()) / 2);
    nodes[0].kill();
    assert_the_limit_holds_over_time(&Run::of(nodes));
}

#[test]
fn a_small_limit_admits_its_number_in_the_first_instant_and_no_more() {
    let server = Server::start();
    let run = Run::of(start(&server, "3/min", 2));
    assert_eq!(run.passed.len(), 3);
    assert!(run.passed.iter().all(|one| !one.is_leased), "it is decided exactly");
}

#[tokio::test]
async fn an_idle_node_holds_nothing_and_what_it_held_is_back_in_the_bucket() {
    let server = Server::start();
    let store = || {
        let mut options = RedisOptions::default();
        options.deadline = Duration::from_secs(5);
        Shared::new(RedisStore::new(&server.url(), options).unwrap(), SharedOptions::default())
    };
    let sharing = Sharing::Leased { most: NonZeroU32::new(200).unwrap() };
    // So slow that nothing refills by itself.
    let limiter = |store| Limiter::builder().limit("slow", "1000/year".parse().unwrap()).sharing(sharing).over(store);
    let (busy, other) = (limiter(store()), limiter(store()));
    let mut by_lease = 0;
    for _ in 0..100 {
        let answer = busy.decide("key", Cost::ONE).await.unwrap();
        assert!(answer.is_allowed());
        by_lease += usize::from(answer.source == Source::Lease);
        tokio::task::yield_now().await;
    }
    assert!(by_lease > 50, "{by_lease} by leases");
    let remaining = async || other.decide("key", Cost::ZERO).await.unwrap().remaining().unwrap();
    let (mut held, mut left) = (0, 0);
    // The last batch may be on its way: taken there, and not yet here.
    for _ in 0..100 {
        (held, left) = (busy.store().leased_tokens(), remaining().await);
        if held + left == 900 {
            break;
        }
    }
    assert!(held > 0 && held <= 200, "{held}");
    assert_eq!(left, 900 - held, "the other sees what is out on lease as spent");
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if busy.store().leased_tokens() == 0 {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(remaining().await, 900, "all of it is back");
}
