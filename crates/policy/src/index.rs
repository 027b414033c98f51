//! All matches together, prepared at load, so that a request costs about the same under a hundred policies as under
//! one.
//!
//! Each kind of condition answers with the set of the policies that it lets through: those that do not ask, and those
//! whose condition is met. What is in every answer applies. `Match::fits` says the same of one policy, and the tests
//! hold one against the other.

use std::collections::HashMap;

use crate::matching::Line;
use crate::path_index::PathIndex;
use crate::policy_set::PolicySet;
use crate::{Attributes, FieldName, HeaderMatch, Policy, host_pattern};

/// The conditions of all policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    all: PolicySet,
    hosts: Option<Hosts>,
    methods: Option<Methods>,
    paths: Option<Paths>,
    headers: Vec<Header>,
}

impl Index {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let all = PolicySet::of(policies.len(), |_| true);
        let matches = || policies.iter().map(|policy| &policy.matching).enumerate();
        let (mut hosts, mut methods, mut paths) = (Hosts::default(), Methods::default(), Paths::default());
        let mut headers: Vec<Header> = Vec::new();
        for (place, matching) in matches() {
            matching.hosts.iter().for_each(|host| hosts.add(&host.name, host.is_below, place));
            matching.methods.iter().for_each(|method| methods.add(method.as_str(), place));
            matching.paths.iter().for_each(|path| paths.index.add(path, place));
            matching.headers.iter().for_each(|header| Header::add(&mut headers, header, place));
        }
        hosts.unasked = PolicySet::of(policies.len(), |place| policies[place].matching.hosts.is_empty());
        methods.unasked = PolicySet::of(policies.len(), |place| policies[place].matching.methods.is_empty());
        paths.unasked = PolicySet::of(policies.len(), |place| policies[place].matching.paths.is_empty());
        Self {
            all,
            hosts: Some(hosts).filter(|hosts| hosts.unasked != all),
            methods: Some(methods).filter(|methods| methods.unasked != all),
            paths: Some(paths).filter(|paths| paths.unasked != all),
            headers,
        }
    }

    /// Does every policy mean every request?
    pub(crate) fn is_everything(&self) -> bool {
        self.hosts.is_none() && self.methods.is_none() && self.paths.is_none() && self.headers.is_empty()
    }

    /// The policies that mean this request. `path` is asked for its path in the normal form, if that matters.
    pub(crate) fn of<'p, A>(&self, request: &A, path: impl FnOnce() -> &'p str) -> PolicySet
    where
        A: Attributes + ?Sized,
    {
        let mut left = self.all;
        if let Some(methods) = &self.methods {
            left.keep(&methods.of(request.method()));
        }
        if let Some(hosts) = &self.hosts {
            left.keep(&hosts.of(request.host().unwrap_or_default()));
        }
        if let Some(paths) = self.paths.as_ref().filter(|_| !left.is_empty()) {
            let mut found = paths.index.of(path());
            found.add(&paths.unasked);
            left.keep(&found);
        }
        for header in &self.headers {
            if left.first_common(&header.asked).is_some() {
                left.remove(&header.unmet(request));
            }
        }
        left
    }
}

/// The policies by host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hosts {
    unasked: PolicySet,
    exact: HashMap<Box<[u8]>, PolicySet>,
    /// By what stands behind the dot.
    below: HashMap<Box<[u8]>, PolicySet>,
}

impl Hosts {
    fn add(&mut self, name: &str, is_below: bool, place: usize) {
        let map = if is_below { &mut self.below } else { &mut self.exact };
        map.entry(name.as_bytes().into()).or_default().add(&PolicySet::default().with(place));
    }

    fn of(&self, host: &str) -> PolicySet {
        let mut found = self.unasked;
        let mut room = [0; host_pattern::HOST_BYTES_MAX];
        let Some(host) = host_pattern::plain(host, &mut room) else { return found };
        found.add(self.exact.get(host).unwrap_or(&PolicySet::default()));
        if !self.below.is_empty() {
            let dots = host.iter().enumerate().filter(|(at, byte)| *at > 0 && **byte == b'.');
            for set in dots.filter_map(|(at, _)| self.below.get(&host[at + 1..])) {
                found.add(set);
            }
        }
        found
    }
}

/// The policies by method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Methods {
    unasked: PolicySet,
    sets: Vec<(Box<str>, PolicySet)>,
}

impl Methods {
    fn add(&mut self, method: &str, place: usize) {
        // HEAD is meant where GET is.
        for method in [Some(method), Some("HEAD").filter(|_| method == "GET")].into_iter().flatten() {
            let known = self.sets.iter().position(|(known, _)| **known == *method);
            let at = known.unwrap_or_else(|| {
                self.sets.push((method.into(), PolicySet::default()));
                self.sets.len() - 1
            });
            self.sets[at].1.add(&PolicySet::default().with(place));
        }
    }

    fn of(&self, method: &str) -> PolicySet {
        let mut found = self.unasked;
        if let Some((_, set)) = self.sets.iter().find(|(known, _)| **known == *method) {
            found.add(set);
        }
        found
    }
}

/// The policies by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Paths {
    unasked: PolicySet,
    index: PathIndex,
}

/// The policies that ask for one header field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    name: FieldName,
    /// They all.
    asked: PolicySet,
    /// Those that any value pleases.
    any: PolicySet,
    values: HashMap<Box<[u8]>, PolicySet>,
}

impl Header {
    fn add(all: &mut Vec<Self>, header: &HeaderMatch, place: usize) {
        let at = all.iter().position(|known| known.name == header.name).unwrap_or_else(|| {
            let empty = PolicySet::default();
            all.push(Self { name: header.name.clone(), asked: empty, any: empty, values: HashMap::new() });
            all.len() - 1
        });
        let (known, one) = (&mut all[at], PolicySet::default().with(place));
        known.asked.add(&one);
        if header.values.is_empty() {
            known.any.add(&one);
        }
        for value in &header.values {
            known.values.entry(value.as_bytes().into()).or_default().add(&one);
        }
    }

    /// The policies that a request does not please.
    fn unmet<A: Attributes + ?Sized>(&self, request: &A) -> PolicySet {
        let mut unmet = self.asked;
        let line = Line::of(request, self.name.as_str());
        if line != Line::Missing {
            unmet.remove(&self.any);
        }
        if let Line::Only(value) = line {
            unmet.remove(self.values.get(value).unwrap_or(&PolicySet::default()));
        }
        unmet
    }
}
