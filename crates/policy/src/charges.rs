//! The charges of one request, and which limit each comes from; and what is asked under penalties beside them.

use std::ops::Deref;

use tidegate_core::{CHARGES_MAX, Charge};

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
    penalties: Vec<Charge<'a>>,
}

/// One or two charges, as most requests make, need no allocation.
#[derive(Clone, Debug)]
enum List<'a> {
    None,
    One([Charge<'a>; 1]),
    Two([Charge<'a>; 2]),
    Many(Vec<Charge<'a>>),
}

impl<'a> Charges<'a> {
    pub(crate) fn none(policies: &'a Policies) -> Self {
        Self { policies, list: List::None, penalties: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, charge: Charge<'a>) {
        self.list = match &mut self.list {
            List::None => List::One([charge]),
            List::One([first]) => List::Two([*first, charge]),
            List::Two([first, second]) => {
                let mut many = Vec::with_capacity(CHARGES_MAX / 2);
                many.extend([*first, *second, charge]);
                List::Many(many)
            }
            List::Many(many) => return many.push(charge),
        };
    }

    #[cold]
    pub(crate) fn push_penalty(&mut self, charge: Charge<'a>) {
        self.penalties.push(charge);
    }

    /// What is asked under penalties, to be decided in one step with the charges: whether the keys are held back, and
    /// room for requests that may be offences. [`Policies::penalty_place`] says where each comes from.
    #[must_use]
    pub fn penalties(&self) -> &[Charge<'a>] {
        &self.penalties
    }

    /// The limit that charge `i` comes from; `None` if there is no such charge.
    #[must_use]
    pub fn place(&self, i: usize) -> Option<Place<'a>> {
        self.policies.place(self.get(i)?.limit)
    }
}

impl<'a> Deref for Charges<'a> {
    type Target = [Charge<'a>];

    fn deref(&self) -> &[Charge<'a>] {
        match &self.list {
            List::None => &[],
            List::One(charges) => charges,
            List::Two(charges) => charges,
            List::Many(charges) => charges,
        }
    }
}
