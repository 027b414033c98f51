//! Buckets that many processes share, in Redis or Valkey, with what a limit is promised when that store is away.
//!
//! A decision takes the first of these that can answer:
//!
//! ```text
//! never         a cost above the burst passes nowhere                        no store needed
//! denied cache  the store denied this key a moment ago, and it still would   denied.rs
//! lease         this process took tokens of the key ahead                    leases.rs
//! the store     one call, on the store's clock, at most for its deadline     tidegate-redis
//! fallback      the failure mode of each limit                               fallback.rs
//! ```
//!
//! Only the store's own answer takes time; the others are given at once, and [`Store::decide_now`] gives them without
//! a future. A flood on a key that has nothing left is answered from memory, and so is everybody while the store is
//! known to be down.

mod denied;
mod fallback;
mod seen;

use std::fmt;
use std::time::Duration;

use tidegate_core::{
    CHARGES_MAX, Charge, Cost, Decision, Kept, LimitId, Mode, Quota, ReservationId, Settled, Source, Standing, State,
    Store, Time, Verdict, decide_all,
};
use tidegate_memory::TableOptions;
use tidegate_redis::{OutOfRange, RedisStore, StoreError};

use crate::shared::denied::Denials;
use crate::shared::fallback::Fallback;
use crate::shared::seen::Asking;
use crate::{Clock, SystemClock, TooManyQuotas};

/// What a [`Shared`] store is made of, beside the connection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SharedOptions {
    /// The table in which limits are counted while the store is away, if their failure mode is `local`.
    pub fallback: TableOptions,
}

/// Buckets in a store outside of this process. Share it by reference, or in an `Arc`.
///
/// It fails only on what no store could decide; that the server is away is no error: each limit has a
/// [`FailureMode`](crate::FailureMode), and the answer says that it decided ([`Source::Fallback`]).
pub struct Shared<C = SystemClock> {
    redis: RedisStore,
    clock: C,
    denials: Denials,
    fallback: Fallback,
}

/// Why a shared store cannot decide on a request at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedError {
    /// The quota cannot be exact in the store; nothing was asked.
    OutOfRange(OutOfRange),
    /// The store is away, and the table that stands in for it knows too many quotas.
    TooManyQuotas,
    /// The store could not do what was asked, which was not a decision.
    Store(StoreError),
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(why) => why.fmt(f),
            Self::TooManyQuotas => TooManyQuotas.fmt(f),
            Self::Store(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for SharedError {}

impl From<StoreError> for SharedError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::OutOfRange(why) => Self::OutOfRange(why),
            other => Self::Store(other),
        }
    }
}

impl From<TooManyQuotas> for SharedError {
    fn from(TooManyQuotas: TooManyQuotas) -> Self {
        Self::TooManyQuotas
    }
}

impl Shared {
    /// Buckets in `redis`, on the machine's clock.
    #[must_use]
    pub fn new(redis: RedisStore, options: SharedOptions) -> Self {
        Self::with_clock(redis, options, SystemClock::new())
    }
}

impl<C: Clock> Shared<C> {
    /// The same on another clock. It never decides on a bucket of the store, which has its own; it says how old a
    /// remembered denial is, and runs the buckets of the fallback.
    #[must_use]
    pub fn with_clock(redis: RedisStore, options: SharedOptions, clock: C) -> Self {
        Self { redis, clock, denials: Denials::new(), fallback: Fallback::new(options.fallback) }
    }

    /// The store itself.
    #[must_use]
    pub fn redis(&self) -> &RedisStore {
        &self.redis
    }

