//! Where buckets live, seen from whoever asks.

use core::error::Error;
use core::future::Future;
use core::slice;
use core::time::Duration;

use crate::{Charge, Cost, Decision, LimitId, Quota, ReservationId, Settled, Source, State, Verdict};

/// A place that keeps buckets and decides where they are.
///
/// A store never hands state back to be written later: each operation is one atomic step on its side. It has a clock
/// of its own, so none of them takes the time. A future that is ready at once costs nothing to await.
pub trait Store: Send + Sync {
    /// What can stop the store from answering. A denial is an answer.
    type Error: Error + Send + Sync + 'static;

    /// Is each of its futures ready when it is first polled, wherever that is? Then nobody need wait for it.
    const AT_ONCE: bool = false;

    /// Decides all charges in one step: all are charged, or none. `decisions[i]` becomes the answer to `charges[i]`.
    ///
    /// # Errors
    /// The store could not answer; then what was charged, if anything, is not known.
    fn decide(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> impl Future<Output = Result<Verdict, Self::Error>> + Send;

    /// What [`Store::decide`] would answer, if it can be said without waiting: the store is in this process, or the
    /// answer is known here already. With `None` nothing was charged; then [`Store::decide`] is to be asked.
    fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Option<Result<Verdict, Self::Error>> {
        let _ = (charges, decisions);
        None
    }

    /// [`Store::decide_now`] for one charge, as most requests make no more: the decision, and who made it.
    #[inline]
    fn decide_one_now(&self, charge: &Charge<'_>) -> Option<Result<(Decision, Source), Self::Error>> {
        let mut decision = Decision::unmade(&charge.quota);
        let verdict = self.decide_now(slice::from_ref(charge), slice::from_mut(&mut decision))?;
        Some(verdict.map(|verdict| (decision, verdict.source)))
    }

    /// Forgets the bucket of `key`: it is full again.
    ///
    /// # Errors
    /// The store could not answer.
    fn reset(&self, limit: LimitId, key: &[u8]) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Gives `tokens` back to the bucket of `key`, at most to full.
    ///
    /// # Errors
    /// The store could not answer.
    fn grant(
        &self,
        limit: LimitId,
        quota: &Quota,
        key: &[u8],
        tokens: u64,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Decides as [`Store::decide`] does; if the charges are made, they are a reservation that [`Store::settle`] can
    /// settle for as long as `open_for`, a year at most. A reservation that is never settled stays spent.
    ///
    /// Charges that can be settled together draw on keys that the store keeps in one place.
    ///
    /// # Errors
    /// As [`Store::decide`]; and nothing is charged if a reservation of this id is open already, or if as many are open
    /// as the store keeps.
    fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> impl Future<Output = Result<Verdict, Self::Error>> + Send;

    /// Settles a reservation, once: what was too much is given back, what was too little is owed, and the reservation
    /// is open no more. See [`settle`](crate::settle).
    ///
    /// `charges` are those that were reserved, in the same order, and the cost of each is what was taken: zero if a
    /// limit in shadow took nothing. `actual[i]` is the true cost of `charges[i]`.
    ///
    /// # Errors
    /// The store could not answer; then it is not known whether it was settled, and asking again is safe.
    fn settle(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
    ) -> impl Future<Output = Result<Settled, Self::Error>> + Send;

    /// The bucket of `key`, as the store keeps it; `None` if it keeps none, since it is full.
    ///
    /// # Errors
    /// The store could not answer.
    fn inspect(
        &self,
        limit: LimitId,
        quota: &Quota,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Kept>, Self::Error>> + Send;
}

/// A bucket as a store keeps it, for whoever looks into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What was missing, and when.
    pub state: State,
    /// The quota that it was written under; its rate can be in lowest terms.
    pub quota: Quota,
    /// When the store forgets it, from now; `None` if it never does.
    pub expires_in: Option<Duration>,
}
