//! Keys with limits of their own.

use std::collections::HashMap;
use std::fmt;

use tidegate_core::{Charge, Limit};

use crate::key::Tag;
use crate::{ClientAddress, KeyPart, KeyParts, Keys, Policy, Printable, node};

/// One key, and what it is allowed instead of what others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The values of the key's parts, in their order: an address for the client, and otherwise the value itself.
    pub key: Vec<String>,
    /// Limits of the policy by name, and what stands in their place. The others stay as they are.
    pub limits: Vec<(String, Limit)>,
    /// When it ends, in seconds since the epoch of Unix: from then on the key is like any other.
    pub until_s: Option<u64>,
}

/// The keys of a policy that are charged otherwise, by their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides(HashMap<Box<[u8]>, Special>);

/// What is charged for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Special {
    pub(crate) claims: Vec<Charge<'static>>,
    pub(crate) until_s: Option<u64>,
    pub(crate) is_exempt: bool,
}

impl Overrides {
    /// Those of a policy, its exempt keys among them.
    ///
    /// # Errors
    /// A key does not fit the policy's parts or is there twice, or a limit is not there.
    pub(crate) fn new(policy: &Policy, client: &ClientAddress) -> Result<Self, OverrideError> {
        let mut all = HashMap::new();
        let exempt = policy
            .exempt
            .keys
            .iter()
            .map(|values| (values, Special { claims: Vec::new(), until_s: None, is_exempt: true }));
        let others = policy.overrides.iter().map(|special| {
            let claims = policy.claims_under(&special.limits).collect();
            (&special.key, Special { claims, until_s: special.until_s, is_exempt: false })
        });
        for (values, special) in exempt.chain(others) {
            let key = key_of(&policy.key, values, client)?;
            if all.insert(key.into(), special).is_some() {
                return Err(OverrideError::Twice { key: values.join(", ") });
            }
        }
        for (name, _) in policy.overrides.iter().flat_map(|special| &special.limits) {
            if policy.limits.iter().all(|known| known.name != *name) {
                return Err(OverrideError::NoSuchLimit { name: name.clone() });
            }
        }
        Ok(Self(all))
    }

    /// Adds a key, in place of what was special about it.
    pub(crate) fn insert(&mut self, key: Vec<u8>, special: Special) {
        self.0.insert(key.into(), special);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Special> {
        self.0.values()
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = &Charge<'static>> {
        self.values().flat_map(|special| &special.claims)
    }

    pub(crate) fn claims_mut(&mut self) -> impl Iterator<Item = &mut Charge<'static>> {
        self.0.values_mut().flat_map(|special| &mut special.claims)
    }

    /// What is special about this key, at a time that is asked for only if it matters. At a time that is not known,
    /// what ends some day has ended.
    pub(crate) fn of(&self, key: &[u8], unix_s: impl FnOnce() -> Option<u64>) -> Option<&Special> {
        if self.0.is_empty() {
            return None;
        }
        let special = self.0.get(key)?;
        let holds = special.until_s.is_none_or(|until_s| unix_s().is_some_and(|now_s| now_s < until_s));
        holds.then_some(special)
    }
}

/// The bytes of the key whose parts have these values, as a request's would be.
///
/// # Errors
/// There are more or fewer values than parts, the key has no value, or an address is none.
pub(crate) fn key_of<V: AsRef<[u8]>>(
    parts: &KeyParts,
    values: &[V],
    client: &ClientAddress,
) -> Result<Vec<u8>, OverrideError> {
    let parts = parts.as_slice();
    if parts == [KeyPart::Global] {
        return Err(OverrideError::Global);
    }
    if parts.len() != values.len() {
        return Err(OverrideError::Count { parts: parts.len(), values: values.len() });
    }
    let mut keys = Keys::new();
    for (part, value) in parts.iter().zip(values) {
        let value = value.as_ref();
        match part {
            KeyPart::Client if value == b"unix" => keys.push_client(Tag::Client, crate::Client::Unix, &client.grouping),
            KeyPart::Client => {
                let ip = node::address(value);
                let ip = ip.ok_or_else(|| OverrideError::Address(String::from_utf8_lossy(value).into_owned()))?;
                keys.push_client(Tag::Client, crate::Client::Ip(ip), &client.grouping);
            }
            _ => keys.push_value(value, part.is_secret()),
        }
    }
    keys.finish();
    Ok(keys.key(0).to_vec())
}

/// The bytes of the key `global`.
pub(crate) fn global_key() -> Vec<u8> {
    let mut keys = Keys::new();
    keys.push(Tag::Global, &[]);
    keys.finish();
    keys.key(0).to_vec()
}

/// Why a key cannot have limits of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// All share one bucket, so there are no keys.
    Global,
    /// More or fewer values than the key has parts.
    Count {
        /// The parts.
        parts: usize,
        /// The values.
        values: usize,
    },
    /// The client is not an address.
    Address(String),
    /// The key was there already.
    Twice {
        /// Its values.
        key: String,
    },
    /// The policy has no limit of that name.
    NoSuchLimit {
        /// The name.
        name: String,
    },
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("the policy's key is `global`, so there is no key to single out"),
            Self::Count { parts, values } => {
                write!(f, "the policy's key has {parts} parts, and here are {values} values; write one for each")
            }
            Self::Address(text) => {
                let text = Printable(text.as_bytes());
                write!(f, "`{text}` is no address; the key's part `client` is one, such as `203.0.113.7`")
            }
            Self::Twice { key } => {
                write!(f, "the key `{}` is there twice; only one of them can count", Printable(key.as_bytes()))
            }
            Self::NoSuchLimit { name } => {
                write!(f, "the policy has no limit `{}`", Printable(name.as_bytes()))
            }
        }
    }
}

impl std::error::Error for OverrideError {}
