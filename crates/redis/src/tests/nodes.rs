//! Real clusters, put together by the tests.

use super::server::{Kind, Server, free_port, until};

/// Three primaries that share the slots evenly, and, if asked for, a replica of each.
pub(super) struct Nodes {
    pub(super) servers: Vec<Server>,
}

const PRIMARIES: usize = 3;
/// The slots of every cluster.
const SLOTS: u16 = 16_384;

impl Nodes {
    pub(super) fn start(kind: Kind) -> Self {
        Self::of(kind, PRIMARIES, "15000")
    }

    /// A node that died is noticed within a second.
    pub(super) fn with_replicas(kind: Kind) -> Self {
        let nodes = Self::of(kind, 2 * PRIMARIES, "1000");
        for i in 0..PRIMARIES {
            let (replica, id) = (&nodes.servers[PRIMARIES + i], nodes.id(i));
            until("a node becomes a replica", || replica.try_to_ask(&["CLUSTER", "REPLICATE", &id]).is_ok());
            until("a replica is in step", || replica.text(&["INFO", "replication"]).contains("master_link_status:up"));
        }
        nodes
    }

    fn of(kind: Kind, count: usize, timeout_ms: &str) -> Self {
        let start = |_| {
            let bus = free_port().to_string();
            let options = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", timeout_ms];
            let server = Server::start_with(kind, &options);
            (server, bus)
        };
        let (servers, buses): (Vec<_>, Vec<_>) = (0..count).map(start).unzip();
        let nodes = Self { servers };
        let share = usize::from(SLOTS) / PRIMARIES;
        for (i, server) in nodes.servers.iter().enumerate() {
            if i < PRIMARIES {
                let last = if i + 1 == PRIMARIES { usize::from(SLOTS) - 1 } else { (i + 1) * share - 1 };
                server.ask(&["CLUSTER", "ADDSLOTSRANGE", &(i * share).to_string(), &last.to_string()]);
                server.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            }
            let first = nodes.servers[0].port().to_string();
            server.ask(&["CLUSTER", "MEET", "127.0.0.1", &first, &buses[0]]);
        }
        let is_met = |server: &Server| {
            let info = server.text(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{count}"))
        };
        until("all nodes know each other", || nodes.servers.iter().all(is_met));
        nodes
    }

    pub(super) fn url(&self) -> String {
        let hosts: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    pub(super) fn id(&self, node: usize) -> String {
        self.servers[node].text(&["CLUSTER", "MYID"])
    }

    /// The place of the node that serves a slot when the cluster starts.
    pub(super) fn home(slot: u16) -> usize {
        (usize::from(slot) / (usize::from(SLOTS) / PRIMARIES)).min(PRIMARIES - 1)
    }

    /// Begins to move a slot: from now on new keys are the other's.
    pub(super) fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.servers[to].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.id(from)]);
        self.servers[from].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.id(to)]);
    }

    /// Moves the keys of a slot that has begun to move, and then the slot.
    pub(super) fn finish_moving(&self, slot: u16, from: usize, to: usize) {
        let (slot, port) = (slot.to_string(), self.servers[to].port().to_string());
        loop {
            let keys = self.servers[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let keys: Vec<String> = redis::from_redis_value(keys).unwrap();
            let [key] = &keys[..] else { break };
            self.servers[from].ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        }
        for node in [to, from] {
            self.servers[node].ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &self.id(to)]);
        }
        // Who moves a slot back before all have heard of the last move claims it with an old epoch, and loses it again.
        let epoch = |server: &Server| server.text(&["CLUSTER", "INFO"]).lines().find_map(current_epoch);
        let newest = self.servers.iter().filter_map(epoch).max();
        until("all nodes have heard of the move", || self.servers.iter().all(|server| epoch(server) == newest));
    }
}

fn current_epoch(line: &str) -> Option<u64> {
    line.trim().strip_prefix("cluster_current_epoch:")?.parse().ok()
}
