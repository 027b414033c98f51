//! Charges of one decision that no single node keeps.
//!
//! In a cluster the buckets of different keys are in different slots, and no call reaches two of them. So the enforced
//! charges are reserved in each slot at once, and what was reserved is given back, by the reservation's id, if one of the
//! slots denies or does not answer. Giving back what was never taken changes nothing, so whatever is not known is given
//! back too. For an instant a neighbour can be denied what will be given back, and what cannot be given back, since a node
//! died, stays spent; but never is too much admitted.
//!
//! Limits in shadow are asked about when the enforced ones have allowed. Each slot is decided on its own node's clock.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_core::{Charge, Cost, Decision, Mode, ReservationId, Settled, Verdict, open_quota};
use tokio::time::sleep;

use crate::give_back::GiveBack;
use crate::reservation::settling;
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Seen};
use crate::{RedisStore, StoreError};

/// How long the record of a decision is kept: longer than it can take to give back.
const OPEN_FOR: Duration = Duration::from_secs(5);

/// The charges of one slot, and their places among all.
pub(crate) struct Group<'a> {
    places: Vec<usize>,
    charges: Vec<Charge<'a>>,
}

impl<'a> Group<'a> {
    fn of(&self, is_wanted: impl Fn(Mode) -> bool) -> Option<Self> {
        let kept = self.places.iter().zip(&self.charges).filter(|(_, charge)| is_wanted(charge.mode));
        let (places, charges): (Vec<_>, Vec<_>) = kept.map(|(place, charge)| (*place, *charge)).unzip();
        (!places.is_empty()).then_some(Self { places, charges })
    }

    /// The decisions of this group, put in their places.
    fn put(&self, made: &[Decision], decisions: &mut [Decision]) {
        for (place, decision) in self.places.iter().zip(made) {
            decisions[*place] = *decision;
        }
    }

    fn unmade(&self) -> Vec<Decision> {
        self.charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect()
    }
}

