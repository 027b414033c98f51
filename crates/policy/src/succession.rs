//! Policies that take the place of others while requests come in.
//!
//! A limit is the same one if the names of its policy and its own are the same; what its keys owe stays. It starts
//! fresh if it is kept by other parts of a request, or by another algorithm, since what was owed means nothing there.
//! A store carries over what is owed when it sees the key again, and wants to know since when the quota is another.

use std::fmt;

use tidegate_core::{Charge, Limit, Time};

use crate::{KeyParts, Policies, Policy};

/// A limit that goes on under its names, and knows nothing of what its keys owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The policy's name.
    pub policy: String,
    /// The limit's name.
    pub limit: String,
    /// What is another now.
    pub because: FreshBecause,
}

/// Why a limit starts fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreshBecause {
    /// Its buckets are kept by other parts of a request.
    Key {
        /// The parts before.
        before: KeyParts,
        /// The parts now.
        now: KeyParts,
    },
    /// Another algorithm enforces it.
    Algorithm,
}

impl fmt::Display for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit `{}` of policy `{}` starts fresh: ", self.limit, self.policy)?;
        match &self.because {
            FreshBecause::Key { before, now } => write!(f, "its key was {before}, and is {now}"),
            FreshBecause::Algorithm => f.write_str("another algorithm enforces it"),
        }
    }
}

impl Policies {
    /// These policies in place of `old` ones, from `now` on, on the clock of the store.
    #[must_use]
    pub fn in_place_of(mut self, old: &Self, now: Time) -> Self {
        for (policy, rule) in self.policies.iter_mut().zip(&mut self.rules) {
            let specials = policy.overrides.clone();
            for named in &mut policy.limits {
                let Some(before) = old.place(named.id) else { continue };
                let is_same = before.limit.limit == named.limit && before.policy.overrides == specials;
                let since = if is_same { before.limit.handling.in_force_since } else { Some(now) };
                named.handling.in_force_since = since;
                let claims = rule.claims.iter_mut().chain(rule.overrides.claims_mut());
                claims.filter(|claim| claim.limit == named.id).for_each(|claim| set_since(claim, since));
            }
        }
        self
    }

    /// These policies from `now` on, on the clock of the store, in place of some that nobody remembers: what the keys of
    /// a store owe that was written before is carried over as it stood then.
    #[must_use]
    pub fn in_force_from(mut self, now: Time) -> Self {
        for (policy, rule) in self.policies.iter_mut().zip(&mut self.rules) {
            policy.limits.iter_mut().for_each(|named| named.handling.in_force_since = Some(now));
            let claims = rule.claims.iter_mut().chain(rule.overrides.claims_mut());
            claims.for_each(|claim| set_since(claim, Some(now)));
        }
        self
    }

    /// The limits that were there in `old`, and start fresh.
    #[must_use]
    pub fn fresh_after(&self, old: &Self) -> Vec<Fresh> {
        let mut all = Vec::new();
        for policy in &self.policies {
            let Some(before) = old.policies.iter().find(|known| known.name == policy.name) else { continue };
            for named in &policy.limits {
                let known = before.limits.iter().find(|known| known.name == named.name);
                let because = known.and_then(|known| because((before, &known.limit), (policy, &named.limit)));
                let (policy, limit) = (policy.name.clone(), named.name.clone());
                all.extend(because.map(|because| Fresh { policy, limit, because }));
            }
        }
        all
    }

    /// What each policy charges under each of its quotas, those of single keys and of penalties included, but for
    /// the keys.
    pub fn claims(&self) -> impl Iterator<Item = (&Policy, &Charge<'static>)> {
        let rules = self.policies.iter().zip(&self.rules);
        rules.flat_map(|(policy, rule)| {
            let all = rule.claims.iter().chain(rule.overrides.claims()).chain(&rule.penalty).chain(&rule.offence);
            all.map(move |it| (policy, it))
        })
    }
}

fn set_since(claim: &mut Charge<'_>, since: Option<Time>) {
    claim.handling.in_force_since = since;
}

fn because((before, old): (&Policy, &Limit), (now, new): (&Policy, &Limit)) -> Option<FreshBecause> {
    if before.key != now.key {
        return Some(FreshBecause::Key { before: before.key.clone(), now: now.key.clone() });
    }
    let (old, new) = (old.quota()?, new.quota()?);
    (old.algorithm() != new.algorithm()).then_some(FreshBecause::Algorithm)
}
