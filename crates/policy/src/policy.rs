//! A policy: whose requests are counted together, and what they are allowed.

use tidegate_core::{Charge, Cost, Handling, Limit, LimitId, Mode};

use crate::{KeyParts, OnMissing};

/// A limit and its name, which is unique within its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLimit {
    /// What people call it: in header fields, messages and metrics.
    pub name: String,
    /// What stores call it: a hash of both names.
    pub id: LimitId,
    /// What it allows.
    pub limit: Limit,
    /// Whether a denial counts.
    pub mode: Mode,
    /// What it wants of its store, beyond a decision.
    pub handling: Handling,
}

/// Limits that are charged to the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) key: KeyParts,
    pub(crate) on_missing: OnMissing,
    pub(crate) cost: Cost,
    pub(crate) limits: Vec<NamedLimit>,
}

impl Policy {
    /// A policy without limits, under which a request costs 1.
    #[must_use]
    pub fn new(name: &str, key: KeyParts) -> Self {
        Self { name: name.to_owned(), key, on_missing: OnMissing::default(), cost: Cost::ONE, limits: Vec::new() }
    }

    /// With one more limit.
    #[must_use]
    pub fn with_limit(mut self, name: &str, limit: Limit, mode: Mode) -> Self {
        let id = LimitId::of(&self.name, name);
        self.limits.push(NamedLimit { name: name.to_owned(), id, limit, mode, handling: Handling::default() });
        self
    }

    /// With limits that have no names of their own: they are called `limit-1`, `limit-2`, in their order.
    #[must_use]
    pub fn with_limits(self, limits: impl IntoIterator<Item = Limit>, mode: Mode) -> Self {
        let first = self.limits.len() + 1;
        (first..).zip(limits).fold(self, |policy, (i, limit)| policy.with_limit(&format!("limit-{i}"), limit, mode))
    }

    /// With another answer to a request that lacks a part of the key.
    #[must_use]
    pub fn with_on_missing(self, on_missing: OnMissing) -> Self {
        Self { on_missing, ..self }
    }

    /// With another cost of a request.
    #[must_use]
    pub fn with_cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// With another handling, by their store, of the limits that it has so far.
    #[must_use]
    pub fn with_handling(mut self, handling: Handling) -> Self {
        self.limits.iter_mut().for_each(|named| named.handling = handling);
        self
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whose bucket is charged.
    #[must_use]
    pub fn key(&self) -> &KeyParts {
        &self.key
    }

    /// What happens to a request that lacks a part of the key.
    #[must_use]
    pub fn on_missing(&self) -> OnMissing {
        self.on_missing
    }

    /// What a request costs.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The limits, in order.
    #[must_use]
    pub fn limits(&self) -> &[NamedLimit] {
        &self.limits
    }

    /// The limits that make a charge: all but the unlimited ones.
    pub(crate) fn charging(&self) -> impl Iterator<Item = &NamedLimit> {
        self.limits.iter().filter(|named| named.limit != Limit::Unlimited)
    }

    /// The charges of a request, but for the key.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Charge<'static>> {
        self.limits.iter().filter_map(|named| {
            let &NamedLimit { id: limit, mode, handling, .. } = named;
            Some(Charge { limit, quota: named.limit.quota()?, key: &[], cost: self.cost, mode, handling })
        })
    }

    /// Can a denial of one of the limits count?
    pub(crate) fn is_enforced(&self) -> bool {
        self.charging().any(|named| named.mode == Mode::Enforce)
    }

    /// Is a request without its key denied? Limits in shadow never deny.
    pub(crate) fn denies_missing(&self) -> bool {
        self.on_missing == OnMissing::Deny && self.is_enforced()
    }
}
