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
mod leases;
mod lending;
mod seen;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    CHARGES_MAX, Charge, Cost, Decision, Kept, LimitId, Quota, ReservationId, Settled, Source, Standing, State, Store,
    Time, Verdict, decide_all,
};
use tidegate_memory::TableOptions;
use tidegate_redis::{OutOfRange, RedisStore, StoreError};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::shared::denied::Denials;
use crate::shared::fallback::Fallback;
use crate::shared::leases::{Leases, are_leased};
use crate::shared::seen::Asking;
use crate::{Clock, SystemClock, TooManyQuotas};

/// What a [`Shared`] store is made of, beside the connection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SharedOptions {
    /// The table in which limits are counted while the store is away, if their failure mode is `local`.
    pub fallback: TableOptions,
}

/// Buckets in a store outside of this process. Clones share everything.
///
/// It fails only on what no store could decide; that the server is away is no error: each limit has a
/// [`FailureMode`](crate::FailureMode), and the answer says that it decided ([`Source::Fallback`]).
pub struct Shared<C = SystemClock> {
    inner: Arc<Inner<C>>,
}

struct Inner<C> {
    redis: RedisStore,
    clock: C,
    denials: Denials,
    leases: Leases,
    fallback: Fallback,
    runtime: Handle,
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
    ///
    /// # Panics
    /// It is called outside of a tokio runtime. Leases are renewed and returned in the one it is called in.
    #[must_use]
    pub fn new(redis: RedisStore, options: SharedOptions) -> Self {
        Self::with_clock(redis, options, SystemClock::new())
    }
}

