//! The charges of one request, and which limit each comes from.

use std::ops::Deref;

use tidegate_core::Charge;

use crate::{NamedLimit, Policies, Policy};

/// Where a charge comes from.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its limit.
    pub limit: &'a NamedLimit,
}

/// The charges of one request: a slice, as stores take it, and for each charge its limit.
#[derive(Clone, Debug)]
pub struct Charges<'a> {
    policies: &'a Policies,
    list: List<'a>,
}

/// One or two charges, as most requests make, need no allocation.
#[derive(Clone, Debug)]
enum List<'a> {
    One([Charge<'a>; 1]),
    Two([Charge<'a>; 2]),
    Many(Vec<Charge<'a>>),
}

impl<'a> Charges<'a> {
    /// The charges, if there are any.
    pub(crate) fn collect(policies: &'a Policies, mut charges: impl Iterator<Item = Charge<'a>>) -> Option<Self> {
        let first = charges.next()?;
        let list = match (charges.next(), charges.next()) {
            (None, _) => List::One([first]),
            (Some(second), None) => List::Two([first, second]),
            (Some(second), Some(third)) => List::Many([first, second, third].into_iter().chain(charges).collect()),
        };
        Some(Self { policies, list })
    }

    /// The limit that charge `i` comes from; `None` if there is no such charge.
    #[must_use]
    pub fn place(&self, i: usize) -> Option<Place<'a>> {
        let (policy, limit) = self.policies.place(self.get(i)?.limit)?;
        let policy = self.policies.as_slice().get(policy)?;
        Some(Place { policy, limit: policy.limits.get(limit)? })
    }
}

impl<'a> Deref for Charges<'a> {
    type Target = [Charge<'a>];

    fn deref(&self) -> &[Charge<'a>] {
        match &self.list {
            List::One(charges) => charges,
            List::Two(charges) => charges,
            List::Many(charges) => charges,
        }
    }
}
