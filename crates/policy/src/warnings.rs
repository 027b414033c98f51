//! What an operator should know before the first request.

use std::fmt;

use crate::{CostRule, KeyPart, KeyParts, Policies, Policy};

/// Something that is allowed, and likely not what was meant. Its text says what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning<'a> {
    /// Callers can make up keys, and no limit by client holds them together.
    CallersOwnKey {
        /// The policy.
        policy: &'a str,
        /// Its key.
        key: &'a KeyParts,
    },
    /// A field of the request is to say what it costs, and nobody is believed.
    CostOfNobody {
        /// The policy.
        policy: &'a str,
        /// The field.
        field: &'a str,
    },
    /// Everybody is believed when they say whom they speak for.
    EverybodyTrusted {
        /// The field in which they say it.
        field: &'a str,
    },
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallersOwnKey { policy, key } => {
                write!(f, "policy `{policy}` is keyed by {key}: nobody verifies ")?;
                let own = key.as_slice().iter().filter(|part| part.is_callers_own());
                own.enumerate().try_for_each(|(i, part)| write!(f, "{}{part}", if i == 0 { "" } else { " and " }))?;
                f.write_str(", so whoever sends a new value gets a full bucket; put a limit by client beside it")
            }
            Self::CostOfNobody { policy, field } => write!(
                f,
                "policy `{policy}` takes the cost from {field}, but nobody is trusted, so that field is never read; \
                 name the network of the layer that sets it as trusted"
            ),
            Self::EverybodyTrusted { field } => write!(
                f,
                "everybody is trusted, so whoever writes a new address into {field} is a new client; \
                 name the networks of your own proxies instead"
            ),
        }
    }
}

impl Policies {
    /// What is worth a warning at start.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning<'_>> {
        let address = self.client();
        let trusted = Warning::EverybodyTrusted { field: address.field.name() };
        let trusted = address.trust.is_everything().then_some(trusted);
        let is_held = |policy| self.as_slice().iter().any(|other| holds_clients(other, policy));
        let own = self.as_slice().iter().filter(|policy| policy.is_enforced() && policy.key.is_callers_own());
        let own = own.filter(|policy| !is_held(policy));
        let cost = self.as_slice().iter().filter_map(|policy| match &policy.cost {
            CostRule::Header { name, .. } if address.trust.is_nothing() => {
                Some(Warning::CostOfNobody { policy: &policy.name, field: name.as_str() })
            }
            _ => None,
        });
        trusted
            .into_iter()
            .chain(own.map(|policy| Warning::CallersOwnKey { policy: &policy.name, key: &policy.key }))
            .chain(cost)
            .collect()
    }
}

/// Does the policy hold one client to something, whatever keys it makes up under the other?
fn holds_clients(policy: &Policy, other: &Policy) -> bool {
    let covers = policy.matching.is_everything() || policy.matching == other.matching;
    covers && policy.is_enforced() && policy.key.as_slice() == [KeyPart::Client]
}
