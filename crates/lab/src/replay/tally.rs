//! What is counted while requests are replayed.

use tidegate_core::Time;
use tidegate_policy::{Client, Policies};

use crate::log::{Feed, Feeds, Line, Origin, Utc};
use crate::replay::blind_spots::blind_spots;
use crate::replay::engine::Ruling;
use crate::replay::paths::{PathNumber, Paths};
use crate::replay::report::{ByStatus, ClientLine, Comparison, Left, Outcome, PathLine};
use crate::replay::{Audience, Clients, Engine, Intake, Report, Request, Timeline};

const NS: u64 = 1_000_000_000;

/// What is counted.
pub(crate) struct Tally {
    here: Side,
    there: Option<Side>,
    clients: Clients,
    paths: Paths,
    timeline: Timeline,
    /// Requests that are denied only there, and only here.
    newly: [u64; 2],
    span_s: Option<(u64, u64)>,
    is_peer_client: bool,
}

/// One configuration, and what it did.
struct Side {
    engine: Engine,
    admitted: u64,
    denied: u64,
    by_status: [ByStatus; 6],
    /// Of each client.
    by_client: Vec<Fate>,
}

/// What became of one client.
#[derive(Clone, Copy, Debug)]
struct Fate {
    denied: u32,
    /// The least that remained after a request of it.
    least: u32,
}

impl Default for Fate {
    fn default() -> Self {
        Self { denied: 0, least: u32::MAX }
    }
}

/// What is kept of a request until its turn: 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    client: u32,
    path: PathNumber,
    plans: [u32; 2],
    status: u16,
}

impl Side {
    fn new(policies: Policies, is_same_client: bool) -> Self {
        Self {
            engine: Engine::new(policies, is_same_client),
            admitted: 0,
            denied: 0,
            by_status: Default::default(),
            by_client: Vec::new(),
        }
    }

    #[inline]
    fn decide(&mut self, plan: u32, held: &Held, now: Time) -> bool {
        let Ruling { is_allowed, remaining } = self.engine.decide(plan, held.status, now);
        let by_status = &mut self.by_status[usize::from(held.status / 100).min(5)];
        by_status.requests += 1;
        let client = held.client as usize;
        if client >= self.by_client.len() {
            self.by_client.resize(client + 1, Fate::default());
        }
        let fate = &mut self.by_client[client];
        if let Some(remaining) = remaining {
            fate.least = fate.least.min(u32::try_from(remaining).unwrap_or(u32::MAX - 1));
        }
        if is_allowed {
            self.admitted += 1;
        } else {
            self.denied += 1;
            by_status.denied += 1;
            fate.denied = fate.denied.saturating_add(1);
        }
        is_allowed
    }

    fn denied_of(&self, client: u32) -> u64 {
        self.by_client.get(client as usize).map_or(0, |fate| u64::from(fate.denied))
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            admitted: self.admitted,
            denied: self.denied,
            denied_clients: self.by_client.iter().filter(|fate| fate.denied > 0).count() as u64,
            limits: self.engine.limits.clone(),
            by_status: self.by_status,
        }
    }

    fn left(&self) -> Left {
        let mut left = Left::default();
        for fate in &self.by_client {
            if fate.denied > 0 {
                left.denied += 1;
            } else if fate.least < u32::MAX {
                let power = (u32::BITS - fate.least.leading_zeros()) as usize;
                left.by_power.resize(left.by_power.len().max(power + 1), 0);
                left.by_power[power] += 1;
            }
        }
        left
    }
}

impl Audience for Tally {
    type Held = Held;

    #[inline]
    fn hold(&mut self, line: &Line<'_>, origin: Origin<'_>) -> Held {
        let peer = self.clients.peer(origin);
        let policies = self.here.engine.policies();
        let address = policies.client();
        let client = match self.is_peer_client {
            true => Client::from(peer),
            false => address.of(&Request::new(line, peer)),
        };
        let client = self.clients.number(address.grouping.network(client));
        let request = || Request::new(line, peer);
        let here = self.here.engine.plan(client, request);
        let there = self.there.as_mut().map_or(0, |there| there.engine.plan(client, request));
        Held { client, path: self.paths.number(line.path()), plans: [here, there], status: line.status }
    }

