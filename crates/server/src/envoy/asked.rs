//! What a call charges: for each of its descriptors the rule that it meets or the limit that it brings, and what
//! Tidegate's own policies charge for it.

use std::ops::Range;

use tidegate_core::{CHARGES_MAX, Charge, Cost, Handling};
use tidegate_policy::descriptor_rules::{BroughtLimit, CallUnit, DescriptorRule, DescriptorRules};
use tidegate_policy::limitador::{Call, Limits};
use tidegate_policy::{Charging, Described, Entry, Keys, Peer, Policies};

use super::messages::{RateLimitDescriptor, RateLimitRequest};
use crate::grpc::status::CallError;

/// The most descriptors of a call.
const DESCRIPTORS_MAX: usize = 64;

/// The most entries of a call's descriptors together: what is held while the store is asked is not far above the length
/// of the message.
const ENTRIES_MAX: usize = 1_024;

/// The entries of a call's descriptors, one behind the other.
pub(super) struct Entries<'q> {
    all: Vec<Entry<'q>>,
    /// Where those of each descriptor are.
    of: Vec<Range<usize>>,
}

impl<'q> Entries<'q> {
    /// Reads them.
    ///
    /// # Errors
    /// There is nothing to decide on.
    pub(super) fn new(request: &'q RateLimitRequest) -> Result<Self, CallError> {
        if request.domain.is_empty() {
            return Err(CallError::invalid("the domain is empty; Envoy's filter names it"));
        }
        if request.descriptors.is_empty() {
            return Err(CallError::invalid("there is no descriptor, so there is nothing to decide on"));
        }
        if request.descriptors.len() > DESCRIPTORS_MAX {
            return Err(CallError::invalid(format!("there are more than {DESCRIPTORS_MAX} descriptors")));
        }
        if request.descriptors.iter().map(|descriptor| descriptor.entries.len()).sum::<usize>() > ENTRIES_MAX {
            return Err(CallError::invalid(format!("the descriptors have more than {ENTRIES_MAX} entries together")));
        }
        let mut entries = Self { all: Vec::with_capacity(2 * request.descriptors.len()), of: Vec::new() };
        for descriptor in &request.descriptors {
            let start = entries.all.len();
            let each = descriptor.entries.iter().map(|entry| Entry { key: &entry.key, value: &entry.value });
            entries.all.extend(each);
            if entries.all[start..].iter().any(|entry| entry.key.is_empty()) || entries.all.len() == start {
                return Err(CallError::invalid("a descriptor has no entries, or one whose key is empty"));
            }
            entries.of.push(start..entries.all.len());
        }
        Ok(entries)
    }

    pub(super) fn of(&self, descriptor: usize) -> &[Entry<'q>] {
        &self.all[self.of[descriptor].clone()]
    }
}

/// What a descriptor meets in the files.
#[derive(Clone, Copy, Debug)]
pub(super) enum Met<'r> {
    /// Nothing, or a rule that another one replaces.
    Nothing,
    /// A rule.
    Rule(&'r DescriptorRule),
    /// The limit that the call brings for it.
    Brought(BroughtLimit),
}

impl<'r> Met<'r> {
    /// What each descriptor of a call meets.
    pub(super) fn all(
        rules: &'r DescriptorRules,
        request: &RateLimitRequest,
        entries: &Entries<'_>,
    ) -> Result<Vec<Self>, CallError> {
        let meets = |(i, descriptor)| Self::of(rules, &request.domain, descriptor, entries.of(i));
        let mut all = request.descriptors.iter().enumerate().map(meets).collect::<Result<Vec<_>, _>>()?;
        let replaces = |met: &Self| matches!(met, Self::Rule(rule) if !rule.replaces.is_empty());
        if all.iter().any(replaces) {
            let names: Vec<_> = all.iter().filter_map(Self::rule).flat_map(|rule| &rule.replaces).collect();
            let is_replaced = |met: &Self| met.rule().is_some_and(|rule| names.contains(&&rule.name));
            all.iter_mut().filter(|met| is_replaced(met)).for_each(|met| *met = Self::Nothing);
        }
        Ok(all)
    }