impl<C: Clock> Shared<C> {
    /// The same on another clock. It never decides on a bucket of the store, which has its own; it says how old a
    /// remembered denial is, and runs the buckets of the fallback.
    ///
    /// # Panics
    /// As [`Shared::new`].
    #[must_use]
    pub fn with_clock(redis: RedisStore, options: SharedOptions, clock: C) -> Self {
        let runtime = Handle::current();
        let (denials, leases, fallback) = (Denials::new(), Leases::new(), Fallback::new(options.fallback));
        let inner = Arc::new(Inner { redis, clock, denials, leases, fallback, runtime });
        inner.runtime.spawn(lending::give_back_unneeded(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// The store itself.
    #[must_use]
    pub fn redis(&self) -> &RedisStore {
        &self.inner.redis
    }

    /// The time in this process.
    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    /// The tokens that this process has taken ahead and not spent, over all keys.
    #[must_use]
    pub fn leased_tokens(&self) -> u64 {
        self.inner.leases.tokens()
    }

    /// Gives back what this process has taken ahead. For a process that is about to end.
    pub async fn give_back_leases(&self) {
        self.inner.give_back_all().await;
    }
}

impl<C: Clock> Inner<C> {
    /// What can be said without asking the store.
    fn decide_now(
        self: &Arc<Self>,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> Option<Result<Verdict, SharedError>> {
        let now = self.clock.now();
        match self.spend_at(charges, decisions, now) {
            Some(verdict) => Some(Ok(verdict)),
            None => self.unasked_at(charges, decisions, now),
        }
    }

    /// What can be said without the store and without spending ahead of it.
    fn unasked_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Option<Result<Verdict, SharedError>> {
        match self.known_at(charges, decisions, now) {
            Some(verdict) => Some(Ok(verdict)),
            None if self.redis.is_up() => None,
            None => Some(self.fallback.decide_at(charges, decisions, now).map_err(SharedError::from)),
        }
    }

    /// Pays with tokens that were taken ahead.
    fn spend_at(self: &Arc<Self>, charges: &[Charge<'_>], decisions: &mut [Decision], now: Time) -> Option<Verdict> {
        if charges.is_empty() || !are_leased(charges) {
            return None;
        }
        let spent = self.leases.spend_at(charges, decisions, now)?;
        if self.redis.is_up() {
            spent.low(charges).for_each(|charge| self.refill(charge));
        }
        Some(spent.verdict)
    }

    /// Waits for what is not known here.
    async fn wait(
        self: &Arc<Self>,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> Result<Verdict, SharedError> {
        if !are_leased(charges) {
            return self.ask(charges, decisions).await;
        }
        // A batch and then perhaps an exact decision: both within the one deadline.
        match timeout(self.redis.deadline(), self.wait_for_leases(charges, decisions)).await {
            Ok(answer) => answer,
            Err(_) => Ok(self.fallback.decide_at(charges, decisions, self.clock.now())?),
        }
    }

    /// Takes the next batches, or waits for those that are on their way, and is decided by them; exactly, if they do not
    /// suffice. So a spike on one key is one call to the store, not one for each request.
    async fn wait_for_leases(
        self: &Arc<Self>,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> Result<Verdict, SharedError> {
        for charge in charges {
            self.refill(charge);
            self.leases.until_refilled(charge).await;
        }
        match self.decide_now(charges, decisions) {
            Some(known) => known,
            None => self.ask(charges, decisions).await,
        }
    }

    /// Asks the store, and does what follows from its answer; without one, what the limits declared.
    async fn ask(self: &Arc<Self>, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, SharedError> {
        let asking = self.denials.asking_at(self.clock.now());
        let answer = self.redis.decide(charges, decisions).await;
        self.follow(answer, asking, charges, decisions)
    }

    /// The store's answer, of which a denial is remembered; without one, what the limits declared.
    fn follow(
        &self,
        answer: Result<Verdict, StoreError>,
        asking: Asking,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
    ) -> Result<Verdict, SharedError> {
        match answer {
            Ok(verdict) => {
                if !verdict.allowed {
                    self.remember(asking, charges, decisions);
                }
                Ok(verdict)
            }
            Err(error) if is_refusal(&error) => Err(error.into()),
            Err(_) => Ok(self.fallback.decide_at(charges, decisions, self.clock.now())?),
        }
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

/// Did the store not fail, but refuse what no store could decide?
fn is_refusal(error: &StoreError) -> bool {
    matches!(error, StoreError::OutOfRange(_) | StoreError::AlreadyOpen)
}

fn can_never_pass(charge: &Charge<'_>) -> bool {
    charge.mode.is_enforced() && charge.cost.tokens() > charge.quota.burst()
}

impl<C: Clock> Store for Shared<C> {
    type Error = SharedError;

    fn decide_now(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Option<Result<Verdict, SharedError>> {
        self.inner.decide_now(charges, decisions)
    }

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, SharedError> {
        match self.inner.decide_now(charges, decisions) {
            Some(known) => known,
            None => self.inner.wait(charges, decisions).await,
        }
    }

    async fn reset(&self, limit: LimitId, key: &[u8]) -> Result<(), SharedError> {
        let Inner { redis, denials, leases, fallback, .. } = &*self.inner;
        fallback.reset(limit, key);
        leases.forget(limit, key);
        let done = redis.reset(limit, key).await;
        denials.forget(limit, key);
        Ok(done?)
    }

    async fn grant(&self, limit: LimitId, quota: &Quota, key: &[u8], tokens: u64) -> Result<(), SharedError> {
        let Inner { redis, clock, denials, fallback, .. } = &*self.inner;
        fallback.grant_at(limit, key, tokens, clock.now());
        let done = redis.grant(limit, quota, key, tokens).await;
        denials.forget(limit, key);
        Ok(done?)
    }

    /// While the store is away the fallback decides, and what it charges is settled there.
    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, SharedError> {
        let Inner { redis, clock, denials, fallback, .. } = &*self.inner;
        // A reservation is open in the store, so no lease can pay for it.
        if let Some(known) = self.inner.known_at(charges, decisions, clock.now()) {
            return Ok(known);
        }
        if redis.is_up() {
            let asking = denials.asking_at(clock.now());
            let answer = redis.reserve(charges, decisions, id, open_for).await;
            if answer.is_ok() || answer.as_ref().is_err_and(is_refusal) {
                return self.inner.follow(answer, asking, charges, decisions);
            }
        }
        Ok(fallback.reserve_at(charges, decisions, id, open_for, clock.now())?)
    }

    async fn settle(&self, id: ReservationId, charges: &[Charge<'_>], actual: &[Cost]) -> Result<Settled, SharedError> {
        let Inner { redis, clock, denials, fallback, .. } = &*self.inner;
        let is_settled = fallback.settle_at(id, charges, actual, clock.now())?;
        if is_settled && !redis.is_up() {
            return Ok(Settled::Settled);
        }
        // Also what the fallback decided: the store can have reserved it, and only its answer was lost.
        let settled = redis.settle(id, charges, actual).await;
        charges.iter().for_each(|charge| denials.forget(charge.limit, charge.key));
        if is_settled { Ok(Settled::Settled) } else { Ok(settled?) }
    }

    async fn inspect(&self, limit: LimitId, quota: &Quota, key: &[u8]) -> Result<Option<Kept>, SharedError> {
        Ok(self.inner.redis.inspect(limit, quota, key).await?)
    }
}

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<C> fmt::Debug for Shared<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("redis", &self.inner.redis).finish_non_exhaustive()
    }
}

/// A verdict that did not come from where the buckets are.
fn elsewhere(charges: &[Charge<'_>], decisions: &[Decision], source: Source) -> Verdict {
    Verdict::over(charges, decisions).from_source(source)
}
