//! How a limiter is put together.

use std::time::Duration;

use tidegate_core::{AtBound, CHARGES_MAX, FailureMode, Handling, Limit, Mode, OPEN_FOR, Sharing, Store};
use tidegate_memory::{RESERVATIONS_DEFAULT, TableOptions};

use crate::limiter::POLICY_DEFAULT;
use crate::{Clock, Limiter, Memory, SystemClock};

/// Collects what a [`Limiter`] is made of.
#[derive(Debug)]
#[must_use]
pub struct LimiterBuilder<C = SystemClock> {
    policy: String,
    limits: Vec<(String, Limit, Mode)>,
    handling: Handling,
    table: TableOptions,
    reservations: usize,
    open_for: Duration,
    clock: C,
}

impl Default for LimiterBuilder {
    fn default() -> Self {
        Self {
            policy: POLICY_DEFAULT.to_owned(),
            limits: Vec::new(),
            handling: Handling::default(),
            table: TableOptions::default(),
            reservations: RESERVATIONS_DEFAULT,
            open_for: OPEN_FOR,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> LimiterBuilder<C> {
    /// One more limit.
    ///
    /// # Panics
    /// There are more than [`CHARGES_MAX`], or two of the same name: both are mistakes of whoever writes the program.
    pub fn limit(mut self, name: &str, limit: Limit) -> Self {
        self.add(name, limit, Mode::Enforce);
        self
    }

    /// One more limit that is evaluated and counted, and denies nothing.
    ///
    /// # Panics
    /// As [`LimiterBuilder::limit`].
    pub fn shadow(mut self, name: &str, limit: Limit) -> Self {
        self.add(name, limit, Mode::Shadow);
        self
    }

    /// The policy that the limits belong to. Limiters over one store share the buckets of limits whose policy and name
    /// are the same. `default` unless told otherwise.
    pub fn policy(self, name: &str) -> Self {
        Self { policy: name.to_owned(), ..self }
    }

    /// Room for so many keys; see [`TableOptions::keys`].
    pub fn keys(mut self, keys: usize) -> Self {
        self.table.keys = keys;
        self
    }

    /// What happens to newcomers when that room is taken.
    pub fn at_bound(self, at_bound: AtBound) -> Self {
        Self { handling: self.handling.with_at_bound(at_bound), ..self }
    }

    /// What happens while a store outside of this process cannot answer: [`FailureMode::Local`], with the whole limit,
    /// unless told otherwise.
    pub fn on_failure(self, on_failure: FailureMode) -> Self {
        Self { handling: self.handling.with_on_failure(on_failure), ..self }
    }

    /// How processes share the buckets in a store outside of them: [`Sharing::Exact`] unless told otherwise.
    pub fn sharing(self, sharing: Sharing) -> Self {
        Self { handling: self.handling.with_sharing(sharing), ..self }
    }

    /// Room for so many reservations that are open at once; [`RESERVATIONS_DEFAULT`] unless told otherwise. Beyond it
    /// reserving is refused.
    pub fn reservations(self, count: usize) -> Self {
        Self { reservations: count, ..self }
    }

    /// How long a reservation stays open: for so long it can be settled, and then it stays spent. An hour unless told
    /// otherwise; rounded up by at most a 64th; a year at most.
    pub fn open_for(self, open_for: Duration) -> Self {
        Self { open_for, ..self }
    }

    /// Another clock: one that a test drives.
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<D> {
        let Self { policy, limits, handling, table, reservations, open_for, clock: _ } = self;
        LimiterBuilder { policy, limits, handling, table, reservations, open_for, clock }
    }

    /// The limiter, with a store of its own in this process.
    #[must_use]
    pub fn build(self) -> Limiter<Memory<C>> {
        let Self { policy, limits, handling, table, reservations, open_for, clock } = self;
        let store = Memory::new(table, clock).with_room_for_reservations(reservations);
        Limiter::assemble(&policy, limits, handling, store).with_open_for(open_for)
    }

    /// The limiter over a store that stands already. Room and clock are the store's.
    #[must_use]
    pub fn over<S: Store>(self, store: S) -> Limiter<S> {
        Limiter::assemble(&self.policy, self.limits, self.handling, store).with_open_for(self.open_for)
    }

    fn add(&mut self, name: &str, limit: Limit, mode: Mode) {
        assert!(self.limits.len() < CHARGES_MAX, "a limiter holds at most {CHARGES_MAX} limits");
        assert!(self.limits.iter().all(|(taken, ..)| taken != name), "two limits are called `{name}`");
        self.limits.push((name.to_owned(), limit, mode));
    }
}
