//! From a call to its charges.

use std::ops::Range;

use tidegate_core::{Charge, Cost, Time};

use super::cel::Place;
use super::limit::Limit;
use crate::key::Tag;
use crate::{Entry, Keys};

/// What a caller says of a request: a namespace, and descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The namespace, which is the domain of a rate limit service call.
    pub namespace: &'a str,
    /// The descriptors, in order. Of two entries with one key in a descriptor the later counts.
    pub descriptors: &'a [&'a [Entry<'a>]],
}

impl<'a> Call<'a> {
    pub(super) fn descriptor(&self, number: u16) -> Option<&'a [Entry<'a>]> {
        self.descriptors.get(usize::from(number)).copied()
    }

    pub(super) fn entry(&self, place: &Place) -> Option<&'a str> {
        let find = |entries: &'a [Entry<'a>]| entries.iter().rev().find(|entry| entry.key == place.key);
        let entry = match place.descriptor {
            Some(number) => self.descriptor(number).and_then(find),
            None => self.descriptors.iter().rev().find_map(|entries| find(entries)),
        };
        entry.map(|entry| entry.value)
    }
}

/// The limits of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// By namespace, and in the order of the file within one. At most [`CHARGES_MAX`] of them meet one call.
    ///
    /// [`CHARGES_MAX`]: tidegate_core::CHARGES_MAX
    limits: Vec<Limit>,
}

/// What a call is to be charged, all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Charged<'a> {
    /// The charges.
    pub charges: Vec<Charge<'a>>,
    /// Where the limit of each stands in [`Limits::as_slice`].
    pub places: Vec<usize>,
}

impl Limits {
    pub(super) fn new(mut limits: Vec<Limit>) -> Self {
        limits.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        Self { limits }
    }

    /// All limits, by namespace.
    #[must_use]
    pub fn as_slice(&self) -> &[Limit] {
        &self.limits
    }

    /// The limits of a namespace, in the order of the file.
    #[must_use]
    pub fn of(&self, namespace: &str) -> &[Limit] {
        &self.limits[self.places_of(namespace)]
    }

    fn places_of(&self, namespace: &str) -> Range<usize> {
        let start = self.limits.partition_point(|limit| limit.namespace.as_str() < namespace);
        let count = self.limits[start..].partition_point(|limit| limit.namespace == namespace);
        start..start + count
    }

    /// What a call of this cost is charged: each limit of its namespace whose conditions hold and whose variables all
    /// have values. The keys are built in `keys`, whose earlier contents are dropped, and the charges borrow them.
    pub fn charging<'a>(&'a self, call: &Call<'_>, cost: Cost, keys: &'a mut Keys) -> Charged<'a> {
        keys.clear();
        let meets = |place: &usize| {
            let limit = &self.limits[*place];
            limit.applies(call) && push_key(limit, call, keys)
        };
        let places: Vec<_> = self.places_of(call.namespace).filter(meets).collect();
        let keys = &*keys;
        let charge = |(i, place): (usize, &usize)| {
            let limit = &self.limits[*place];
            let charge = Charge::new(limit.limit, limit.quota, keys.key(i));
            charge.with_cost(cost).with_handling(limit.handling)
        };
        Charged { charges: places.iter().enumerate().map(charge).collect(), places }
    }

    /// These limits in place of `old` ones, from `now` on, on the clock of the store: what a key owes under another
    /// `max_value` is carried over as it stood then.
    #[must_use]
    pub fn in_place_of(mut self, old: &Self, now: Time) -> Self {
        for limit in &mut self.limits {
            let before = old.of(&limit.namespace).iter().find(|before| before.limit == limit.limit);
            let Some(before) = before else { continue };
            let is_same = before.quota == limit.quota;
            limit.handling.in_force_since = if is_same { before.handling.in_force_since } else { Some(now) };
        }
        self
    }
}

/// Builds the key of a limit that applies: the values of its variables. If one has none, nothing is built.
fn push_key(limit: &Limit, call: &Call<'_>, keys: &mut Keys) -> bool {
    let mut values =
        limit.variables.iter().map(|it| it.with_value(call, |text| keys.push_value(text.as_bytes(), false)));
    if !values.all(|value| value.is_some()) {
        keys.abandon();
        return false;
    }
    if limit.variables.is_empty() {
        keys.push(Tag::Global, &[]);
    }
    keys.finish();
    true
}
