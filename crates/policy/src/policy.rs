//! A policy: whose requests are counted together, and what they are allowed.

use tidegate_core::{Charge, Handling, Limit, LimitId, Mode};

use crate::{CostRule, Counting, Exempt, KeyParts, Match, OnMissing, Override, Penalty, Settling};

/// A limit and its name, which is unique within its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLimit {
    /// What people call it: in header fields, messages and metrics.
    pub name: String,
    /// What stores call it: a hash of both names, and of the parts of the key if that is not the client.
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
    pub(crate) matching: Match,
    pub(crate) is_final: bool,
    pub(crate) exempt: Exempt,
    pub(crate) key: KeyParts,
    pub(crate) on_missing: OnMissing,
    pub(crate) cost: CostRule,
    pub(crate) counting: Counting,
    pub(crate) limits: Vec<NamedLimit>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) penalty: Option<Penalty>,
}

impl Policy {
    /// A policy about every request, without limits, under which a request costs 1.
    #[must_use]
    pub fn new(name: &str, key: KeyParts) -> Self {
        Self {
            name: name.to_owned(),
            matching: Match::default(),
            is_final: false,
            exempt: Exempt::default(),
            key,
            on_missing: OnMissing::default(),
            cost: CostRule::default(),
            counting: Counting::default(),
            limits: Vec::new(),
            overrides: Vec::new(),
            penalty: None,
        }
    }

    /// About these requests only.
    #[must_use]
    pub fn with_match(self, matching: Match) -> Self {
        Self { matching, ..self }
    }

    /// For what it is about, the last: policies behind it do not apply.
    #[must_use]
    pub fn as_final(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// Letting these off.
    #[must_use]
    pub fn with_exempt(self, exempt: Exempt) -> Self {
        Self { exempt, ..self }
    }

    /// With other limits for one more key.
    #[must_use]
    pub fn with_override(mut self, special: Override) -> Self {
        self.overrides.push(special);
        self
    }

    /// Charging for some responses only.
    #[must_use]
    pub fn with_counting(self, counting: Counting) -> Self {
        Self { counting, ..self }
    }

    /// Holding keys back.
    #[must_use]
    pub fn with_penalty(self, penalty: Penalty) -> Self {
        Self { penalty: Some(penalty), ..self }
    }

    /// With one more limit.
    #[must_use]
    pub fn with_limit(mut self, name: &str, limit: Limit, mode: Mode) -> Self {
        let id = self.limit_id(name);
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
    pub fn with_cost(self, cost: impl Into<CostRule>) -> Self {
        Self { cost: cost.into(), ..self }
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
    pub fn cost(&self) -> &CostRule {
        &self.cost
    }

    /// Which requests it is about.
    #[must_use]
    pub fn matching(&self) -> &Match {
        &self.matching
    }

    /// Do policies behind it not apply to what it is about?
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Who is let off.
    #[must_use]
    pub fn exempt(&self) -> &Exempt {
        &self.exempt
    }

    /// Which responses it charges for.
    #[must_use]
    pub fn counting(&self) -> Counting {
        self.counting
    }

    /// The keys with limits of their own.
    #[must_use]
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// How it holds keys back, if it does. The key is that of the policy's charges.
    #[must_use]
    pub fn penalty(&self) -> Option<&Penalty> {
        self.penalty.as_ref()
    }

    /// What of its charges is known only when the response is there; `None` if they stand as they were made.
    #[must_use]
    pub fn settling(&self) -> Option<Settling<'_>> {
        Settling::of(self)
    }

    /// The limits, in order.
    #[must_use]
    pub fn limits(&self) -> &[NamedLimit] {
        &self.limits
    }

    /// What stores call its limit of this name.
    pub(crate) fn limit_id(&self, name: &str) -> LimitId {
        let id = LimitId::of(&self.name, name);
        if self.key == KeyParts::default() { id } else { id.keyed_by(&self.key.to_text()) }
    }

    /// The limits that make a charge: all but the unlimited ones.
    pub(crate) fn charging(&self) -> impl Iterator<Item = &NamedLimit> {
        self.limits.iter().filter(|named| named.limit != Limit::Unlimited)
    }

    /// The charges of a request, but for the key.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Charge<'static>> {
        self.claims_under(&[])
    }

    /// The charges of a request, but for the key, with some limits replaced by name.
    pub(crate) fn claims_under(&self, limits: &[(String, Limit)]) -> impl Iterator<Item = Charge<'static>> {
        self.limits.iter().filter_map(move |named| {
            let &NamedLimit { id, mode, handling, .. } = named;
            let replaced = limits.iter().find(|(name, _)| *name == named.name).map(|(_, limit)| limit);
            let quota = replaced.unwrap_or(&named.limit).quota()?;
            Some(Charge { limit: id, quota, key: &[], cost: self.cost.without_fields(), mode, handling })
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