    #[inline]
    fn take(&mut self, now: Time, held: Held) {
        let unix_s = now.as_nanos() / NS;
        let is_allowed = self.here.decide(held.plans[0], &held, now);
        let is_allowed_there = self.there.as_mut().is_none_or(|there| there.decide(held.plans[1], &held, now));
        if self.there.is_some() {
            self.newly[0] += u64::from(is_allowed && !is_allowed_there);
            self.newly[1] += u64::from(!is_allowed && is_allowed_there);
        }
        self.clients.count(held.client, unix_s);
        self.paths.count(held.path, !is_allowed);
        self.timeline.count(unix_s, !is_allowed, !is_allowed_there);
        self.span_s = Some((self.span_s.map_or(unix_s, |(first, _)| first), unix_s));
    }
}

impl Tally {
    pub(crate) fn new(policies: Policies, compare: Option<Policies>) -> Self {
        let is_peer_client = policies.client().trust.is_nothing();
        let there = compare.map(|compare| {
            let is_same_client = compare.client() == policies.client();
            Side::new(compare, is_same_client)
        });
        Self {
            here: Side::new(policies, true),
            there,
            clients: Clients::default(),
            paths: Paths::default(),
            timeline: Timeline::default(),
            newly: [0; 2],
            span_s: None,
            is_peer_client,
        }
    }

    pub(crate) fn report(self, intake: Intake, feeds: &Feeds, top: usize) -> Report {
        let format = |feed: &Feed| feed.format().map_or_else(|| "none, it is empty".to_owned(), ToString::to_string);
        let named = |feed: &Feed| (feed.name().to_owned(), format(feed));
        let utc = |unix_s: u64| Utc { unix_s: i64::try_from(unix_s).unwrap_or(i64::MAX) };
        Report {
            logs: feeds.as_slice().iter().map(named).collect(),
            lines: intake.lines,
            blank: intake.blank,
            unparsed: intake.unparsed,
            excluded: intake.excluded,
            requests: intake.requests,
            late: intake.late,
            has_whole_stamps: intake.has_whole_stamps,
            assumed_place: feeds.as_slice().iter().find_map(Feed::assumed_place).map(ToString::to_string),
            examples: intake.examples,
            broken: intake.broken,
            blind_spots: blind_spots(self.here.engine.policies()),
            clients: self.clients.active().count() as u64,
            span: self.span_s.map(|(first, last)| (utc(first), utc(last))),
            outcome: self.here.outcome(),
            comparison: self.comparison(),
            top_clients: self.top_clients(top),
            top_paths: self.top_paths(top),
            is_paths_partial: self.paths.is_partial,
            left: self.here.left(),
            timeline: self.timeline,
        }
    }

    fn comparison(&self) -> Option<Comparison> {
        let there = self.there.as_ref()?;
        let mut comparison = Comparison {
            outcome: there.outcome(),
            newly_denied: self.newly[0],
            newly_admitted: self.newly[1],
            ..Comparison::default()
        };
        for (client, _) in self.clients.active() {
            match (self.here.denied_of(client) > 0, there.denied_of(client) > 0) {
                (false, true) => comparison.newly_denied_clients += 1,
                (true, false) => comparison.newly_admitted_clients += 1,
                _ => {}
            }
        }
        Some(comparison)
    }

    fn top_clients(&self, top: usize) -> Vec<ClientLine> {
        let there = |client| self.there.as_ref().map(|there| there.denied_of(client));
        let rank = |client, requests| {
            let denied = self.here.denied_of(client);
            (denied.max(there(client).unwrap_or(0)), denied, requests)
        };
        let mut all: Vec<_> =
            self.clients.active().map(|(client, busy)| (rank(client, busy.requests), client, busy)).collect();
        let order = |(rank, client, _): &((u64, u64, u32), u32, _)| (std::cmp::Reverse(*rank), *client);
        if all.len() > top && top > 0 {
            all.select_nth_unstable_by_key(top - 1, order);
        }
        all.truncate(top);
        all.sort_unstable_by_key(order);
        let line = |(_, client, busy): (_, u32, &crate::replay::clients::Busy)| {
            let (busiest, in_busiest) = busy.busiest();
            ClientLine {
                client: self.clients.show(client).to_string(),
                requests: u64::from(busy.requests),
                denied: self.here.denied_of(client),
                denied_there: there(client),
                busiest,
                in_busiest,
            }
        };
        all.into_iter().map(line).collect()
    }

    fn top_paths(&self, top: usize) -> Vec<PathLine> {
        let mut all: Vec<_> = self.paths.iter().collect();
        all.sort_unstable_by(|a, b| (b.denied, b.requests, &a.text).cmp(&(a.denied, a.requests, &b.text)));
        let line = |path: &crate::replay::paths::Path| PathLine {
            path: String::from_utf8_lossy(&path.text).into_owned(),
            requests: path.requests,
            denied: path.denied,
        };
        all.into_iter().take(top).map(line).collect()
    }
}