    fn of(
        rules: &'r DescriptorRules,
        domain: &str,
        descriptor: &RateLimitDescriptor,
        entries: &[Entry<'_>],
    ) -> Result<Self, CallError> {
        if let Some(limit) = descriptor.limit {
            let unit = CallUnit::from_number(limit.unit);
            let unit = unit.ok_or_else(|| CallError::invalid("a descriptor brings a limit without a unit"))?;
            return Ok(Self::Brought(BroughtLimit { requests: limit.requests_per_unit, unit }));
        }
        let rule = rules.place_of(domain, entries).and_then(|place| rules.rules().get(place));
        Ok(rule.map_or(Self::Nothing, Self::Rule))
    }

    pub(super) fn rule(&self) -> Option<&'r DescriptorRule> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::Nothing | Self::Brought(_) => None,
        }
    }

    /// Does it make a charge?
    pub(super) fn is_charged(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Rule(rule) => rule.unit.is_some(),
            Self::Brought(_) => true,
        }
    }

    fn push_key(&self, entries: &[Entry<'_>], keys: &mut Keys) {
        match self {
            Self::Rule(rule) => rule.push_key(entries, keys),
            Self::Brought(_) => BroughtLimit::push_key(entries, keys),
            Self::Nothing => {}
        }
    }
}

/// How limits that calls bring are enforced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) algorithm: tidegate_core::Algorithm,
    pub(super) handling: Handling,
}

impl Manner {
    fn charge<'k>(&self, met: &Met<'_>, domain: &str, key: &'k [u8], cost: Cost) -> Result<Charge<'k>, CallError> {
        let nothing = || CallError::invalid("a descriptor makes no charge");
        match met {
            Met::Rule(rule) => rule.charge(key, cost).ok_or_else(nothing),
            Met::Brought(limit) => {
                let allowed = limit.unit.limit(limit.requests, self.algorithm);
                let allowed =
                    allowed.map_err(|error| CallError::invalid(format!("the limit of a descriptor: {error}")))?;
                let quota = allowed.quota().ok_or_else(nothing)?;
                Ok(Charge::new(limit.id(domain), quota, key).with_cost(cost).with_handling(self.handling))
            }
            Met::Nothing => Err(nothing()),
        }
    }
}

/// How much a descriptor is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hits {
    pub(super) count: u64,
    /// Is it given back?
    pub(super) is_refund: bool,
}

impl Hits {
    /// The descriptor's own number, 0 included, or else the call's, where 0 is nothing said.
    pub(super) fn of(request: &RateLimitRequest, descriptor: &RateLimitDescriptor) -> Self {
        let count = descriptor.hits_addend.unwrap_or_else(|| request.hits_addend.max(1).into());
        Self { count, is_refund: descriptor.is_negative_hits }
    }

    /// The cost of what costs `cost` for a single hit. Who gets something back only looks.
    fn cost(self, cost: Cost) -> Cost {
        if self.is_refund { Cost::ZERO } else { Cost::new(cost.tokens().saturating_mul(self.count)) }
    }
}

/// Room for the keys of a call.
pub(super) struct Room {
    rules: Keys,
    /// Those of the limits of limitador.
    limitador: Keys,
    /// One for each descriptor, if there are policies.
    policies: Vec<Keys>,
}

impl Room {
    pub(super) fn new(policies: &Policies, descriptors: usize) -> Self {
        let count = if policies.as_slice().is_empty() { 0 } else { descriptors };
        Self { rules: Keys::new(), limitador: Keys::new(), policies: vec![Keys::new(); count] }
    }
}

/// What a call charges, in the order of its descriptors.
#[derive(Debug, Default)]
pub(super) struct Asked<'k> {
    pub(super) charges: Vec<Charge<'k>>,
    /// What is asked under penalties beside them.
    pub(super) penalties: Vec<Charge<'k>>,
    /// Where the charges of each descriptor are; that of what it meets is the first. Those of limitador's limits, which
    /// are about the call as a whole, are among those of the first descriptor.
    pub(super) of: Vec<Range<usize>>,
    /// The descriptors that lack a part of the key of a policy that denies such requests.
    pub(super) lacking: Vec<usize>,
    /// Did a rule or a policy match?
    pub(super) is_matched: bool,
}

/// A call, and what is in force when it comes.
pub(super) struct Asking<'a> {
    pub(super) request: &'a RateLimitRequest,
    pub(super) entries: &'a Entries<'a>,
    pub(super) met: &'a [Met<'a>],
    pub(super) policies: &'a Policies,
    pub(super) limitador: Option<&'a Limits>,
    pub(super) manner: Manner,
    pub(super) asker: Peer,
    pub(super) unix_s: u64,
}

