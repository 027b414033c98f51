//! What every policy says of one request, and why: the answer of `tidegate check`.
//!
//! It asks each policy by itself, where `Policies::charging` asks all of them at once; the tests hold both together.

use tidegate_core::{Charge, LimitId};

use crate::caller::Caller;
use crate::{Attributes, Client, Exemption, KeyPart, Keys, Mismatch, OnMissing, Policies, Policy, normal_path};

/// One request under all policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered<'a> {
    /// Its client.
    pub client: Client,
    /// Its path in the normal form.
    pub path: String,
    /// Why all policies let it off, if they do.
    pub exemption: Option<Exemption>,
    /// What each policy says, in order.
    pub policies: Vec<(&'a Policy, Say<'a>)>,
}

/// What one policy says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Say<'a> {
    /// It is not about this request.
    Mismatch(Mismatch<'a>),
    /// This policy comes earlier, matches, and is final.
    BehindFinal(&'a Policy),
    /// It lets the request off.
    Exempt(Exemption),
    /// The request lacks this part of the key.
    Missing {
        /// The part.
        part: &'a KeyPart,
        /// Is the request denied for it?
        is_denied: bool,
    },
    /// It charges this key.
    Charges(Charged),
}

/// The key that a policy charges, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The bytes of the key.
    pub key: Vec<u8>,
    /// Has the key limits of its own?
    pub is_override: bool,
    /// The charges, each with its limit; none if the key is unlimited.
    pub charges: Vec<(LimitId, Charge<'static>)>,
}

impl Policies {
    /// What each policy says of a request.
    pub fn consider<A: Attributes + ?Sized>(&self, request: &A) -> Considered<'_> {
        let mut caller = Caller::new(request, self.client());
        let (client, path) = (caller.client(), normal_path(request.path()).into_owned());
        let exemption = self.exemptions.exempts_all(&mut caller);
        let mut last = None;
        let mut policies = Vec::new();
        for (place, policy) in self.as_slice().iter().enumerate() {
            let say = match (last, policy.matching().fits(request, &path)) {
                (Some(last), _) => Say::BehindFinal(last),
                (None, Err(mismatch)) => Say::Mismatch(mismatch),
                (None, Ok(())) => {
                    last = policy.is_final().then_some(policy);
                    self.say(&mut caller, place, policy)
                }
            };
            policies.push((policy, say));
        }
        Considered { client, path, exemption, policies }
    }

    fn say<'a, A>(&'a self, caller: &mut Caller<'_, A>, place: usize, policy: &'a Policy) -> Say<'a>
    where
        A: Attributes + ?Sized,
    {
        if let Some(exemption) = self.exemptions.why(caller, place, policy) {
            return Say::Exempt(exemption);
        }
        let mut keys = Keys::new();
        if let Err(part) = caller.push_key(&policy.key, policy.on_missing, &mut keys) {
            return Say::Missing { part, is_denied: policy.on_missing == OnMissing::Deny && policy.denies_missing() };
        }
        keys.finish();
        let (rule, request) = (&self.rules[place], caller.attributes());
        let special = rule.overrides.of(keys.key(0), || request.unix_s());
        if special.is_some_and(|special| special.is_exempt) {
            return Say::Exempt(Exemption::Key);
        }
        let claims = special.map_or(&rule.claims, |special| &special.claims);
        let cost = policy.cost.at_request(request, self.client());
        let charges = claims.iter().map(|claim| (claim.limit, Charge { cost, ..*claim })).collect();
        Say::Charges(Charged { key: keys.key(0).to_vec(), is_override: special.is_some(), charges })
    }
}
