//! Where buckets live, seen from whoever asks.

use core::error::Error;
use core::future::Future;

use crate::{Charge, Decision, LimitId, Quota, Verdict};

/// A place that keeps buckets and decides where they are.
///
/// A store never hands state back to be written later: each operation is one atomic step on its side. It has a clock
/// of its own, so none of them takes the time. A future that is ready at once costs nothing to await.
pub trait Store: Send + Sync {
    /// What can stop the store from answering. A denial is an answer.
    type Error: Error + Send + Sync + 'static;

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
}
