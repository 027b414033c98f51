//! Taking an estimate now, and settling with the true cost later.
//!
//! Settling below the estimate gives back what was too much, at most to full. Settling above it owes what was too
//! little, at most one further burst. Both count as of the moment of settling.
//!
//! A settle must count once, however often it is repeated. So a reservation leaves a record beside its buckets, and
//! settling takes the record away. The record is itself a bucket: of one token, which reserving takes and which comes
//! back when the reservation is over ([`open_quota`]). Whatever a store does for buckets it so does for records: two of
//! one id cannot be open, and one that is never settled is forgotten by itself.

use core::cmp::Ordering;
use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use crate::quota::PERIOD_MAX;
use crate::{Algorithm, Charge, Cost, Quota, State, Time, fixed_window, grant, owe, sliding_counter};

/// How long a reservation stays open unless told otherwise: an hour.
pub const OPEN_FOR: Duration = Duration::from_secs(3_600);
/// Binary digits of that time, in milliseconds, that count after the first.
const OPEN_BITS: u32 = 6;

/// Which reservation: a number that nobody else draws. Whoever reserves draws it, at random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(u128);

impl ReservationId {
    /// The reservation of this number.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReservationId({self})")
    }
}

/// What came of settling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The reservation was open; the difference was given back or is owed, and it is open no more.
    Settled,
    /// No reservation of this id is open: it was settled before, is over, or was never made. Nothing was changed.
    Unknown,
}

/// What a reservation comes to: for each bucket the charge on it, its cost all that was taken of it, and the true cost
/// of the same. `actual[i]` belongs to `charges[i]`.
///
/// # Panics
/// There is not one true cost for each charge.
pub fn settlements<'c, 'k>(
    charges: &'c [Charge<'k>],
    actual: &'c [Cost],
) -> impl Iterator<Item = (Charge<'k>, Cost)> + use<'c, 'k> {
    assert!(charges.len() == actual.len(), "one true cost for each charge");
    let is_first = move |(i, charge): &(usize, &Charge<'_>)| !charges[..*i].iter().any(|one| one.shares_bucket(charge));
    charges.iter().enumerate().filter(is_first).map(move |(i, charge)| {
        let sharing = charges.iter().zip(actual).skip(i).filter(|(one, _)| one.shares_bucket(charge));
        let sum = |(reserved, true_cost): (Cost, Cost), (one, actual): (&Charge<'_>, &Cost)| {
            (reserved.saturating_add(one.cost), true_cost.saturating_add(*actual))
        };
        let (reserved, true_cost) = sharing.fold((Cost::ZERO, Cost::ZERO), sum);
        (charge.with_cost(reserved), true_cost)
    })
}

/// The state after a charge on it is settled: it was made at `reserved_at`, and truly cost `actual`.
///
/// A fixed window that is over has forgotten what was taken in it, so nothing of that is given back to a later one. A
/// sliding counter gives back to the window in which it was taken. For a log see [`Log`](crate::Log).
#[must_use]
pub fn settle(charge: &Charge<'_>, state: State, reserved_at: Time, actual: Cost, now: Time) -> State {
    let Charge { quota, cost: reserved, .. } = charge;
    match actual.cmp(reserved) {
        Ordering::Equal => state,
        Ordering::Greater => owe(quota, state, actual.tokens() - reserved.tokens(), now),
        Ordering::Less => give_back(quota, state, reserved_at, reserved.tokens() - actual.tokens(), now),
    }
}

fn give_back(quota: &Quota, state: State, reserved_at: Time, tokens: u64, now: Time) -> State {
    match quota.algorithm() {
        Algorithm::FixedWindow if reserved_at < fixed_window::open_since(quota, state, now) => state,
        Algorithm::SlidingCounter => sliding_counter::give_back(quota, state, reserved_at, tokens, now),
        Algorithm::TokenBucket | Algorithm::FixedWindow | Algorithm::SlidingLog => grant(quota, state, tokens, now),
    }
}

/// The quota of a reservation's record: one token, which comes back after `open_for`.
///
/// That is rounded up to a millisecond, or by less than a 64th, so that there are few such quotas; a year at most.
#[must_use]
pub fn open_quota(open_for: Duration) -> Quota {
    // Both are at most a year of milliseconds, or of nanoseconds, which fits.
    let ms = u64::try_from(open_for.min(PERIOD_MAX).as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1);
    let step = 1 << ms.ilog2().saturating_sub(OPEN_BITS);
    let period = Duration::from_millis(ms.next_multiple_of(step)).min(PERIOD_MAX);
    let period_ns = u64::try_from(period.as_nanos()).ok().and_then(NonZeroU64::new);
    Quota::one_per(period_ns.unwrap_or(NonZeroU64::MIN))
}
