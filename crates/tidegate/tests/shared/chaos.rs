//! Whatever happens to the store: every decision comes in time, each limit does what it declared, no more passes than lost
//! writes explain, and the store is asked again by itself when it is well.

use std::time::Duration;

use tidegate::Source;

use crate::callers::LIMIT;
use crate::given::quota;
use crate::scenarios::{self, Report, Setting};

const DEADLINE: Duration = Duration::from_millis(50);
/// Five times the deadline: the machine may be busy.
const IN_TIME: Duration = Duration::from_millis(250);
/// The store is asked again within two seconds; the benchmark says how soon, and here the machine may be busy.
const RECOVERED: Duration = Duration::from_secs(5);

fn setting() -> Setting {
    let is_long = std::env::var_os("TIDEGATE_LONG").is_some();
    let outage = Duration::from_millis(if is_long { 10_000 } else { 700 });
    Setting { deadline: DEADLINE, calm: outage / 2, outage }
}

fn assert_held(report: &Report) {
    let Report { name, seen, losses, recovery } = report;
    let latencies = seen.latencies();
    let slowest = latencies.last().unwrap();
    println!(
        "{name}: {} decisions, {} of them alone, the slowest in {slowest:?}, recovered in {recovery:?}, {} too many",
        latencies.len(),
        seen.count(Source::Fallback),
        seen.excess(),
    );
    assert!(*slowest < IN_TIME, "{name}: a decision took {slowest:?}");
    // What a store lost, it gives again: at most a burst each time.
    assert!(seen.excess() <= losses * quota(LIMIT).burst(), "{name}: {} too many", seen.excess());
    if let Some(recovery) = recovery {
        assert!(*recovery < RECOVERED, "{name}: it took {recovery:?}");
        seen.assert_declared();
    }
}

#[test]
fn a_server_that_is_killed_and_starts_again() {
    assert_held(&scenarios::killed(&setting()));
}

#[test]
fn a_server_that_forgets_the_script() {
    let report = scenarios::flushed_scripts(&setting());
    assert_held(&report);
    assert_eq!(report.seen.count(Source::Fallback), 0, "it is told the script again, and nobody notices");
}

#[test]
fn a_server_without_room() {
    assert_held(&scenarios::out_of_memory(&setting()));
}

#[test]
fn a_replica_in_the_place_of_the_primary() {
    assert_held(&scenarios::became_a_replica(&setting()));
}

#[test]
fn a_network_that_swallows_everything() {
    assert_held(&scenarios::blackholed(&setting()));
}

#[test]
fn a_network_that_is_slow() {
    assert_held(&scenarios::delayed(&setting()));
}

#[test]
fn a_port_where_nobody_listens() {
    assert_held(&scenarios::refused(&setting()));
}

#[test]
fn a_primary_that_dies_under_sentinels() {
    assert_held(&scenarios::failed_over(&setting()));
}

#[test]
fn a_node_of_a_cluster_that_dies() {
    assert_held(&scenarios::failed_over_in_a_cluster(&setting()));
}

#[test]
fn a_slot_that_moves_from_node_to_node() {
    assert_held(&scenarios::moved_slots(&setting()));
}
