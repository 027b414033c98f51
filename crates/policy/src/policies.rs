//! All policies in order: which limits a request is charged to, and under which keys.

use std::fmt;

use tidegate_core::{CHARGES_MAX, Charge, LimitId};

use crate::{
    Attributes, ClientAddress, KeyPart, Keys, Policy,
    caller::Caller,
    charges::{Charges, Place},
};

/// The policies, and how to find the client they all speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    client: ClientAddress,
    policies: Vec<Policy>,
}

/// What a request is to be charged.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and stays on the stack")]
pub enum Charging<'a> {
    /// These limits, all or none.
    Charged(Charges<'a>),
    /// Nothing: what matched is unlimited, or skips requests without its key. The request passes.
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
    /// Two limits are the same by their names, or one request can make more than [`CHARGES_MAX`] charges.
    pub fn new(client: ClientAddress, policies: Vec<Policy>) -> Result<Self, PolicyError> {
        let mut seen: Vec<LimitId> = Vec::new();
        for (policy, named) in policies.iter().flat_map(|policy| policy.limits.iter().map(move |named| (policy, named)))
        {
            if seen.contains(&named.id) {
                return Err(PolicyError::SameLimit { policy: policy.name.clone(), limit: named.name.clone() });
            }
            seen.push(named.id);
        }
        match policies.iter().flat_map(Policy::charging).count() {
            0..=CHARGES_MAX => Ok(Self { client, policies }),
            count => Err(PolicyError::TooManyLimits { count }),
        }
    }

    /// How the client is found.
    #[must_use]
    pub fn client(&self) -> &ClientAddress {
        &self.client
    }

    /// The policies, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Policy] {
        &self.policies
    }

    /// What a request is to be charged. All policies that match it apply; at present each matches every request.
    ///
    /// The keys are built in `keys`, whose earlier contents are dropped, and the charges borrow them. Nothing is
    /// allocated as long as keys are short and charges few.
    pub fn charging<'a, A>(&'a self, attributes: &A, keys: &'a mut Keys) -> Charging<'a>
    where
        A: Attributes + ?Sized,
    {
        if self.policies.is_empty() {
            return Charging::Unmatched;
        }
        keys.clear();
        let mut caller = Caller::new(attributes, &self.client);
        // Which policy each key belongs to: keys are built first, since the charges borrow all of them.
        let mut owners = [0; CHARGES_MAX];
        for (i, policy) in self.policies.iter().enumerate().filter(|(_, policy)| policy.charging().next().is_some()) {
            match caller.build(&policy.key, policy.on_missing, keys) {
                Ok(key) => owners[key] = i,
                Err(missing) if policy.denies_missing() => return Charging::Denied { policy, missing },
                Err(_) => {}
            }
        }
        self.charges(&*keys, owners)
    }

    fn charges<'a>(&'a self, keys: &'a Keys, owners: [usize; CHARGES_MAX]) -> Charging<'a> {
        let mut charges = Charges::new();
        for (key, policy) in keys.iter().zip(owners).map(|(key, i)| (key, &self.policies[i])) {
            for named in policy.charging() {
                let Some(quota) = named.limit.quota() else { continue };
                let (limit, mode, at_bound) = (named.id, named.mode, named.at_bound);
                let charge = Charge { limit, quota, key, cost: policy.cost, mode, at_bound };
                charges.push(charge, Place { policy, limit: named });
            }
        }
        if charges.is_empty() { Charging::Free } else { Charging::Charged(charges) }
    }
}

/// Policies that cannot stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A limit has the names of an earlier one, so both would draw on one bucket.
    SameLimit {
        /// The policy's name.
        policy: String,
        /// The limit's name.
        limit: String,
    },
    /// One request could make more than [`CHARGES_MAX`] charges.
    TooManyLimits {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameLimit { policy, limit } => {
                write!(f, "limit `{limit}` of policy `{policy}` is there twice; give each limit a name of its own")
            }
            Self::TooManyLimits { count } => {
                write!(f, "{count} limits apply to one request; the maximum is {CHARGES_MAX}")
            }
        }
    }
}

impl std::error::Error for PolicyError {}