impl<'a> Asking<'a> {
    /// What it charges. The keys are built in `room`.
    ///
    /// # Errors
    /// A limit that it brings cannot be exact, or it makes more charges than one decision takes.
    pub(super) fn charges(&self, room: &'a mut Room) -> Result<Asked<'a>, CallError> {
        if self.met.iter().filter(|met| met.is_charged()).count() > CHARGES_MAX {
            return Err(too_many());
        }
        for (i, met) in self.met.iter().enumerate().filter(|(_, met)| met.is_charged()) {
            met.push_key(self.entries.of(i), &mut room.rules);
        }
        let (mut asked, mut key) = (Asked::default(), 0);
        let (mut policy_keys, mut limitador_keys) = (room.policies.iter_mut(), Some(&mut room.limitador));
        for (i, met) in self.met.iter().enumerate() {
            let (start, hits) = (asked.charges.len(), Hits::of(self.request, &self.request.descriptors[i]));
            asked.is_matched |= !matches!(met, Met::Nothing);
            if met.is_charged() {
                let cost = hits.cost(Cost::ONE);
                asked.charges.push(self.manner.charge(met, &self.request.domain, room.rules.key(key), cost)?);
                key += 1;
            }
            if let Some(keys) = policy_keys.next() {
                self.by_policies(i, hits, keys, &mut asked);
            }
            if let Some(keys) = limitador_keys.take() {
                self.by_limitador(keys, &mut asked);
            }
            asked.of.push(start..asked.charges.len());
        }
        if asked.charges.len() + asked.penalties.len() > CHARGES_MAX {
            return Err(too_many());
        }
        if !asked.lacking.is_empty() {
            asked.charges.iter_mut().for_each(|charge| charge.cost = Cost::ZERO);
        }
        Ok(asked)
    }

    /// Adds what the limits of limitador charge for the call.
    fn by_limitador(&self, keys: &'a mut Keys, asked: &mut Asked<'a>) {
        let Some(limits) = self.limitador else { return };
        let descriptors: Vec<_> = (0..self.request.descriptors.len()).map(|i| self.entries.of(i)).collect();
        let call = Call { namespace: &self.request.domain, descriptors: &descriptors };
        let cost = Cost::new(self.request.hits_addend.max(1).into());
        let charges = limits.charging(&call, cost, keys).charges;
        asked.is_matched |= !charges.is_empty();
        asked.charges.extend(charges);
    }

    /// Adds what the policies charge for a descriptor.
    fn by_policies(&self, i: usize, hits: Hits, keys: &'a mut Keys, asked: &mut Asked<'a>) {
        let described = Described {
            domain: &self.request.domain,
            entries: self.entries.of(i),
            asker: self.asker,
            unix_s: Some(self.unix_s),
        };
        match self.policies.charging(&described, keys) {
            Charging::Charged(charges) => {
                let each = charges.iter().map(|charge| charge.with_cost(hits.cost(charge.cost)));
                asked.charges.extend(each);
                asked.penalties.extend_from_slice(charges.penalties());
                asked.is_matched = true;
            }
            Charging::Free => asked.is_matched = true,
            Charging::Unmatched => {}
            Charging::Denied { .. } => {
                asked.is_matched = true;
                asked.lacking.push(i);
            }
        }
    }
}

fn too_many() -> CallError {
    let message =
        format!("the descriptors of this call make more than {CHARGES_MAX} charges, which one decision takes");
    CallError::invalid(message)
}

#[cfg(test)]
mod tests {
    use super::super::messages::DescriptorEntry;
    use super::*;

    /// A call of so many descriptors, each with so many entries of this key.
    fn call(descriptors: usize, entries: usize, key: &str) -> RateLimitRequest {
        let entry = DescriptorEntry { key: key.to_owned(), value: "v".to_owned() };
        let descriptor = RateLimitDescriptor { entries: vec![entry; entries], ..RateLimitDescriptor::default() };
        let descriptors = vec![descriptor; descriptors];
        RateLimitRequest { domain: "d".to_owned(), descriptors, ..RateLimitRequest::default() }
    }

    #[test]
    fn a_call_is_bounded_and_about_something() {
        let refused = |call: &RateLimitRequest| Entries::new(call).err().map(|error| error.message);
        for (taken, too_much, what) in [
            (call(64, 16, "k"), call(65, 1, "k"), "there are more than 64 descriptors"),
            (call(1, 1_024, "k"), call(2, 513, "k"), "the descriptors have more than 1024 entries together"),
            (call(1, 1, "k"), call(0, 0, "k"), "there is no descriptor, so there is nothing to decide on"),
            (call(2, 2, "k"), call(2, 0, "k"), "a descriptor has no entries, or one whose key is empty"),
            (call(2, 2, "k"), call(2, 2, ""), "a descriptor has no entries, or one whose key is empty"),
        ] {
            assert_eq!(refused(&taken), None);
            assert_eq!(refused(&too_much).as_deref(), Some(what));
        }
    }
}