    /// The time in this process.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// What need not be asked, decided at `now`.
    fn known_at(&self, charges: &[Charge<'_>], decisions: &mut [Decision], now: Time) -> Option<Verdict> {
        if charges.is_empty() {
            return Some(Verdict::over(charges, decisions));
        }
        if charges.iter().any(can_never_pass) {
            let mut standings: [Standing; CHARGES_MAX] = [Ok(State::FULL); CHARGES_MAX];
            return Some(decide_all(charges, &mut standings[..charges.len()], decisions, now));
        }
        self.denials.verdict_at(charges, decisions, now)
    }

    /// Remembers what the store denied.
    fn remember(&self, asking: Asking, charges: &[Charge<'_>], decisions: &[Decision]) {
        let seen = asking.answered_at(self.clock.now());
        let denied = charges.iter().zip(decisions).filter(|(_, decision)| !decision.is_allowed());
        denied.for_each(|(charge, decision)| self.denials.remember(charge, decision, &seen));
    }
}

fn can_never_pass(charge: &Charge<'_>) -> bool {
    charge.mode == Mode::Enforce && charge.cost.tokens() > charge.quota.burst()
}

impl<C: Clock> Store for Shared<C> {
    type Error = SharedError;

    fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Option<Result<Verdict, SharedError>> {
        let now = self.clock.now();
        if let Some(verdict) = self.known_at(charges, decisions, now) {
            return Some(Ok(verdict));
        }
        (!self.redis.is_up()).then(|| Ok(self.fallback.decide_at(charges, decisions, now)?))
    }

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, SharedError> {
        if let Some(known) = self.decide_now(charges, decisions) {
            return known;
        }
        let asking = self.denials.asking_at(self.clock.now());
        match self.redis.decide(charges, decisions).await {
            Ok(verdict) => {
                if !verdict.allowed {
                    self.remember(asking, charges, decisions);
                }
                Ok(verdict)
            }
            Err(StoreError::OutOfRange(why)) => Err(SharedError::OutOfRange(why)),
            Err(_) => Ok(self.fallback.decide_at(charges, decisions, self.clock.now())?),
        }
    }

    async fn reset(&self, limit: LimitId, key: &[u8]) -> Result<(), SharedError> {
        self.fallback.reset(limit, key);
        let done = self.redis.reset(limit, key).await;
        self.denials.forget(limit, key);
        Ok(done?)
    }

    async fn grant(&self, limit: LimitId, quota: &Quota, key: &[u8], tokens: u64) -> Result<(), SharedError> {
        self.fallback.grant_at(limit, key, tokens, self.clock.now());
        let done = self.redis.grant(limit, quota, key, tokens).await;
        self.denials.forget(limit, key);
        Ok(done?)
    }

    /// While the store is away the fallback decides; what it charges is not open, and stays spent.
    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, SharedError> {
        if let Some(known) = self.decide_now(charges, decisions) {
            return known;
        }
        let asking = self.denials.asking_at(self.clock.now());
        match self.redis.reserve(charges, decisions, id, open_for).await {
            Ok(verdict) => {
                if !verdict.allowed {
                    self.remember(asking, charges, decisions);
                }
                Ok(verdict)
            }
            Err(error @ (StoreError::OutOfRange(_) | StoreError::AlreadyOpen)) => Err(error.into()),
            Err(_) => Ok(self.fallback.decide_at(charges, decisions, self.clock.now())?),
        }
    }

    async fn settle(&self, id: ReservationId, charges: &[Charge<'_>], actual: &[Cost]) -> Result<Settled, SharedError> {
        let settled = self.redis.settle(id, charges, actual).await;
        charges.iter().for_each(|charge| self.denials.forget(charge.limit, charge.key));
        Ok(settled?)
    }

    async fn inspect(&self, limit: LimitId, quota: &Quota, key: &[u8]) -> Result<Option<Kept>, SharedError> {
        Ok(self.redis.inspect(limit, quota, key).await?)
    }
}

impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("redis", &self.redis).finish_non_exhaustive()
    }
}

/// A verdict that did not come from where the buckets are.
fn elsewhere(charges: &[Charge<'_>], decisions: &[Decision], source: Source) -> Verdict {
    Verdict::over(charges, decisions).from_source(source)
}
