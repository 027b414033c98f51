//! Things that happen to several servers that stand for each other.

use std::time::Duration;

use tidegate::Source;

use super::{Report, Setting};
use crate::callers::{Callers, KEY};
use crate::nodes::Nodes;
use crate::sentinel::Sentinel;
use crate::server::{Kind, Server, until};

/// The primary dies, and the sentinels put its replica in its place.
pub(crate) fn failed_over(setting: &Setting) -> Report {
    let mut primary = Server::start(Kind::Redis7);
    let replica = Server::start_with(Kind::Redis7, &["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    until("the replica is in step", || replica.text(&["INFO", "replication"]).contains("master_link_status:up"));
    let sentinel = Sentinel::start(&primary);
    let knows = |answer: redis::Value| matches!(answer, redis::Value::Array(replicas) if !replicas.is_empty());
    until("the sentinel knows the replica", || sentinel.ask(&["REPLICAS", "main"]).is_ok_and(knows));
    let callers = Callers::of(&format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port()), setting.deadline);
    callers.go_on_for(setting.calm);
    primary.kill();
    callers.answered_by(Source::Fallback);
    until("the replica is the primary", || replica.text(&["INFO", "replication"]).contains("role:master"));
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name: "failover by a sentinel", seen: callers.end(), losses: 1, recovery: Some(recovery) }
}

/// A node of a cluster dies, and its replica takes its place.
pub(crate) fn failed_over_in_a_cluster(setting: &Setting) -> Report {
    let mut nodes = Nodes::with_replicas(Kind::Valkey9);
    let callers = Callers::of(&nodes.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    let home = Nodes::home(slot(&nodes));
    nodes.servers[home].kill();
    callers.answered_by(Source::Fallback);
    let replica = &nodes.servers[home + nodes.servers.len() / 2];
    until("the replica is the primary", || replica.text(&["INFO", "replication"]).contains("role:master"));
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name: "failover in a cluster", seen: callers.end(), losses: 1, recovery: Some(recovery) }
}

/// The slot of the callers' buckets moves from node to node, with its keys, while they ask.
pub(crate) fn moved_slots(setting: &Setting) -> Report {
    let nodes = Nodes::start(Kind::Redis8);
    let callers = Callers::of(&nodes.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    let slot = slot(&nodes);
    let home = Nodes::home(slot);
    for i in 0..MOVES {
        let (from, to) = ((home + i) % PRIMARIES, (home + i + 1) % PRIMARIES);
        nodes.begin_to_move(slot, from, to);
        callers.go_on_for(setting.outage / MOVES as u32);
        nodes.finish_moving(slot, from, to);
    }
    callers.answered_by(Source::Store);
    callers.go_on_for(Duration::from_millis(100));
    Report { name: "a slot that moves six times", seen: callers.end(), losses: 0, recovery: None }
}

const MOVES: usize = 6;
const PRIMARIES: usize = 3;

fn slot(nodes: &Nodes) -> u16 {
    match nodes.servers[0].ask(&["CLUSTER", "KEYSLOT", KEY]) {
        redis::Value::Int(slot) => u16::try_from(slot).unwrap(),
        other => panic!("{other:?}"),
    }
}
