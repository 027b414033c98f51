//! One key of one policy, as an operator speaks of it: to look at it, to reset it, or to give it other limits for a
//! while.
//!
//! A key is named by its values, as in an override of the file, or by its bytes, as a report of those denied shows them:
//! some keys, such as those that stand in for a missing value, have no values that could be written.

use std::fmt;

use tidegate_core::Charge;

use crate::overrides::{Special, key_of};
use crate::policy_set::PolicySet;
use crate::{
    KeyPart, KeyText, Keys, NamedLimit, Override, OverrideError, Policies, Policy, PolicyError, Printable, together,
};

/// How a key is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKey<'v> {
    /// The value of each part, in order; none for the key `global`.
    Values(&'v [Vec<u8>]),
    /// The bytes that stores are given.
    Bytes(&'v [u8]),
}

impl NamedKey<'_> {
    /// The bytes of a key of so many plain values, as limits that were written for other services have them; of none,
    /// the key `global`. `None` if it is named by more or fewer.
    #[must_use]
    pub fn of_values(self, count: usize) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => has_parts(bytes, count.max(1)).then(|| bytes.to_vec()),
            Self::Values(values) if values.len() != count => None,
            Self::Values([]) => Some(crate::overrides::global_key()),
            Self::Values(values) => {
                let mut keys = Keys::new();
                values.iter().for_each(|value| keys.push_value(value, false));
                keys.finish();
                Some(keys.key(0).to_vec())
            }
        }
    }
}

/// One key of one policy, and what it is charged.
#[derive(Clone, Debug)]
pub struct SingleKey<'a> {
    policy: &'a Policy,
    bytes: Vec<u8>,
    claims: &'a [Charge<'static>],
    special: Option<&'a Special>,
}

impl<'a> SingleKey<'a> {
    /// Its policy.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// The bytes that stores are given.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Is nothing charged to it, since the policy lets it off?
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.special.is_some_and(|special| special.is_exempt)
    }

    /// Has it limits of its own now?
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.special.is_some_and(|special| !special.is_exempt)
    }

    /// The limits of its policy, each with the charge that a request of this key makes; `None` where it makes none.
    pub fn limits(&self) -> impl Iterator<Item = (&'a NamedLimit, Option<Charge<'_>>)> {
        self.policy.limits().iter().map(|named| {
            let claim = self.claims.iter().find(|claim| claim.limit == named.id);
            (named, claim.map(|claim| Charge { key: &self.bytes, ..*claim }))
        })
    }
}

impl Policies {
    /// What the key that is named so is charged under the policy of this name, at this time in seconds since the epoch
    /// of Unix.
    ///
    /// # Errors
    /// There is no such policy, or the key is none that it could have.
    pub fn single_key(&self, policy: &str, key: NamedKey<'_>, unix_s: u64) -> Result<SingleKey<'_>, SingleKeyError> {
        let place = self.place_of(policy)?;
        let (policy, rule) = (&self.policies[place], &self.rules[place]);
        let bytes = match key {
            NamedKey::Bytes(bytes) => checked(policy, bytes)?.to_vec(),
            NamedKey::Values([]) if policy.key.as_slice() == [KeyPart::Global] => crate::overrides::global_key(),
            NamedKey::Values(values) => key_of(&policy.key, values, &self.client)?,
        };
        let special = rule.overrides.of(&bytes, || Some(unix_s));
        let claims = special.map_or(&rule.claims, |special| &special.claims);
        Ok(SingleKey { policy, bytes, claims, special })
    }

    /// Gives one key of this policy limits of its own, in place of those that it may have by the file.
    ///
    /// # Errors
    /// There is no such policy, limit or key, the policy lets the key off, or a request could then make too many charges.
    pub fn add_override(&mut self, policy: &str, special: Override) -> Result<(), SingleKeyError> {
        let place = self.place_of(policy)?;
        let policy = &self.policies[place];
        let key = key_of(&policy.key, &special.key, &self.client)?;
        if let Some((name, _)) = special.limits.iter().find(|(name, _)| policy.limits.iter().all(|it| it.name != *name))
        {
            return Err(OverrideError::NoSuchLimit { name: name.clone() }.into());
        }
        if self.rules[place].overrides.of(&key, || None).is_some_and(|known| known.is_exempt) {
            return Err(SingleKeyError::Exempt);
        }
        let claims: Vec<_> = policy.claims_under(&special.limits).collect();
        self.make_room(place, claims.len())?;
        let (policy, client) = (&mut self.policies[place], &self.client);
        let parts = &policy.key;
        policy.overrides.retain(|known| key_of(parts, &known.key, client).as_ref() != Ok(&key));
        self.rules[place].overrides.insert(key, Special { claims, until_s: special.until_s, is_exempt: false });
        policy.overrides.push(special);
        Ok(())
    }

    /// Sees to it that the policy at `place` can make so many charges.
    fn make_room(&mut self, place: usize, charges: usize) -> Result<(), SingleKeyError> {
        let mut weights: Vec<_> = self.rules.iter().map(super::policies::Rule::weight).collect();
        if charges <= weights[place] {
            return Ok(());
        }
        weights[place] = charges;
        if let Some(group) = together::too_many(&self.policies, &weights) {
            let count = group.iter().map(|place| weights[*place]).sum();
            let policies = group.into_iter().map(|place| self.policies[place].name.clone()).collect();
            return Err(PolicyError::TooManyLimits { count, policies }.into());
        }
        self.charging = PolicySet::of(weights.len(), |place| weights[place] > 0);
        Ok(())
    }

    fn place_of(&self, policy: &str) -> Result<usize, SingleKeyError> {
        let place = self.policies.iter().position(|known| known.name == policy);
        place.ok_or_else(|| SingleKeyError::NoSuchPolicy { name: policy.to_owned() })
    }
}

/// The bytes, if they have as many parts as the policy's key.
fn checked<'b>(policy: &Policy, bytes: &'b [u8]) -> Result<&'b [u8], SingleKeyError> {
    if has_parts(bytes, policy.key.as_slice().len()) { Ok(bytes) } else { Err(SingleKeyError::NotBytes) }
}

fn has_parts(bytes: &[u8], count: usize) -> bool {
    KeyText(bytes).values().is_some_and(|values| values.len() == count)
}

/// Why there is no such key, or why it cannot have limits of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SingleKeyError {
    /// No policy has this name.
    NoSuchPolicy {
        /// The name.
        name: String,
    },
    /// The policy cannot have such a key, or no such limit.
    Key(OverrideError),
    /// The bytes are not those of a key of this policy.
    NotBytes,
    /// The policy lets the key off.
    Exempt,
    /// With it, the policies cannot stand together.
    Policies(PolicyError),
}

impl From<OverrideError> for SingleKeyError {
    fn from(error: OverrideError) -> Self {
        Self::Key(error)
    }
}

impl From<PolicyError> for SingleKeyError {
    fn from(error: PolicyError) -> Self {
        Self::Policies(error)
    }
}

impl fmt::Display for SingleKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchPolicy { name } => write!(f, "there is no policy `{}`", Printable(name.as_bytes())),
            Self::Key(error) => error.fmt(f),
            Self::NotBytes => f.write_str("the bytes are not those of a key of this policy"),
            Self::Exempt => f.write_str("the policy lets this key off, so no limit is charged to it"),
            Self::Policies(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SingleKeyError {}
