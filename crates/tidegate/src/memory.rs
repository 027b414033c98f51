//! The store that keeps its buckets in this process.

use std::fmt;
use std::future::{self, Future};
use std::time::Duration;

use tidegate_core::{
    Charge, Cost, Decision, Kept, LimitId, Quota, ReservationId, Settled, Source, Store, Time, Verdict, settlements,
};
use tidegate_memory::{RESERVATIONS_DEFAULT, Reservations, ReserveError, Table, TableOptions, TooManyQuotas};

use crate::{Clock, SystemClock};

/// A table, the reservations that are open, and the clock that they are asked by.
#[derive(Debug)]
pub struct Memory<C = SystemClock> {
    table: Table,
    reservations: Reservations,
    clock: C,
}

impl<C: Clock> Memory<C> {
    /// A store in which all buckets are full, with room for [`RESERVATIONS_DEFAULT`] open reservations.
    #[must_use]
    pub fn new(options: TableOptions, clock: C) -> Self {
        Self::of_table(Table::new(options), clock)
    }

    pub(crate) fn of_table(table: Table, clock: C) -> Self {
        Self { table, reservations: Reservations::with_room_for(RESERVATIONS_DEFAULT), clock }
    }

    /// The same store, before anything is reserved, with room for so many open reservations: 51.2 bytes each.
    #[must_use]
    pub fn with_room_for_reservations(self, count: usize) -> Self {
        Self { reservations: Reservations::with_room_for(count), ..self }
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

    /// The reservations that are open.
    #[must_use]
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// What [`Store::decide`] does, without a future: it is ready at once.
    ///
    /// # Errors
    /// A quota is new, and the table knows too many already; then nothing is charged.
    pub fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, TooManyQuotas> {
        self.table.decide_at(charges, decisions, self.now())
    }

    /// What [`Store::reserve`] does, without a future.
    ///
    /// # Errors
    /// As [`Memory::decide_now`]; or too many reservations are open, or one of this id is. Then nothing is charged.
    pub fn reserve_now(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, MemoryError> {
        if charges.is_empty() {
            return Ok(Verdict::over(charges, decisions));
        }
        let now = self.now();
        // First the record, so that what is charged can be settled; nobody else knows its id yet.
        self.reservations.open_at(id, open_for, now)?;
        let verdict = self.table.decide_at(charges, decisions, now);
        if !verdict.as_ref().is_ok_and(|verdict| verdict.allowed) {
            self.reservations.close_at(id, now);
        }
        Ok(verdict?)
    }

    /// What [`Store::settle`] does, without a future.
    ///
    /// # Errors
    /// A quota is new, and the table knows too many already: the reservation is closed, and stays spent.
    pub fn settle_now(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
    ) -> Result<Settled, MemoryError> {
        let now = self.now();
        let Some(reserved_at) = self.reservations.close_at(id, now) else { return Ok(Settled::Unknown) };
        for (charge, actual) in settlements(charges, actual) {
            self.table.settle_at(&charge, reserved_at, actual, now)?;
        }
        Ok(Settled::Settled)
    }
}

impl<C: Clock> Store for Memory<C> {
    type Error = MemoryError;
    const AT_ONCE: bool = true;

    fn decide(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> impl Future<Output = Result<Verdict, MemoryError>> + Send {
        future::ready(self.decide_now(charges, decisions).map_err(MemoryError::from))
    }

    fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Option<Result<Verdict, MemoryError>> {
        Some(Memory::decide_now(self, charges, decisions).map_err(MemoryError::from))
    }

    #[inline]
    fn decide_one_now(&self, charge: &Charge<'_>) -> Option<Result<(Decision, Source), MemoryError>> {
        let decided = self.table.decide_one_at(charge, self.now()).map_err(MemoryError::from);
        Some(decided.map(|decision| (decision, Source::Store)))
    }

    fn reset(&self, limit: LimitId, key: &[u8]) -> impl Future<Output = Result<(), MemoryError>> + Send {
        self.table.reset(limit, key);
        future::ready(Ok(()))
    }

    fn grant(
        &self,
        limit: LimitId,
        _quota: &Quota,
        key: &[u8],
        tokens: u64,
    ) -> impl Future<Output = Result<(), MemoryError>> + Send {
        self.table.grant_at(limit, key, tokens, self.now());
        future::ready(Ok(()))
    }

    fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> impl Future<Output = Result<Verdict, MemoryError>> + Send {
        future::ready(self.reserve_now(charges, decisions, id, open_for))
    }

    fn settle(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
    ) -> impl Future<Output = Result<Settled, MemoryError>> + Send {
        future::ready(self.settle_now(id, charges, actual))
    }

    fn inspect(
        &self,
        limit: LimitId,
        _quota: &Quota,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Kept>, MemoryError>> + Send {
        future::ready(Ok(self.table.inspect_at(limit, key, self.now())))
    }
}

/// What a store in this process refuses, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// More different quotas were brought than a table can know.
    TooManyQuotas,
    /// There is no room for another open reservation.
    TooManyReservations,
    /// A reservation of this id is open already.
    AlreadyOpen,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyQuotas => TooManyQuotas.fmt(f),
            Self::TooManyReservations => ReserveError::TooMany.fmt(f),
            Self::AlreadyOpen => ReserveError::AlreadyOpen.fmt(f),
        }
    }
}

impl std::error::Error for MemoryError {}

impl From<TooManyQuotas> for MemoryError {
    fn from(TooManyQuotas: TooManyQuotas) -> Self {
        Self::TooManyQuotas
    }
}

impl From<ReserveError> for MemoryError {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::AlreadyOpen => Self::AlreadyOpen,
            _ => Self::TooManyReservations,
        }
    }
}
