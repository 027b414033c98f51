//! Reserving an estimate, and settling with the true cost.
//!
//! What a request will cost is sometimes known only when it is done: the tokens that a language model used, the bytes
//! that were sent. Reserve an estimate, do the work, and settle: what was too much is given back, what was too little is
//! owed. Over memory [`Limiter::reserve_now`] and [`Limiter::settle_now`] answer at once; over any store
//! [`Limiter::reserve`] and [`Limiter::settle`] do the same as futures.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{Charge, Cost, Decision, ReservationId, Settled, Store, Verdict};

use crate::charges::Charges;
use crate::{Answer, Clock, Demand, Key, Limiter, Memory, MemoryError};

/// An estimate that was taken, or the denial of it.
#[must_use = "a reservation that is not settled stays spent, and a denied one lets nothing pass"]
#[derive(Clone, Debug)]
pub struct Reservation {
    /// May the request pass?
    pub answer: Answer,
    id: ReservationId,
    key: Box<[u8]>,
    /// Empty if it was denied, or nothing is limited.
    taken: Box<[Taken]>,
}

/// What was taken under one limit.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The charge, its key left out.
    charge: Charge<'static>,
    /// Not if the limit is in shadow and would have denied.
    is_made: bool,
}

impl Reservation {
    /// May the request pass?
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.answer.is_allowed()
    }

    /// Its identity in the store.
    #[must_use]
    pub const fn id(&self) -> ReservationId {
        self.id
    }

    /// The charges, with what was taken as cost, and the true cost of each.
    fn settlement(&self, actual: Cost) -> (Vec<Charge<'_>>, Vec<Cost>) {
        let of = |cost, taken: &Taken| if taken.is_made { cost } else { Cost::ZERO };
        let charge = |taken: &Taken| Charge { key: &self.key, ..taken.charge }.with_cost(of(taken.charge.cost, taken));
        self.taken.iter().map(|taken| (charge(taken), of(actual, taken))).unzip()
    }
}

impl<S: Store> Limiter<S> {
    /// May `key` take `estimate` tokens? Takes them if so, and keeps the reservation open, so that it can be settled.
    ///
    /// It is open for an hour, unless the limiter was built otherwise. One that is never settled stays spent.
    ///
    /// # Errors
    /// The store could not answer; or it has no room for another open reservation, and nothing was taken.
    pub async fn reserve<K: Key + ?Sized>(&self, key: &K, estimate: impl Into<Cost>) -> Result<Reservation, S::Error> {
        let (estimate, id) = (estimate.into(), draw());
        let key = key.with_bytes(<[u8]>::to_vec);
        let Some(charges) = self.charges(&key, &Demand::of(estimate)) else { return Ok(unlimited(id)) };
        let mut decisions = charges.decisions();
        let decisions = &mut decisions[..charges.length];
        let verdict = self.store().reserve(charges.as_slice(), decisions, id, self.open_for).await?;
        Ok(reservation(id, &key, &charges, verdict, decisions))
    }

    /// Settles a reservation with what it truly cost: what was too much is given back, at most to full; what was too
    /// little is owed, at most one further burst. Repeating it changes nothing.
    ///
    /// # Errors
    /// The store could not answer. Asking again is safe.
    pub async fn settle(&self, reservation: &Reservation, actual: impl Into<Cost>) -> Result<Settled, S::Error> {
        let (charges, actual) = reservation.settlement(actual.into());
        match charges.is_empty() {
            true => Ok(Settled::Unknown),
            false => self.store().settle(reservation.id, &charges, &actual).await,
        }
    }
}

impl<C: Clock> Limiter<Memory<C>> {
    /// What [`Limiter::reserve`] does, at once.
    ///
    /// ```
    /// use tidegate::{Limiter, Settled};
    ///
    /// // Tokens of a language model: 100,000 a minute for each user.
    /// let limiter = Limiter::new("100000/min".parse()?);
    /// let reservation = limiter.reserve_now("user-42", 2_000)?;
    /// assert!(reservation.is_allowed());
    /// // The model answers, and used fewer than that.
    /// assert_eq!(limiter.settle_now(&reservation, 1_340)?, Settled::Settled);
    /// assert_eq!(limiter.peek("user-42").remaining(), Some(98_660));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Too many reservations are open, or too many quotas known; then nothing is taken.
    pub fn reserve_now<K: Key + ?Sized>(&self, key: &K, estimate: impl Into<Cost>) -> Result<Reservation, MemoryError> {
        let (estimate, id) = (estimate.into(), draw());
        key.with_bytes(|key| {
            let Some(charges) = self.charges(key, &Demand::of(estimate)) else { return Ok(unlimited(id)) };
            let mut decisions = charges.decisions();
            let decisions = &mut decisions[..charges.length];
            let verdict = self.store().reserve_now(charges.as_slice(), decisions, id, self.open_for)?;
            Ok(reservation(id, key, &charges, verdict, decisions))
        })
    }

    /// What [`Limiter::settle`] does, at once.
    ///
    /// # Errors
    /// Too many quotas are known; then the reservation stays spent.
    pub fn settle_now(&self, reservation: &Reservation, actual: impl Into<Cost>) -> Result<Settled, MemoryError> {
        let (charges, actual) = reservation.settlement(actual.into());
        match charges.is_empty() {
            true => Ok(Settled::Unknown),
            false => self.store().settle_now(reservation.id, &charges, &actual),
        }
    }
}

/// Nothing is limited, so nothing was taken.
fn unlimited(id: ReservationId) -> Reservation {
    Reservation { answer: Answer::UNLIMITED, id, key: Box::default(), taken: Box::default() }
}

fn reservation(
    id: ReservationId,
    key: &[u8],
    charges: &Charges<'_>,
    verdict: Verdict,
    decisions: &[Decision],
) -> Reservation {
    let made = if verdict.allowed { charges.as_slice() } else { &[] };
    let taken = made.iter().zip(decisions).map(|(charge, decision)| {
        let Charge { limit, quota, cost, mode, handling, .. } = *charge;
        Taken { charge: Charge { limit, quota, key: &[], cost, mode, handling }, is_made: decision.is_allowed() }
    });
    Reservation { answer: charges.answer(verdict, decisions), id, key: key.into(), taken: taken.collect() }
}

/// A number that nobody else draws: two hashes of a count under a key of this process, which the system draws at random.
pub(crate) fn draw() -> ReservationId {
    static RANDOM: OnceLock<RandomState> = OnceLock::new();
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let random = RANDOM.get_or_init(RandomState::new);
    let count = DRAWN.fetch_add(1, Ordering::Relaxed);
    let half = |side: u8| u128::from(random.hash_one((count, side)));
    ReservationId::new(half(0) << 64 | half(1))
}
