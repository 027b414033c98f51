//! The limit holds to the request, in front of a real nginx and under clients that knock as fast as they can.
//!
//! For a bucket of burst 50 that gains 100 a second, n requests that pass within t seconds are at most 50 + 100t, by
//! law. That they are at least 5 less shows that nothing is lost either. The upper bound must hold in each run; the
//! lower one also needs a machine that lets the clients go on, so it has a few tries.

mod knocking;
#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use knocking::{Knocked, Task, knock_from_processes};
use support::nginx::Nginx;
use support::program::Proxy;

/// Connections, over all client processes.
const CONNECTIONS: usize = 50;
/// How often a run is made until the lower bound holds.
const TRIES_MAX: usize = 3;

/// Load tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds() -> u64 {
    if support::is_long() { 20 } else { 5 }
}

/// Knocks at a fresh proxy in front of a fresh nginx, and checks that all three count the same.
fn knock(flags: &[&str], processes: usize, keys: usize) -> Knocked {
    let nginx = Nginx::start();
    let url = nginx.url();
    let proxy = Proxy::start(&[flags, &["--upstream", &url]].concat());
    let task = Task { address: proxy.address, connections: CONNECTIONS, keys, seconds: seconds() };
    let knocked = knock_from_processes(&task, processes);
    let metrics = proxy.metrics();
    assert_eq!(metrics.decisions("limit-1", "allowed"), knocked.passed(), "the proxy let pass what passed");
    assert_eq!(metrics.decisions("limit-1", "denied"), knocked.denied);
    assert_eq!(nginx.requests(), knocked.passed(), "what was denied never reached the upstream");
    assert!(knocked.denied > knocked.passed(), "the limit was under pressure: {} denied", knocked.denied);
    knocked
}

fn check_exact(processes: usize) {
    let _alone = alone();
    for attempt in 1.. {
        let knocked = knock(&["--limit", "100/s burst 50"], processes, 0);
        let (n, most) = (knocked.passed(), 50.0 + 100.0 * knocked.seconds());
        println!("{processes} processes: {n} passed of at most {most:.2}, {} denied", knocked.denied);
        assert!(n as f64 <= most, "{n} passed within {} s", knocked.seconds());
        if n as f64 >= most - 5.0 {
            return;
        }
        assert!(attempt < TRIES_MAX, "only {n} passed within {} s", knocked.seconds());
    }
}

#[test]
fn one_process() {
    check_exact(1);
}

#[test]
fn two_processes() {
    check_exact(2);
}

#[test]
fn four_processes() {
    check_exact(4);
}

#[test]
fn eight_processes() {
    check_exact(8);
}

#[test]
fn a_thousand_keys_at_once_get_the_same_each() {
    const KEYS: usize = 1_000;
    let _alone = alone();
    for attempt in 1.. {
        let knocked = knock(&["--limit", "1/s burst 5", "--key", "header:x-api-key"], 4, KEYS);
        let (least, most) = (*knocked.by_key.iter().min().unwrap(), *knocked.by_key.iter().max().unwrap());
        println!("{KEYS} keys in {:.2} s: {least} to {most} passed each, {} denied", knocked.seconds(), knocked.denied);
        assert_eq!(knocked.by_key.len(), KEYS);
        let full = (5.0 + knocked.seconds()).floor() as u64;
        assert!(most <= full, "{most} passed for one key within {} s", knocked.seconds());
        if least >= full - 1 {
            return;
        }
        assert!(attempt < TRIES_MAX, "only {least} passed for one key within {} s", knocked.seconds());
    }
}
