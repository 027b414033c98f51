//! When each key sent its requests.

use tidegate_core::{Cost, Quota, State, Time, decide};
use tidegate_policy::{Client, KeyPart, KeyText, Policies};

use crate::log::{Line, Origin};
use crate::replay::{Audience, Clients, Engine, Request};
use crate::tune::apart::{Rule, is_flood, is_robot};

/// Collects arrivals while logs are read.
pub(crate) struct Gather {
    clients: Clients,
    engine: Engine,
    is_by_client: bool,
    is_peer_client: bool,
    /// The key and the time of each request, in the order of time.
    events: Vec<(u32, u64)>,
    rules: Vec<Rule>,
    /// Which keys are robots, if that is asked for.
    robots: Vec<bool>,
}

impl Gather {
    pub(crate) fn new(policies: Policies, rules: Vec<Rule>) -> Self {
        let is_by_client = policies.as_slice().iter().all(|policy| policy.key().as_slice() == [KeyPart::Client]);
        Self {
            clients: Clients::default(),
            is_by_client,
            is_peer_client: policies.client().trust.is_nothing(),
            engine: Engine::new(policies, false),
            events: Vec::new(),
            rules,
            robots: Vec::new(),
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
        let times_of = |key: u32| &times[starts[key as usize]..starts[key as usize + 1]];
        let (mut present, mut apart) = (Vec::new(), Vec::new());
        for key in (0..count as u32).filter(|key| !times_of(*key).is_empty()) {
            let is_robot = self.robots.get(key as usize).is_some_and(|is| *is);
            let rule = self.rules.iter().find(|rule| match rule {
                Rule::Robots => is_robot,
                Rule::Floods => is_flood(times_of(key)),
            });
            match rule {
                Some(rule) => apart.push((key, *rule)),
                None => present.push(key),
            }
        }
        let Self { clients, engine, is_by_client, .. } = self;
        Arrivals { starts, times, present, apart, clients, engine, is_by_client }
    }

    fn key(&mut self, line: &Line<'_>, origin: Origin<'_>) -> u32 {
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
}

impl Audience for Gather {
    type Held = u32;

    fn hold(&mut self, line: &Line<'_>, origin: Origin<'_>) -> u32 {
        let key = self.key(line, origin);
        if self.rules.contains(&Rule::Robots) && is_robot(line) {
            self.robots.resize(self.robots.len().max(key as usize + 1), false);
            self.robots[key as usize] = true;
        }
        key
    }

    fn take(&mut self, now: Time, key: u32) {
        self.events.push((key, now.as_nanos()));
    }
}

/// When each key sent its requests.
pub(crate) struct Arrivals {
    starts: Vec<usize>,
    times: Vec<u64>,
    /// The keys that sent any, but for those set apart.
    present: Vec<u32>,
    /// Those set apart, each by a rule.
    apart: Vec<(u32, Rule)>,
    clients: Clients,
    engine: Engine,
    is_by_client: bool,
}

impl Arrivals {
    /// How many keys sent requests.
    pub(crate) fn keys(&self) -> u64 {
        self.present.len() as u64
    }

    /// How many requests they sent.
    pub(crate) fn requests(&self) -> u64 {
        self.each().map(|(_, times)| times.len() as u64).sum()
    }

    /// Each key with the times of its requests, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &[u64])> {
        self.present.iter().map(|key| (*key, self.times_of(*key)))
    }

    /// Each key that is set apart, with its rule.
    pub(crate) fn each_apart(&self) -> impl Iterator<Item = (Rule, &[u64])> {
        self.apart.iter().map(|(key, rule)| (*rule, self.times_of(*key)))
    }

    fn times_of(&self, key: u32) -> &[u64] {
        &self.times[self.starts[key as usize]..self.starts[key as usize + 1]]
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
