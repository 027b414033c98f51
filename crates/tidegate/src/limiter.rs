//! Named limits over a store.
//!
//! One limiter holds one limit or several; all of them are charged to the key that it is asked about, or none is. Over
//! memory the answer comes at once; over any store it comes as a future. Both are the same road.

use std::fmt;
use std::time::Duration;

use tidegate_core::{Charge, Cost, Decision, Handling, Limit, LimitId, Mode, OPEN_FOR, Quota, Store, Time};
use tidegate_memory::{QuotaCell, TooManyQuotas};

use crate::charges::Charges;
use crate::{Answer, Clock, Demand, Key, LimiterBuilder, Memory};

/// The policy name under which the limits of a limiter stand, unless another is given.
pub(crate) const POLICY_DEFAULT: &str = "default";

/// Limits for one key each time it is asked. Share it by reference, or in an `Arc`.
///
/// ```
/// use tidegate::Limiter;
///
/// let limiter = Limiter::new("100/min burst 20".parse()?);
/// let answer = limiter.check("user-42");
/// assert!(answer.is_allowed());
/// assert_eq!(answer.remaining(), Some(19));
/// # Ok::<(), tidegate::LimitError>(())
/// ```
pub struct Limiter<S = Memory> {
    store: S,
    limits: Vec<NamedLimit>,
    pub(crate) open_for: Duration,
    #[cfg(feature = "wait")]
    pub(crate) turns: crate::wait::Turns,
}

struct NamedLimit {
    name: String,
    id: LimitId,
    handling: Handling,
    mode: Mode,
    quota: QuotaCell,
}

impl Limiter<Memory> {
    /// A limiter with one limit, called `default`, in this process: the machine's clock, room for
    /// [`KEYS_DEFAULT`](tidegate_memory::KEYS_DEFAULT) keys.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        LimiterBuilder::default().limit(POLICY_DEFAULT, limit).build()
    }

    /// A limiter with several limits, or with other settings.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }
}

impl<S> Limiter<S> {
    pub(crate) fn assemble(policy: &str, limits: Vec<(String, Limit, Mode)>, handling: Handling, store: S) -> Self {
        let named = |(name, limit, mode): (String, Limit, Mode)| NamedLimit {
            id: LimitId::of(policy, &name),
            name,
            handling,
            mode,
            quota: QuotaCell::new(limit.quota()),
        };
        Self {
            store,
            limits: limits.into_iter().map(named).collect(),
            open_for: OPEN_FOR,
            #[cfg(feature = "wait")]
            turns: crate::wait::Turns::default(),
        }
    }

    pub(crate) fn with_open_for(self, open_for: Duration) -> Self {
        Self { open_for, ..self }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The name of the limit at this place; [`Answer::binding`] is one.
    #[must_use]
    pub fn limit_name(&self, place: usize) -> Option<&str> {
        self.limits.get(place).map(|limit| limit.name.as_str())
    }

    /// The limits in force, in their order: name, mode, and quota, which is `None` where nothing is limited.
    pub fn limits(&self) -> impl Iterator<Item = (&str, Mode, Option<Quota>)> {
        self.limits.iter().map(|limit| (limit.name.as_str(), limit.mode, limit.quota.load().0))
    }

    fn place(&self, name: &str) -> Result<&NamedLimit, ReplaceError> {
        self.limits.iter().find(|limit| limit.name == name).ok_or(ReplaceError::UnknownLimit)
    }

    /// What each limit charges `key`. `None` if nothing is limited.
    pub(crate) fn charges<'k>(&self, key: &'k [u8], demand: &Demand) -> Option<Charges<'k>> {
        let mut charges: Option<Charges<'k>> = None;
        for (place, limit) in self.limits.iter().enumerate() {
            if let Some(charge) = limit.charge(key, demand, demand.quota.filter(|_| place == 0)) {
                charges.get_or_insert_with(|| Charges::filled_with(charge)).push(place, charge);
            }
        }
        charges
    }
}

