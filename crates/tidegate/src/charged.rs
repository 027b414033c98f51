//! Charges beside the limits that they come from, and the decisions on them.

use tidegate_core::{Charge, Decision};
use tidegate_policy::{Place, Policies};

/// What was decided on each of a request's charges.
#[derive(Clone, Copy, Debug)]
pub struct Charged<'a> {
    policies: &'a Policies,
    charges: &'a [Charge<'a>],
    decisions: &'a [Decision],
}

impl<'a> Charged<'a> {
    /// The decisions on charges that `policies` made; `decisions[i]` is the one on `charges[i]`.
    #[must_use]
    pub fn new(policies: &'a Policies, charges: &'a [Charge<'a>], decisions: &'a [Decision]) -> Self {
        Self { policies, charges, decisions }
    }

    /// Nothing was charged.
    #[must_use]
    pub fn nothing(policies: &'a Policies) -> Self {
        Self::new(policies, &[], &[])
    }

    /// The policies that decided.
    #[must_use]
    pub fn policies(&self) -> &'a Policies {
        self.policies
    }

    /// Each charge, with the limit that it comes from and the decision on it.
    pub fn iter(&self) -> impl Iterator<Item = (Place<'a>, &'a Charge<'a>, &'a Decision)> + Clone + use<'a> {
        let policies = self.policies;
        let decided = self.charges.iter().zip(self.decisions);
        decided.filter_map(move |(charge, decision)| Some((policies.place(charge.limit)?, charge, decision)))
    }

    /// The limit that charge `i` comes from; `None` if there is no such charge.
    #[must_use]
    pub fn place(&self, i: usize) -> Option<Place<'a>> {
        self.policies.place(self.charges.get(i)?.limit)
    }
}
