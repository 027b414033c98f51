//! All policies in order: which limits a request is charged to, and under which keys.

use std::fmt;

use tidegate_core::{CHARGES_MAX, Charge, LimitId};

use crate::{Attributes, ClientAddress, KeyPart, Keys, Policy, caller::Caller, charges::Charges};

/// The policies, and how to find the client they all speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    client: ClientAddress,
    policies: Vec<Policy>,
    /// The places of the policies that make charges. For each of them a key is built.
    owners: Vec<usize>,
    /// The charges of a request, but for their keys; beside each the place of its key among the keys.
    claims: Vec<(usize, Charge<'static>)>,
}

/// What a request is to be charged.
#[derive(Clone, Debug)]
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
        refuse_same_limits(&policies)?;
        let owners = (0..policies.len()).filter(|i| policies[*i].charging().next().is_some()).collect::<Vec<_>>();
        let keyed = owners.iter().enumerate().flat_map(|(key, i)| policies[*i].claims().map(move |claim| (key, claim)));
        let claims: Vec<_> = keyed.collect();
        match claims.len() {
            0..=CHARGES_MAX => Ok(Self { client, policies, owners, claims }),
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
        for policy in self.owners.iter().map(|i| &self.policies[*i]) {
            match caller.push_key(&policy.key, policy.on_missing, keys) {
                Err(missing) if policy.denies_missing() => return Charging::Denied { policy, missing },
                // A key that could not be built is left empty.
                Ok(()) | Err(_) => keys.finish(),
            }
        }
        let keys = &*keys;
        let keyed = self.claims.iter().map(|(key, claim)| (keys.key(*key), claim)).filter(|(key, _)| !key.is_empty());
        let charges = keyed.map(|(key, claim)| Charge { key, ..*claim });
        Charges::collect(self, charges).map_or(Charging::Free, Charging::Charged)
    }
}

fn refuse_same_limits(policies: &[Policy]) -> Result<(), PolicyError> {
    let mut seen: Vec<LimitId> = Vec::new();
    for policy in policies {
        for named in &policy.limits {
            if seen.contains(&named.id) {
                return Err(PolicyError::SameLimit { policy: policy.name.clone(), limit: named.name.clone() });
            }
            seen.push(named.id);
        }
    }
    Ok(())
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
