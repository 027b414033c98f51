//! Reserving and settling.
//!
//! A reservation is one call of the script, as a decision is, with one more bucket: its record, which holds one token
//! and stands in the slot of the first charge's key. All are charged, or none; so a reservation has its record if and
//! only if it was made, and of two with one id the second is refused. Settling takes the record away and corrects the
//! buckets in one call too: without the record the script changes nothing, so a settle can be asked for again.

use std::time::Duration;

use tidegate_core::{Charge, Cost, Decision, Mode, ReservationId, Settled, Verdict, open_quota, settlements};

use crate::names::Names;
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request};
use crate::{OutOfRange, RedisStore, StoreError};

impl RedisStore {
    /// [`Store::reserve`](tidegate_core::Store::reserve), over keys that one node keeps.
    pub(crate) async fn reserve_as(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, StoreError> {
        let Some(first) = charges.first() else { return Ok(Verdict::over(charges, decisions)) };
        let asked = Asked::new(charges);
        if asked.is_never() {
            return Ok(Asked::never(charges, decisions));
        }
        if let Some(groups) = self.groups(charges) {
            return self.reserve_apart(&groups, charges, decisions, id, open_for).await;
        }
        let mut seen = self.ask(reserving(&self.names, &asked, first.key, id, open_for)?).await?;
        let is_new = seen.pop().ok_or(StoreError::Malformed)?;
        let verdict = asked.decide(charges, &seen, decisions)?;
        if verdict.allowed && !is_new { Err(StoreError::AlreadyOpen) } else { Ok(verdict) }
    }

    /// [`Store::settle`](tidegate_core::Store::settle).
    pub(crate) async fn settle_as(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
    ) -> Result<Settled, StoreError> {
        match self.groups(charges) {
            Some(groups) => self.settle_apart(&groups, id, actual).await,
            None => self.settle_one(id, charges, actual).await,
        }
    }

    /// Settles what one node keeps.
    pub(crate) async fn settle_one(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
    ) -> Result<Settled, StoreError> {
        let Some(request) = settling(&self.names, id, charges, actual)? else { return Ok(Settled::Unknown) };
        match self.ask(request).await?.first_passed() {
            Some(true) => Ok(Settled::Settled),
            Some(false) => Ok(Settled::Unknown),
            None => Err(StoreError::Malformed),
        }
    }
}

/// The request that makes a reservation: the charges, and its record.
pub(crate) fn reserving(
    names: &Names,
    asked: &Asked<'_>,
    first_key: &[u8],
    id: ReservationId,
    open_for: Duration,
) -> Result<Request, OutOfRange> {
    let mut request = asked.request_before(names, 1)?;
    request.keys.push(names.reservation(first_key, id));
    request.terms.push(Terms::of(&open_quota(open_for))?.pack(Act::Charge(Mode::Enforce), Cost::ONE, true));
    Ok(request)
}

/// The request that settles a reservation; `None` if nothing was reserved.
pub(crate) fn settling(
    names: &Names,
    id: ReservationId,
    charges: &[Charge<'_>],
    actual: &[Cost],
) -> Result<Option<Request>, OutOfRange> {
    let Some(first) = charges.first() else { return Ok(None) };
    let mut entries = vec![(names.reservation(first.key, id), Terms::of(&open_quota(Duration::ZERO))?, Act::Close, 0)];
    for (charge, actual) in settlements(charges, actual) {
        let (reserved, actual) = (charge.cost.tokens(), actual.tokens());
        let act = if actual > reserved { Act::Owe } else { Act::Give };
        if actual != reserved {
            entries.push((names.bucket(&charge), Terms::of(&charge.quota)?, act, actual.abs_diff(reserved)));
        }
    }
    let mut request = Request { keys: Vec::new(), terms: Vec::new() };
    let last = entries.len() - 1;
    for (i, (key, terms, act, tokens)) in entries.into_iter().enumerate() {
        request.keys.push(key);
        request.terms.push(terms.pack(act, Cost::new(tokens), i == last));
    }
    Ok(Some(request))
}
