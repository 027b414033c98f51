//! Reservations that are open: a table of their records.
//!
//! The record of a reservation is a bucket of one token, which reserving takes and which comes back when the reservation
//! is over ([`open_quota`]). So this is a [`Table`] like any other: memory that is reserved once, a record that is over
//! makes room without a sweeper, and of two who settle the same one exactly one takes it away. At the bound it denies,
//! since a record that was displaced would be a reservation that nobody can settle.

use std::fmt;
use std::time::Duration;

use tidegate_core::{AtBound, Cost, HeldBy, LimitId, ReservationId, Time, open_quota};

use crate::quotas::TooManyQuotas;
use crate::table::{Table, TableOptions};

/// Reservations that can be open at once unless told otherwise: 2^16.
pub const RESERVATIONS_DEFAULT: usize = 1 << 16;

/// Slots for each of them: a table is never quite full where it must not displace.
const SLOTS_EACH: usize = 2;

/// The limit under which all records stand, in a table that has no other.
const RECORDS: LimitId = LimitId::of("reservations", "open");

/// Why nothing was reserved, though the limits would perhaps have let it pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// There is no room for another open reservation.
    TooMany,
    /// A reservation of this id is open already.
    AlreadyOpen,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many reservations are open: some have to be settled, or to be over, first",
            Self::AlreadyOpen => "a reservation of this id is open already",
        })
    }
}

impl std::error::Error for ReserveError {}

/// The reservations that are open.
#[derive(Debug)]
pub struct Reservations {
    records: Table,
}

impl Reservations {
    /// None are open. There is room for `count`, and for twice as many at most: how many more than `count` fit depends on
    /// where chance puts them.
    #[must_use]
    pub fn with_room_for(count: usize) -> Self {
        Self { records: Table::new(TableOptions::with_keys(count.saturating_mul(SLOTS_EACH))) }
    }

    /// Opens a reservation at `now`, for as long as `open_for`, rounded up by at most a 64th.
    ///
    /// # Errors
    /// There is no room for it, or it is open already; then nothing is changed.
    pub fn open_at(&self, id: ReservationId, open_for: Duration, now: Time) -> Result<(), ReserveError> {
        // There are fewer such quotas than a table can know.
        let limit = self.records.know(RECORDS, &open_quota(open_for), AtBound::Deny);
        let limit = limit.map_err(|TooManyQuotas| ReserveError::TooMany)?;
        let decision = self.records.check_at(&limit, &id, Cost::ONE, now);
        match decision.held_by() {
            _ if decision.is_allowed() => Ok(()),
            Some(HeldBy::Room) => Err(ReserveError::TooMany),
            _ => Err(ReserveError::AlreadyOpen),
        }
    }

    /// Closes a reservation, and says when it was opened; `None` if it is not open. Of several who close it at once,
    /// one is told.
    pub fn close_at(&self, id: ReservationId, now: Time) -> Option<Time> {
        self.records.take_away_at(RECORDS, &id, now).map(|state| state.stamp())
    }

    /// Reservations that are open at `now`. Reads all records: for a metric, not for a request.
    #[must_use]
    pub fn open_count_at(&self, now: Time) -> usize {
        self.records.live_keys_at(now)
    }

    /// The memory of the records, in bytes. It never changes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes()
    }
}