impl NamedLimit {
    /// What it charges `key`: under `own`, if the key brings a quota. `None` if nothing is limited.
    #[inline]
    fn charge<'k>(&self, key: &'k [u8], demand: &Demand, own: Option<Quota>) -> Option<Charge<'k>> {
        let (in_force, since) = self.quota.load();
        let (quota, handling) = match own {
            Some(own) => (own, self.handling),
            None => (in_force?, self.handling.with_in_force_since(since)),
        };
        let limit = if demand.is_stand_in { self.id.for_stand_ins() } else { self.id };
        Some(Charge { limit, quota, key, cost: demand.cost, mode: self.mode, handling })
    }
}

impl<S: Store> Limiter<S> {
    /// May `key` take what is asked for, such as so many tokens? Takes it if so.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn decide<K: Key + ?Sized>(&self, key: &K, demand: impl Into<Demand>) -> Result<Answer, S::Error> {
        let demand = demand.into();
        let key = key.with_bytes(<[u8]>::to_vec);
        let Some(charges) = self.charges(&key, &demand) else { return Ok(Answer::UNLIMITED) };
        let mut decisions = charges.decisions();
        let decisions = &mut decisions[..charges.length];
        let verdict = self.store.decide(charges.as_slice(), decisions).await?;
        Ok(charges.answer(verdict, decisions))
    }

    /// What [`Limiter::decide`] would answer, if it can be said without waiting. Otherwise nothing was taken, and
    /// [`Limiter::decide`] is to be asked.
    #[inline]
    pub fn decide_now<K: Key + ?Sized>(&self, key: &K, demand: impl Into<Demand>) -> Option<Result<Answer, S::Error>> {
        let demand = demand.into();
        key.with_bytes(|key| match self.limits.as_slice() {
            [only] => self.decide_only_now(only, key, &demand),
            _ => self.decide_all_now(key, &demand),
        })
    }

    #[inline]
    fn decide_only_now(&self, only: &NamedLimit, key: &[u8], demand: &Demand) -> Option<Result<Answer, S::Error>> {
        let Some(charge) = only.charge(key, demand, demand.quota) else { return Some(Ok(Answer::UNLIMITED)) };
        let decided = self.store.decide_one_now(&charge)?;
        Some(decided.map(|(decision, source)| match only.mode {
            Mode::Enforce | Mode::Guard => Answer { source, ..Answer::of(0, decision) },
            Mode::Shadow => Answer { source, ..Answer::UNLIMITED },
        }))
    }

    fn decide_all_now(&self, key: &[u8], demand: &Demand) -> Option<Result<Answer, S::Error>> {
        let Some(charges) = self.charges(key, demand) else { return Some(Ok(Answer::UNLIMITED)) };
        let mut decisions = charges.decisions();
        let decisions = &mut decisions[..charges.length];
        let verdict = self.store.decide_now(charges.as_slice(), decisions)?;
        Some(verdict.map(|verdict| charges.answer(verdict, decisions)))
    }
}

impl<C: Clock> Limiter<Memory<C>> {
    /// May `key` pass? Takes one token of each limit if so.
    #[inline]
    pub fn check<K: Key + ?Sized>(&self, key: &K) -> Answer {
        self.check_cost(key, Cost::ONE)
    }

    /// May `key` take `cost` tokens? Takes them of each limit if so.
    #[inline]
    pub fn check_cost<K: Key + ?Sized>(&self, key: &K, cost: impl Into<Cost>) -> Answer {
        self.check_at(key, cost, self.store.now())
    }

    /// Looks and changes nothing.
    pub fn peek<K: Key + ?Sized>(&self, key: &K) -> Answer {
        self.check_cost(key, Cost::ZERO)
    }

    /// The body of all checks: decides at `now`, which must come from the limiter's clock or, in a test, be it.
    #[inline]
    pub fn check_at<K: Key + ?Sized>(&self, key: &K, cost: impl Into<Cost>, now: Time) -> Answer {
        let cost = cost.into();
        match self.limits.as_slice() {
            [only] if only.mode == Mode::Enforce => self.check_only(only, key, cost, now),
            _ => key.with_bytes(|key| self.check_all(self.charges(key, &Demand::of(cost)), now)),
        }
    }

