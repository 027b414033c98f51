//! All policies in order: which limits a request is charged to, and under which keys.

use tidegate_core::{CHARGES_MAX, Charge, LimitId};

use crate::caller::Caller;
use crate::charges::Charges;
use crate::exemptions::Exemptions;
use crate::index::Index;
use crate::overrides::Overrides;
use crate::penalty_buckets::{PenaltyPart, penalty_places};
use crate::policy_set::{POLICIES_MAX, PolicySet};
use crate::{Attributes, ClientAddress, Exempt, KeyPart, Keys, Place, Policy, PolicyError, Trust, together};

/// The policies, and how to find the client they all speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    pub(crate) client: ClientAddress,
    pub(crate) exempt: Exempt,
    pub(crate) policies: Vec<Policy>,
    pub(crate) index: Index,
    pub(crate) exemptions: Exemptions,
    /// What each policy charges, at its place.
    pub(crate) rules: Vec<Rule>,
    finals: PolicySet,
    /// Does every policy apply to every request?
    is_everything: bool,
    /// The policies that can make a charge. For each of them that applies a key is built.
    pub(crate) charging: PolicySet,
    /// Where each limit stands: its policy, and its place there. In the order of the ids.
    places: Vec<(LimitId, usize, usize)>,
    pub(crate) penalty_places: Vec<(LimitId, usize, PenaltyPart)>,
    pub(crate) has_outcomes: bool,
}

/// What one policy charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The charges of a request, but for the key.
    pub(crate) claims: Vec<Charge<'static>>,
    pub(crate) overrides: Overrides,
    /// What it is asked under the penalty, if it is charged at all.
    pub(crate) penalty: Vec<Charge<'static>>,
    /// What an offence takes under it.
    pub(crate) offence: Option<Charge<'static>>,
    /// Are the costs of the claims what they are for every request?
    is_cost_constant: bool,
}

/// What a request is to be charged.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack while one request is decided; a box would allocate"
)]
pub enum Charging<'a> {
    /// These limits, all or none.
    Charged(Charges<'a>),
    /// Nothing: what matched is unlimited, lets the request off, or skips requests without its key. The request passes.
    Free,
    /// Nothing: no policy matched. The request passes, and is counted as unmatched.
    Unmatched,
    /// Nothing: it lacks a part of the key of a policy that denies such requests.
    Denied {
        /// That policy.
        policy: &'a Policy,
        /// What it lacks.
        missing: &'a KeyPart,
    },
}

impl Charging<'_> {
    /// Did a policy match the request?
    #[must_use]
    pub const fn is_matched(&self) -> bool {
        !matches!(self, Self::Unmatched)
    }
}

impl Policies {
    /// These policies, in this order.
    ///
    /// # Errors
    /// Two limits are the same by their names, one request can make more than [`CHARGES_MAX`] charges, there are more
    /// than [`POLICIES_MAX`] policies, or an override or an exempt key does not fit its policy.
    pub fn new(client: ClientAddress, policies: Vec<Policy>) -> Result<Self, PolicyError> {
        Self::with_exempt(client, Exempt::default(), policies)
    }

    /// These policies, in this order, which all let these requests off.
    ///
    /// # Errors
    /// As [`Policies::new`]; and only a policy can let keys off.
    pub fn with_exempt(client: ClientAddress, exempt: Exempt, policies: Vec<Policy>) -> Result<Self, PolicyError> {
        if policies.len() > POLICIES_MAX {
            return Err(PolicyError::TooManyPolicies { count: policies.len() });
        }
        if !exempt.keys.is_empty() {
            return Err(PolicyError::KeyWithoutPolicy);
        }
        let places = places(&policies)?;
        let rules = policies.iter().map(|policy| Rule::new(policy, &client)).collect::<Result<Vec<_>, _>>()?;
        let weights: Vec<_> = rules.iter().map(Rule::weight).collect();
        if let Some(group) = together::too_many(&policies, &weights) {
            let count = group.iter().map(|place| weights[*place]).sum();
            let policies = group.into_iter().map(|place| policies[place].name.clone()).collect();
            return Err(PolicyError::TooManyLimits { count, policies });
        }
        let index = Index::new(&policies);
        Ok(Self {
            is_everything: index.is_everything() && policies.iter().all(|policy| !policy.is_final),
            penalty_places: penalty_places(&policies),
            has_outcomes: policies.iter().any(|policy| policy.penalty.is_some() || policy.settling().is_some()),
            index,
            exemptions: Exemptions::new(&exempt, &policies),
            finals: PolicySet::of(policies.len(), |place| policies[place].is_final),
            charging: PolicySet::of(policies.len(), |place| weights[place] > 0),
            client,
            exempt,
            policies,
            rules,
            places,
        })
    }

    /// How the client is found.
    #[must_use]
    pub fn client(&self) -> &ClientAddress {
        &self.client
    }

