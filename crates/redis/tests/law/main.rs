//! Eight processes with eight tasks each ask one server as fast as it answers: in no window does more pass than the law
//! permits, and over the run nearly all of it does.
//!
//! The processes are real (`examples/knocker`), and every admission carries the store's time. The same test is run on two
//! limiters that are known to be wrong, where it must fail.

#[path = "../given/mod.rs"]
mod given;
#[path = "../../src/tests/server.rs"]
#[allow(dead_code, reason = "each of the test programs uses its part")]
mod server;

#[path = "../../src/tests/nodes.rs"]
#[allow(dead_code, reason = "each of the test programs uses its part")]
mod nodes;

mod apart;
mod processes;

use std::time::Duration;

use crate::nodes::Nodes;
use crate::processes::{Knocking, Run};
use crate::server::{Kind, Server};

const ONE_KEY: Knocking = Knocking { how: "store", limit: "100/s burst 50", keys: 1, seconds: 5 };
const THOUSAND_KEYS: Knocking = Knocking { how: "store", limit: "1/s burst 5", keys: 1_000, seconds: 5 };

/// Law 1 in every window, and law 2: at least 99.9 % of what is permitted between the first call and the last one.
fn assert_one_key_is_exact(run: &Run) {
    let key = &run.keys[0];
    let permitted = given::law::permits(&run.quota, key.span());
    assert_eq!(given::law::excess(&run.quota, &key.passed_ns), 0, "in no window passes more");
    assert!(key.asked > 10 * permitted, "it was asked for far more: {} times", key.asked);
    let passed = key.passed_ns.len() as u64;
    assert!(passed <= permitted, "{passed} of {permitted}");
    println!("{passed} of {permitted} passed in {:?}, of {} calls", key.span(), key.asked);
    assert!(passed * 1_000 >= permitted * 999, "{passed} of {permitted} in {:?}", key.span());
}

fn assert_each_key_is_exact(run: &Run) {
    assert_eq!(run.keys.len(), 1_000);
    for key in &run.keys {
        let permitted = given::law::permits(&run.quota, key.span());
        assert_eq!(given::law::excess(&run.quota, &key.passed_ns), 0, "in no window passes more");
        let passed = key.passed_ns.len() as u64;
        assert!((permitted - 1..=permitted).contains(&passed), "{passed} of {permitted} in {:?}", key.span());
        assert!(key.span() >= Duration::from_secs(run.seconds) / 2, "it was asked for all the time");
    }
}

#[test]
fn eight_processes_share_one_key_on_redis() {
    assert_one_key_is_exact(&ONE_KEY.on(&Server::start(Kind::Redis7).url()));
}

#[test]
fn eight_processes_share_one_key_on_valkey() {
    assert_one_key_is_exact(&ONE_KEY.on(&Server::start(Kind::Valkey9).url()));
}

#[test]
fn eight_processes_share_a_thousand_keys_on_valkey() {
    assert_each_key_is_exact(&THOUSAND_KEYS.on(&Server::start(Kind::Valkey9).url()));
}

#[test]
fn eight_processes_share_keys_on_a_cluster() {
    let nodes = Nodes::start(Kind::Valkey9);
    assert_each_key_is_exact(&THOUSAND_KEYS.on(&nodes.url()));
    assert_one_key_is_exact(&ONE_KEY.on(&nodes.url()));
}

#[test]
fn a_read_and_then_a_write_admit_too_much() {
    let knocking = Knocking { how: "read-then-write", seconds: 2, ..ONE_KEY };
    let run = knocking.on(&Server::start(Kind::Redis7).url());
    let (permitted, passed) = (given::law::permits(&run.quota, run.keys[0].span()), run.keys[0].passed_ns.len());
    let excess = given::law::excess(&run.quota, &run.keys[0].passed_ns);
    println!("{passed} passed, where {permitted} are permitted; the worst window has {excess} too many");
    assert!(excess > 50, "only {excess} too many: the test would not see the fault");
}