    /// A quota per key: decides under `quota`, which this key brings (its plan, say), in place of the first limit's.
    ///
    /// The bucket is the same whatever the quota; another quota than the last time is a changed limit, so what the key
    /// owes is kept.
    ///
    /// # Errors
    /// More different quotas were brought than a table can know; then nothing is charged.
    pub fn check_quota<K: Key + ?Sized>(
        &self,
        key: &K,
        quota: &Quota,
        cost: impl Into<Cost>,
    ) -> Result<Answer, TooManyQuotas> {
        let demand = Demand { quota: Some(*quota), ..Demand::of(cost.into()) };
        let now = self.store.now();
        key.with_bytes(|key| match self.charges(key, &demand) {
            Some(charges) => self.try_check_all(&charges, now),
            None => Ok(Answer::UNLIMITED),
        })
    }

    /// Puts another limit in force for the limit called `name`. What its keys owe is kept, in tokens.
    ///
    /// # Errors
    /// There is no such limit, or its table knows too many quotas; then nothing is changed.
    pub fn replace(&self, name: &str, with: Limit) -> Result<(), ReplaceError> {
        let limit = self.place(name)?;
        let quota = with.quota();
        if let Some(quota) = quota {
            self.store.table().know(limit.id, &quota, limit.handling.at_bound)?;
        }
        limit.quota.replace(quota, self.store.now());
        Ok(())
    }

    /// Forgets what `key` owes.
    pub fn reset<K: Key + ?Sized>(&self, key: &K) {
        key.with_bytes(|key| self.limits.iter().for_each(|limit| self.store.table().reset(limit.id, key)));
    }

    /// Gives `tokens` back to `key`, at most to full.
    pub fn grant<K: Key + ?Sized>(&self, key: &K, tokens: u64) {
        let now = self.store.now();
        key.with_bytes(|key| {
            self.limits.iter().for_each(|limit| self.store.table().grant_at(limit.id, key, tokens, now));
        });
    }

    #[inline]
    fn check_only<K: Key + ?Sized>(&self, only: &NamedLimit, key: &K, cost: Cost, now: Time) -> Answer {
        let (Some(quota), since) = only.quota.load() else { return Answer::UNLIMITED };
        // Every quota in the cell was made known when it was put there, or is learnt here once.
        match self.store.table().know(only.id, &quota, only.handling.at_bound) {
            Ok(limit) => {
                let limit = limit.in_force_since(since);
                key.with_bytes(|key| Answer::of(0, self.store.table().check_at(&limit, key, cost, now)))
            }
            Err(TooManyQuotas) => Answer::of(0, refused(&quota, cost, now)),
        }
    }

    fn check_all(&self, charges: Option<Charges<'_>>, now: Time) -> Answer {
        let Some(charges) = charges else { return Answer::UNLIMITED };
        self.try_check_all(&charges, now).unwrap_or_else(|TooManyQuotas| {
            let Charge { quota, cost, .. } = charges.list[0];
            Answer::of(charges.places[0], refused(&quota, cost, now))
        })
    }

    fn try_check_all(&self, charges: &Charges<'_>, now: Time) -> Result<Answer, TooManyQuotas> {
        let mut decisions = charges.decisions();
        let decisions = &mut decisions[..charges.length];
        let verdict = self.store.table().decide_at(charges.as_slice(), decisions, now)?;
        Ok(charges.answer(verdict, decisions))
    }
}

/// A denial by a table that could not even learn the quota: it holds for a second.
fn refused(quota: &Quota, cost: Cost, now: Time) -> Decision {
    Decision::held(quota, cost, now, Duration::from_secs(1))
}

/// Why a limit was not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The limiter has no limit of this name.
    UnknownLimit,
    /// See [`TooManyQuotas`].
    TooManyQuotas,
}

impl From<TooManyQuotas> for ReplaceError {
    fn from(TooManyQuotas: TooManyQuotas) -> Self {
        Self::TooManyQuotas
    }
}

impl fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLimit => f.write_str("the limiter has no limit of this name"),
            Self::TooManyQuotas => TooManyQuotas.fmt(f),
        }
    }
}

impl std::error::Error for ReplaceError {}

impl<S> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.limits.iter().map(|limit| (&limit.name, &limit.quota))).finish()
    }
}