    /// The same, with this in place of who was trusted. What a key is does not depend on it.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.client.trust = trust;
        self
    }

    /// Who is let off by all policies.
    #[must_use]
    pub fn exempt(&self) -> &Exempt {
        &self.exempt
    }

    /// The policies, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Policy] {
        &self.policies
    }

    /// The limit of this identity, and its policy; `None` if there is none.
    #[must_use]
    pub fn place(&self, id: LimitId) -> Option<Place<'_>> {
        let at = self.places.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
        let (_, policy, limit) = self.places[at];
        let policy = self.policies.get(policy)?;
        Some(Place { policy, limit: policy.limits.get(limit)? })
    }

    /// What a request is to be charged. All policies that match it apply, up to the first that is final.
    ///
    /// The keys are built in `keys`, whose earlier contents are dropped, and the charges borrow them. Nothing is
    /// allocated as long as keys are short, charges few, and the path is in its normal form.
    pub fn charging<'a, A>(&'a self, attributes: &A, keys: &'a mut Keys) -> Charging<'a>
    where
        A: Attributes + ?Sized,
    {
        keys.clear();
        let mut caller = Caller::new(attributes, &self.client);
        let mut left = self.charging;
        if !self.is_everything {
            let applying = self.applying(&mut caller);
            if applying.is_empty() {
                return Charging::Unmatched;
            }
            left.keep(&applying);
        } else if self.policies.is_empty() {
            return Charging::Unmatched;
        }
        if self.exemptions.exempts_all(&mut caller).is_some() {
            return Charging::Free;
        }
        self.exemptions.apply(&mut caller, &mut left);
        // The policies whose keys were built, in the order of the keys; never more than charges.
        let (mut owners, mut count) = ([0; CHARGES_MAX], 0);
        for place in left.iter() {
            let policy = &self.policies[place];
            if self.exemptions.by_address(&mut caller, place, policy) {
                continue;
            }
            match caller.push_key(&policy.key, policy.on_missing, keys) {
                Err(missing) if policy.denies_missing() => return Charging::Denied { policy, missing },
                Err(_) => {}
                Ok(()) => {
                    keys.finish();
                    owners[count] = place;
                    count += 1;
                }
            }
        }
        let keys = &*keys;
        let mut charges = Charges::none(self);
        for (i, place) in owners[..count].iter().enumerate() {
            let (rule, key) = (&self.rules[*place], keys.key(i));
            let special = rule.overrides.of(key, || attributes.unix_s());
            let claims = special.map_or(&rule.claims, |special| &special.claims);
            if !claims.is_empty() {
                rule.penalty.iter().for_each(|claim| charges.push_penalty(Charge { key, ..*claim }));
            }
            let cost = match (attributes.cost(), rule.is_cost_constant) {
                (None, false) => Some(self.policies[*place].cost.at_request(attributes, &self.client)),
                (cost, _) => cost,
            };
            match cost {
                None => claims.iter().for_each(|claim| charges.push(Charge { key, ..*claim })),
                Some(cost) => claims.iter().for_each(|claim| charges.push(Charge { key, cost, ..*claim })),
            }
        }
        if charges.is_empty() { Charging::Free } else { Charging::Charged(charges) }
    }

    /// The policies that apply to a request, before exemptions.
    pub(crate) fn applying<A: Attributes + ?Sized>(&self, caller: &mut Caller<'_, A>) -> PolicySet {
        let mut matching = self.index.of(caller.attributes(), || caller.path());
        if let Some(last) = matching.first_common(&self.finals) {
            matching.end_at(last);
        }
        matching
    }
}

impl Rule {
    fn new(policy: &Policy, client: &ClientAddress) -> Result<Self, PolicyError> {
        let headers = &policy.matching.headers;
        let twice = (1..headers.len()).find(|i| headers[..*i].iter().any(|known| known.name == headers[*i].name));
        if let Some(i) = twice {
            return Err(PolicyError::SameHeader { policy: policy.name.clone(), header: headers[i].name.clone() });
        }
        let overrides = Overrides::new(policy, client);
        let overrides = overrides.map_err(|error| PolicyError::Override { policy: policy.name.clone(), error })?;
        let is_cost_constant = !matches!(policy.cost, crate::CostRule::Header { .. });
        let (claims, penalty) = (policy.claims().collect(), policy.penalty_claims());
        let offence = policy.offence(&[]).map(|charges| charges.offence);
        Ok(Self { claims, overrides, penalty, offence, is_cost_constant })
    }

    /// The most charges of one request.
    pub(crate) fn weight(&self) -> usize {
        let special = self.overrides.values().map(|special| special.claims.len());
        match special.chain([self.claims.len()]).max() {
            None | Some(0) => 0,
            Some(limits) => limits + self.penalty.len(),
        }
    }
}

fn places(policies: &[Policy]) -> Result<Vec<(LimitId, usize, usize)>, PolicyError> {
    let limits = policies.iter().enumerate().flat_map(|(place, policy)| {
        policy.limits.iter().enumerate().map(move |(limit, named)| (named.id, place, limit))
    });
    let mut places: Vec<_> = limits.collect();
    // By names, whatever the keys: metrics and header fields tell limits apart by their names.
    let names = |&(_, policy, limit): &(LimitId, usize, usize)| {
        let policy: &Policy = &policies[policy];
        (policy.name.as_str(), policy.limits[limit].name.as_str())
    };
    places.sort_unstable_by_key(names);
    if let Some(pair) = places.windows(2).find(|pair| names(&pair[0]) == names(&pair[1])) {
        let (policy, limit) = names(&pair[1]);
        return Err(PolicyError::SameLimit { policy: policy.to_owned(), limit: limit.to_owned() });
    }
    places.sort_unstable();
    Ok(places)
}
