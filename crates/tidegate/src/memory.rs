//! The store that keeps its buckets in this process.

use std::future::{self, Future};

use tidegate_core::{Charge, Decision, LimitId, Quota, Store, Time, Verdict};
use tidegate_memory::{Table, TableOptions, TooManyQuotas};

use crate::{Clock, SystemClock};

/// A table and the clock that it is asked by.
#[derive(Debug)]
pub struct Memory<C = SystemClock> {
    table: Table,
    clock: C,
}

impl<C: Clock> Memory<C> {
    /// A store in which all buckets are full.
    #[must_use]
    pub fn new(options: TableOptions, clock: C) -> Self {
        Self { table: Table::new(options), clock }
    }

    /// The time by which this store decides.
    #[inline]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What [`Store::decide`] does, without a future: it is ready at once.
    ///
    /// # Errors
    /// A quota is new, and the table knows too many already; then nothing is charged.
    pub fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, TooManyQuotas> {
        self.table.decide_at(charges, decisions, self.now())
    }
}

impl<C: Clock> Store for Memory<C> {
    type Error = TooManyQuotas;

    fn decide(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> impl Future<Output = Result<Verdict, TooManyQuotas>> + Send {
        future::ready(self.decide_now(charges, decisions))
    }

    fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Option<Result<Verdict, TooManyQuotas>> {
        Some(Memory::decide_now(self, charges, decisions))
    }

    fn reset(&self, limit: LimitId, key: &[u8]) -> impl Future<Output = Result<(), TooManyQuotas>> + Send {
        self.table.reset(limit, key);
        future::ready(Ok(()))
    }

    fn grant(
        &self,
        limit: LimitId,
        _quota: &Quota,
        key: &[u8],
        tokens: u64,
    ) -> impl Future<Output = Result<(), TooManyQuotas>> + Send {
        self.table.grant_at(limit, key, tokens, self.now());
        future::ready(Ok(()))
    }
}
