//! When each key sent its requests.

use tidegate_core::{Cost, Quota, State, Time, decide};
use tidegate_policy::{Client, KeyPart, KeyText, Policies};

use crate::log::{Line, Origin};
use crate::replay::{Audience, Clients, Engine, Request};

/// Collects arrivals while logs are read.
pub(crate) struct Gather {
    clients: Clients,
    engine: Engine,
    is_by_client: bool,
    is_peer_client: bool,
    /// The key and the time of each request, in the order of time.
    events: Vec<(u32, u64)>,
}

impl Gather {
    pub(crate) fn new(policies: Policies) -> Self {
        let is_by_client = policies.as_slice().iter().all(|policy| policy.key().as_slice() == [KeyPart::Client]);
        Self {
            clients: Clients::default(),
            is_by_client,
            is_peer_client: policies.client().trust.is_nothing(),
            engine: Engine::new(policies, false),
            events: Vec::new(),
        }
    }

    /// The arrivals, each key's together.
    pub(crate) fn finish(self) -> Arrivals {
        let count = self.events.iter().map(|(key, _)| *key as usize + 1).max().unwrap_or(0);
        let mut starts = vec![0_usize; count + 1];
        self.events.iter().for_each(|(key, _)| starts[*key as usize + 1] += 1);
        for key in 0..count {
            starts[key + 1] += starts[key];
        }
        let mut next = starts.clone();
        let mut times = vec![0; self.events.len()];
        for (key, time) in &self.events {
            times[next[*key as usize]] = *time;
            next[*key as usize] += 1;
        }
        let present: Vec<u32> =
            (0..count as u32).filter(|key| starts[*key as usize] < starts[*key as usize + 1]).collect();
        Arrivals { starts, times, present, clients: self.clients, engine: self.engine, is_by_client: self.is_by_client }
    }
}

impl Audience for Gather {
    type Held = u32;

    fn hold(&mut self, line: &Line<'_>, origin: Origin<'_>) -> u32 {
        let peer = self.clients.peer(origin);
        if !self.is_by_client {
            return self.engine.plan(0, || Request::new(line, peer));
        }
        let address = self.engine.policies().client();
        let client = match self.is_peer_client {
            true => Client::from(peer),
            false => address.of(&Request::new(line, peer)),
        };
        self.clients.number(address.grouping.network(client))
    }

    fn take(&mut self, now: Time, key: u32) {
        self.events.push((key, now.as_nanos()));
    }
}

/// When each key sent its requests.
pub(crate) struct Arrivals {
    starts: Vec<usize>,
    times: Vec<u64>,
    /// The keys that sent any.
    present: Vec<u32>,
    clients: Clients,
    engine: Engine,
    is_by_client: bool,
}

impl Arrivals {
    /// How many keys sent requests.
    pub(crate) fn keys(&self) -> u64 {
        self.present.len() as u64
    }

    pub(crate) fn requests(&self) -> u64 {
        self.times.len() as u64
    }

    /// Each key with the times of its requests, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &[u64])> {
        self.present.iter().map(|key| (*key, &self.times[self.starts[*key as usize]..self.starts[*key as usize + 1]]))
    }

    /// A key, as people know it.
    pub(crate) fn name(&self, key: u32) -> String {
        match self.is_by_client {
            true => self.clients.show(key).to_string(),
            false => self.engine.key_of(key).map(|bytes| KeyText(bytes).to_string()).unwrap_or_default(),
        }
    }
}

/// How many of these arrivals a quota denies: the very decisions of a replay.
pub(crate) fn denied(times_ns: &[u64], quota: &Quota) -> u64 {
    let mut state = State::FULL;
    let denies = |time: &&u64| {
        let (decision, next) = decide(quota, state, Cost::ONE, Time::from_nanos(**time));
        state = next;
        !decision.is_allowed()
    };
    times_ns.iter().filter(denies).count() as u64
}
