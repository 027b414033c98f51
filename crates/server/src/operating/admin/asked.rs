//! Which buckets a query is about: those of a key of a policy, or that of a key of a limit that was written for another
//! service.
//!
//! The limits of a policy share its key. Of imported limits each has keys of its own, so one of them is named too.

use http::StatusCode;
use tidegate::policy::{NamedLimit, Policies, Policy};
use tidegate::{Charge, Handling, Quota};
use tidegate_policy::Printable;

use super::query::KeyQuery;
use super::refusal::Refusal;
use crate::imported::imports::Imported;
use crate::imported::limit::ImportedLimit;

/// How many names a message lists.
const NAMES_LISTED_MAX: usize = 8;

/// A bucket of a key: the limit, and the charge of one request on it.
pub(super) struct Bucket {
    pub(super) limit: NamedLimit,
    /// The quota and how it is handled; `None` if the key makes no charge there.
    pub(super) claim: Option<(Quota, Handling)>,
}

/// A key, and its buckets under what was in force when it was asked about.
pub(super) struct Asked {
    /// What its policy is called.
    pub(super) name: String,
    /// The policy; `None` if the limit was written for another service.
    pub(super) policy: Option<Policy>,
    pub(super) bytes: Vec<u8>,
    pub(super) is_exempt: bool,
    pub(super) is_override: bool,
    pub(super) buckets: Vec<Bucket>,
    /// Were all limits of its policy asked about, and not one by its name?
    pub(super) is_whole: bool,
}

impl Asked {
    /// The key of a query, and its buckets: all, or that of the limit that is named.
    pub(super) fn new(
        policies: &Policies,
        imported: &Imported,
        query: &KeyQuery,
        unix_s: u64,
    ) -> Result<Self, Refusal> {
        match is_imported(policies, imported, query) {
            true => Self::of_imported(imported, query),
            false => Self::of_policy(policies, query, unix_s),
        }
    }

    fn of_policy(policies: &Policies, query: &KeyQuery, unix_s: u64) -> Result<Self, Refusal> {
        let key = policies.single_key(&query.policy, query.key(), unix_s).map_err(Refusal::of_key)?;
        let bucket = |(limit, charge): (&NamedLimit, Option<Charge<'_>>)| Bucket {
            limit: limit.clone(),
            claim: charge.map(|charge| (charge.quota, charge.handling)),
        };
        let mut buckets: Vec<_> = key.limits().map(bucket).collect();
        if let Some(name) = &query.limit {
            buckets.retain(|bucket| bucket.limit.name == *name);
            if buckets.is_empty() {
                let name = Printable(name.as_bytes());
                let detail = format!("policy `{}` has no limit `{name}`", query.policy);
                return Err(Refusal::new(StatusCode::NOT_FOUND, detail));
            }
        }
        Ok(Self {
            name: query.policy.clone(),
            policy: Some(key.policy().clone()),
            bytes: key.bytes().to_vec(),
            is_exempt: key.is_exempt(),
            is_override: key.is_override(),
            buckets,
            is_whole: query.limit.is_none(),
        })
    }

    fn of_imported(imported: &Imported, query: &KeyQuery) -> Result<Self, Refusal> {
        let limits = named(imported, query)?;
        // Two rules can have one name, such as `a_b` of a key `a_b`, and of a value `b` of a key `a`.
        let keys = limits.iter().filter_map(|limit| Some((limit, limit.key(query.key())?)));
        let (mut bytes, mut buckets) = (None, Vec::new());
        for (limit, key) in keys {
            bytes = Some(key);
            let claim = limit.named.limit.quota().map(|quota| (quota, limit.named.handling));
            buckets.push(Bucket { limit: limit.named.clone(), claim });
        }
        let bytes = bytes.ok_or_else(|| {
            let how = limits.first().map(|limit| limit.key_in_words()).unwrap_or_default();
            Refusal::bad(format!("`{}`: {how}", limits.first().map_or("", |limit| &limit.named.name)))
        })?;
        let name = query.policy.clone();
        Ok(Self { name, policy: None, bytes, is_exempt: false, is_override: false, buckets, is_whole: false })
    }
}

/// Is a query about what was written for another service? Policies come first, should one be called as a domain is.
pub(super) fn is_imported(policies: &Policies, imported: &Imported, query: &KeyQuery) -> bool {
    let is_named = |limit: &NamedLimit| query.limit.as_ref().is_none_or(|name| limit.name == *name);
    let policy = policies.as_slice().iter().find(|policy| policy.name() == query.policy);
    match policy {
        Some(policy) if policy.limits().iter().any(is_named) => false,
        Some(_) => imported.of_policy(&query.policy).any(|limit| is_named(&limit.named)),
        None => imported.of_policy(&query.policy).next().is_some(),
    }
}

/// The limits of the name in a query; without one, the only one that there is.
fn named<'a>(imported: &'a Imported, query: &'a KeyQuery) -> Result<Vec<&'a ImportedLimit>, Refusal> {
    let of_policy = || imported.of_policy(&query.policy);
    let all = |limit: &&ImportedLimit| query.limit.as_ref().is_none_or(|name| limit.named.name == *name);
    let found: Vec<_> = of_policy().filter(all).collect();
    match &query.limit {
        None if found.len() > 1 => Err(Refusal::bad(format!(
            "the limits of `{}` have keys of their own; add `limit=NAME`: {}",
            query.policy,
            names(of_policy())
        ))),
        Some(name) if found.is_empty() => {
            let name = Printable(name.as_bytes());
            let detail = format!("`{}` has no limit `{name}`; there are {}", query.policy, names(of_policy()));
            Err(Refusal::new(StatusCode::NOT_FOUND, detail))
        }
        _ => Ok(found),
    }
}

fn names<'a>(limits: impl Iterator<Item = &'a ImportedLimit>) -> String {
    let mut names: Vec<_> = limits.take(NAMES_LISTED_MAX + 1).map(|limit| format!("`{}`", limit.named.name)).collect();
    if names.len() > NAMES_LISTED_MAX {
        names[NAMES_LISTED_MAX] = "others, which /v1/policies lists".to_owned();
    }
    names.join(", ")
}