impl RedisStore {
    /// The charges by slot; `None` if one call reaches all of them.
    pub(crate) fn groups<'a>(&self, charges: &[Charge<'a>]) -> Option<Vec<Group<'a>>> {
        let first = charges.first()?;
        if self.route.is_one() || charges.iter().all(|charge| charge.key == first.key) {
            return None;
        }
        let mut groups: Vec<(u16, Group<'a>)> = Vec::new();
        for (place, charge) in charges.iter().enumerate() {
            let slot = self.route.slot(&self.names.bucket(charge));
            match groups.iter_mut().find(|(of, _)| *of == slot) {
                Some((_, group)) => {
                    group.places.push(place);
                    group.charges.push(*charge);
                }
                None => groups.push((slot, Group { places: vec![place], charges: vec![*charge] })),
            }
        }
        (groups.len() > 1).then(|| groups.into_iter().map(|(_, group)| group).collect())
    }

    /// [`Store::decide`](tidegate_core::Store::decide) over several slots.
    pub(crate) async fn decide_apart(
        &self,
        groups: &[Group<'_>],
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> Result<Verdict, StoreError> {
        self.reserve_apart(groups, charges, decisions, random_id(), OPEN_FOR).await
    }

    /// [`Store::reserve`](tidegate_core::Store::reserve) over several slots.
    pub(crate) async fn reserve_apart(
        &self,
        groups: &[Group<'_>],
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, StoreError> {
        let mut deadline = pin!(sleep(self.deadline));
        let enforced: Vec<_> = groups.iter().filter_map(|group| group.of(Mode::is_enforced)).collect();
        let mut give_back = GiveBack::new(self);
        for group in &enforced {
            let nothing = vec![Cost::ZERO; group.charges.len()];
            give_back.extend(settling(&self.names, id, &group.charges, &nothing)?);
        }
        let reserving = enforced.iter().map(|group| self.reserve_one(group, id, open_for));
        let reserved = tokio::select! {
            biased;
            reserved = join_all(reserving) => reserved,
            () = deadline.as_mut() => return Err(StoreError::Deadline),
        };
        let verdict = match combine(&enforced, reserved, charges, decisions) {
            Ok(verdict) if verdict.allowed => {
                give_back.forget();
                verdict
            }
            denied => {
                // Whoever asks next finds it given back, if there is time.
                tokio::select! {
                    () = give_back.now() => {}
                    () = deadline.as_mut() => {}
                }
                return denied;
            }
        };
        tokio::select! {
            biased;
            () = self.charge_shadows(groups, decisions) => {}
            () = deadline => {}
        }
        Ok(verdict)
    }

    /// Charges the limits in shadow, after the others have allowed. One that could not be asked changes nothing.
    async fn charge_shadows(&self, groups: &[Group<'_>], decisions: &mut [Decision]) {
        let shadows: Vec<_> = groups.iter().filter_map(|group| group.of(|mode| !mode.is_enforced())).collect();
        let made = join_all(shadows.iter().map(|group| self.decide_one(group))).await;
        for (group, made) in shadows.iter().zip(made) {
            group.put(&made.unwrap_or_else(|_| group.unmade()), decisions);
        }
    }

    /// [`Store::settle`](tidegate_core::Store::settle) over several slots. A slot of which only limits in shadow are
    /// charged has no record, and what was taken there stays.
    pub(crate) async fn settle_apart(
        &self,
        groups: &[Group<'_>],
        id: ReservationId,
        actual: &[Cost],
    ) -> Result<Settled, StoreError> {
        let settling = groups.iter().map(|group| {
            let actual: Vec<_> = group.places.iter().map(|place| actual[*place]).collect();
            async move { self.settle_one(id, &group.charges, &actual).await }
        });
        let settled: Result<Vec<_>, _> = join_all(settling).await.into_iter().collect();
        Ok(if settled?.contains(&Settled::Settled) { Settled::Settled } else { Settled::Unknown })
    }

    async fn reserve_one(&self, group: &Group<'_>, id: ReservationId, open_for: Duration) -> Result<Seen, StoreError> {
        let mut request = Asked::new(&group.charges).request_before(&self.names, 1)?;
        request.keys.push(self.names.reservation(group.charges[0].key, id));
        request.terms.push(Terms::of(&open_quota(open_for))?.pack(Act::Charge(Mode::Enforce), Cost::ONE, true));
        self.ask(request).await
    }

    async fn decide_one(&self, group: &Group<'_>) -> Result<Vec<Decision>, StoreError> {
        let asked = Asked::new(&group.charges);
        let seen = self.ask(asked.request(&self.names)?).await?;
        let mut made = group.unmade();
        let _ = asked.decide(&group.charges, &seen, &mut made)?;
        Ok(made)
    }
}

/// One verdict over what was reserved in each slot. If it is a denial, what was reserved shows as not charged.
fn combine(
    groups: &[Group<'_>],
    reserved: Vec<Result<Seen, StoreError>>,
    charges: &[Charge<'_>],
    decisions: &mut [Decision],
) -> Result<Verdict, StoreError> {
    for (charge, decision) in charges.iter().zip(decisions.iter_mut()) {
        *decision = Decision::unmade(&charge.quota);
    }
    let mut all_seen = Vec::with_capacity(groups.len());
    for (group, seen) in groups.iter().zip(reserved) {
        let mut seen = seen?;
        let is_new = seen.pop().ok_or(StoreError::Malformed)?;
        let mut made = group.unmade();
        let verdict = Asked::new(&group.charges).decide(&group.charges, &seen, &mut made)?;
        if verdict.allowed && !is_new {
            return Err(StoreError::AlreadyOpen);
        }
        group.put(&made, decisions);
        all_seen.push((verdict.allowed, seen, made));
    }
    if all_seen.iter().all(|(is_allowed, ..)| *is_allowed) {
        return Ok(Verdict::over(charges, decisions));
    }
    for (group, (_, seen, made)) in groups.iter().zip(&mut all_seen).filter(|(_, (is_allowed, ..))| *is_allowed) {
        Asked::new(&group.charges).uncharge(&group.charges, seen, made)?;
        group.put(made, decisions);
    }
    Ok(Verdict::over(charges, decisions))
}

/// A number that nobody else draws.
fn random_id() -> ReservationId {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    ReservationId::new(half() << 64 | half())
}
