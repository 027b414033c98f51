//! A request that is written down, and a gate that decides on it as a store would.

use std::collections::HashMap;

use tidegate_core::{CHARGES_MAX, Decision, LimitId, Mode, State, Time, Verdict, decide_all};
use tidegate_policy::{Attributes, Charging, ClientAddress, Keys, Peer, Policies, Policy};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    peer: Peer,
    method: String,
    host: String,
    path: String,
    unix_s: Option<u64>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Given {
    /// From this address.
    pub(crate) fn from(peer: &str) -> Self {
        Self::peer(Peer::Ip(peer.parse().unwrap()))
    }

    pub(crate) fn peer(peer: Peer) -> Self {
        let (method, host, path) = ("GET".to_owned(), "api.example.org".to_owned(), "/".to_owned());
        Self { peer, method, host, path, unix_s: None, headers: Vec::new() }
    }

    /// With one more line of a field.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn to(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(crate) fn by(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    pub(crate) fn on(self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self }
    }

    pub(crate) fn at(self, unix_s: u64) -> Self {
        Self { unix_s: Some(unix_s), ..self }
    }

    pub(crate) fn xff(self, value: impl AsRef<[u8]>) -> Self {
        self.with("x-forwarded-for", value)
    }
}

impl Attributes for Given {
    fn peer(&self) -> Peer {
        self.peer
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        self.headers.iter().filter(|(n, _)| n == name).for_each(|(_, value)| each(value));
    }

    /// What stands in the field `claim-NAME`.
    fn claim(&self, name: &str) -> Option<&[u8]> {
        let field = format!("claim-{name}");
        self.headers.iter().find(|(n, _)| *n == field).map(|(_, value)| value.as_slice())
    }

    fn unix_s(&self) -> Option<u64> {
        self.unix_s
    }
}

/// Who is trusted, by the text of the list; nobody if it is empty.
pub(crate) fn trusting(trust: &str) -> ClientAddress {
    let trust = if trust.is_empty() { Default::default() } else { trust.parse().unwrap() };
    ClientAddress { trust, ..Default::default() }
}

/// A policy of these limits.
pub(crate) fn policy(key: &str, limits: &[&str]) -> Policy {
    let limits: Vec<_> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    Policy::new("p", key.parse().unwrap()).with_limits(limits, Mode::Enforce)
}

/// The key that a request is charged to under one policy.
pub(crate) fn key_of(address: &ClientAddress, key: &str, request: &Given) -> Vec<u8> {
    let policies = Policies::new(address.clone(), vec![policy(key, &["1/min"])]).unwrap();
    match policies.charging(request, &mut Keys::new()) {
        Charging::Charged(charges) => charges[0].key.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Policies over buckets in a map.
pub(crate) struct Gate {
    policies: Policies,
    buckets: HashMap<(LimitId, Vec<u8>), State>,
}

impl Gate {
    pub(crate) fn new(address: ClientAddress, policies: Vec<Policy>) -> Self {
        Self { policies: Policies::new(address, policies).unwrap(), buckets: HashMap::new() }
    }

    /// Other policies over the same buckets.
    pub(crate) fn reload(&mut self, policies: Vec<Policy>) {
        self.policies = Policies::new(self.policies.client().clone(), policies).unwrap();
    }

    /// How many buckets there are.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The verdict on a request, and the decisions it follows from.
    pub(crate) fn decide(&mut self, request: &Given, now_ms: u64) -> (Verdict, Vec<Decision>) {
        let mut keys = Keys::new();
        let Charging::Charged(charges) = self.policies.charging(request, &mut keys) else { panic!("no charge") };
        let bucket = |i: usize| (charges[i].limit, charges[i].key.to_vec());
        let mut states = [Ok(State::FULL); CHARGES_MAX];
        let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        for (i, state) in states.iter_mut().enumerate().take(charges.len()) {
            *state = Ok(self.buckets.get(&bucket(i)).copied().unwrap_or(State::FULL));
        }
        let states = &mut states[..charges.len()];
        let verdict = decide_all(&charges, states, &mut decisions, Time::from_millis(now_ms));
        for (i, state) in states.iter().enumerate() {
            self.buckets.insert(bucket(i), state.unwrap());
        }
        (verdict, decisions)
    }

    pub(crate) fn allows_at(&mut self, request: &Given, now_ms: u64) -> bool {
        self.decide(request, now_ms).0.allowed
    }

    pub(crate) fn allows(&mut self, request: &Given) -> bool {
        self.allows_at(request, 0)
    }

    /// How many of the requests pass, all at one instant.
    pub(crate) fn passing(&mut self, requests: impl IntoIterator<Item = Given>) -> usize {
        requests.into_iter().filter(|request| self.allows(request)).count()
    }
}
