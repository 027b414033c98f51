//! The answer.
//!
//! A decision keeps the exact numbers it was made from and computes what is shown only when somebody looks, so that
//! nothing is rounded before it is shown, and nothing is divided that nobody reads.

use core::time::Duration;

use crate::step::{Ruling, Step, step};
use crate::{
    Algorithm, Cost, LogView, Quota, State, Time, fixed_window, sliding_counter, sliding_log, time::span, token_bucket,
};

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may pass.
    Allowed,
    /// Not now. Waiting exactly `retry_after` lets the same cost pass if nobody else asks; a nanosecond less does not.
    Denied {
        /// The least wait.
        retry_after: Duration,
    },
    /// It can never pass: its cost is above the burst, or the limit is zero. There is no wait that would help.
    Never,
}

/// Why there is no bucket to decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeldBy {
    /// The store has no room for another one.
    Room,
    /// The store cannot answer.
    StoreDown,
    /// The key is held back for what it did, whatever its bucket holds.
    Penalty,
}

/// The answer to one charge.
#[must_use = "a decision that nobody looks at limits nothing"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    ruling: Ruling,
    cost: Cost,
    now: Time,
    /// The bucket after the decision, brought up to `now`.
    state: State,
    beside: Beside,
    quota: Quota,
}

/// What a decision knows beside its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// Nothing.
    Nothing,
    /// A wait that has another cause than the bucket, in nanoseconds; at least one.
    Held { ns: u64, by: HeldBy },
    /// The entries of a sliding log that have to leave for one more token, and for the cost; by their instants.
    Leaving { next: Time, enough: Time },
}

impl Beside {
    fn leaving(view: LogView) -> Self {
        Self::Leaving { next: view.next, enough: view.enough }
    }
}

/// May a request of this cost pass now? Gives the answer and the state that follows from it.
///
/// A denial and a look (cost 0) leave the state as it was, but for one thing: where the clock has stepped back so
/// far that the stamp stands further ahead than the bucket takes to fill, a denial returns the repaired stamp.
#[inline]
pub fn decide(quota: &Quota, state: State, cost: Cost, now: Time) -> (Decision, State) {
    let Step { ruling, seen, next } = step(quota, state, cost, now);
    (Decision { ruling, cost, now, state: seen, beside: Beside::Nothing, quota: *quota }, next)
}

/// [`decide`] for a sliding log, from what this cost needs to know of it. If it passes, [`Log::charge`] is to follow, in
/// the same step; if it is denied, [`Log::repair`].
///
/// [`Log::charge`]: crate::Log::charge
/// [`Log::repair`]: crate::Log::repair
pub fn decide_log(quota: &Quota, view: LogView, cost: Cost, now: Time) -> Decision {
    let ruling = view.ruling(quota, cost);
    let is_charged = ruling == Ruling::Allowed && cost > Cost::ZERO;
    let seen = if is_charged { view.charged(cost.tokens(), now) } else { view };
    Decision { ruling, cost, now, state: seen.state(), beside: Beside::leaving(seen), quota: *quota }
}

impl Decision {
    /// A denial that the bucket itself did not make: there is no room for it in the store, say. It lasts for `wait`,
    /// and at least for one nanosecond. A look is allowed all the same, and what can never pass still never does.
    pub fn held(quota: &Quota, cost: Cost, now: Time, wait: Duration) -> Self {
        let ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX).max(1);
        let ruling = match cost.tokens() {
            0 => Ruling::Allowed,
            n if n > quota.burst() => Ruling::Never,
            _ => Ruling::Denied,
        };
        let beside = Beside::Held { ns, by: HeldBy::Room };
        Self { ruling, cost, now, state: State::FULL, beside, quota: *quota }
    }

    /// The same wait, held by something else.
    const fn by(self, by: HeldBy) -> Self {
        match self.beside {
            Beside::Held { ns, .. } => Self { beside: Beside::Held { ns, by }, ..self },
            Beside::Nothing | Beside::Leaving { .. } => self,
        }
    }

    /// A denial because the store cannot answer, which is expected to last for `wait`.
    pub fn without_store(quota: &Quota, cost: Cost, wait: Duration) -> Self {
        Self::held(quota, cost, Time::ZERO, wait).by(HeldBy::StoreDown)
    }

    /// A denial because the key is held back for `wait`, whatever its bucket holds. A look is denied too, so that it shows
    /// the same; what can never pass still never does.
    pub fn held_back(quota: &Quota, cost: Cost, now: Time, wait: Duration) -> Self {
        let held = Self::held(quota, cost, now, wait);
        let ruling = if held.is_never() { Ruling::Never } else { Ruling::Denied };
        Self { ruling, ..held.by(HeldBy::Penalty) }
    }

    /// The decision that nobody has made yet: an allowed look at a full bucket. For filling arrays.
    pub fn unmade(quota: &Quota) -> Self {
        decide(quota, State::FULL, Cost::ZERO, Time::ZERO).0
    }

    /// The same answer, when the charge was not made after all, because another limit denied. `before` is the state that
    /// it was decided on.
    #[inline]
    pub fn uncharged(self, before: State) -> Self {
        let look = step(&self.quota, before, Cost::ZERO, self.now);
        Self { state: look.seen, ..self }
    }

    /// [`Decision::uncharged`] for a sliding log.
    pub fn uncharged_log(self, view: LogView) -> Self {
        Self { state: view.state(), beside: Beside::leaving(view), ..self }
    }

    /// Did it pass?
    #[must_use]
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.ruling, Ruling::Allowed)
    }

    /// What was decided, with the wait if there is one.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.ruling {
            Ruling::Allowed => Outcome::Allowed,
            Ruling::Never => Outcome::Never,
            Ruling::Denied => Outcome::Denied { retry_after: self.wait() },
        }
    }

    /// The least wait before the same cost can pass; `None` if it passed, or never can.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.outcome() {
            Outcome::Denied { retry_after } => Some(retry_after),
            Outcome::Allowed | Outcome::Never => None,
        }
    }

    /// Cost that would still pass now, in tokens.
    ///
    /// A denial can leave some: two tokens are left and five were asked for.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        match self.quota.algorithm() {
            _ if self.held_ns() > 0 => 0,
            Algorithm::TokenBucket => token_bucket::remaining(&self.quota, self.state, self.now),
            Algorithm::FixedWindow => fixed_window::remaining(&self.quota, self.state),
            Algorithm::SlidingCounter => sliding_counter::remaining(&self.quota, self.state, self.now),
            Algorithm::SlidingLog => sliding_log::remaining(&self.quota, self.state),
        }
    }

    /// The time until the bucket is full; zero if it is. Rounded up to a nanosecond.
    #[must_use]
    pub fn reset_after(&self) -> Duration {
        let ns = match self.quota.algorithm() {
            Algorithm::TokenBucket => token_bucket::reset_ns(&self.quota, self.state, self.now),
            Algorithm::FixedWindow => fixed_window::reset_ns(&self.quota, self.state, self.now),
            Algorithm::SlidingCounter => sliding_counter::reset_ns(&self.quota, self.state, self.now),
            Algorithm::SlidingLog => sliding_log::reset_ns(&self.quota, self.state, self.now),
        };
        span(ns.max(u128::from(self.held_ns())))
    }

    /// The time until at least one more token can be taken than now; zero if the bucket is full.
    #[must_use]
    pub fn next_token_after(&self) -> Duration {
        let more = self.remaining().saturating_add(1);
        if self.held_ns() > 0 {
            return Duration::from_nanos(self.held_ns());
        }
        if more > self.quota.burst() {
            return self.reset_after();
        }
        span(self.wait_ns_for(Cost::new(more), self.leaving().0))
    }

    /// The quota that it was decided under.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The cost that was asked for.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// The bucket after the decision, brought up to [`Decision::decided_at`].
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The instant at which it was decided, on the store's clock.
    #[must_use]
    pub const fn decided_at(&self) -> Time {
        self.now
    }

    /// What decided, if it was not the bucket: there is none to be had.
    #[must_use]
    pub const fn held_by(&self) -> Option<HeldBy> {
        match self.beside {
            Beside::Held { by, .. } => Some(by),
            Beside::Nothing | Beside::Leaving { .. } => None,
        }
    }

    /// Denied, and can never pass?
    #[must_use]
    pub const fn is_never(&self) -> bool {
        matches!(self.ruling, Ruling::Never)
    }

    fn wait(&self) -> Duration {
        if self.held_ns() > 0 {
            return Duration::from_nanos(self.held_ns());
        }
        span(self.wait_ns_for(self.cost, self.leaving().1))
    }

    /// A wait that has another cause than the bucket, in nanoseconds; zero if there is none.
    const fn held_ns(&self) -> u64 {
        match self.beside {
            Beside::Held { ns, .. } => ns,
            Beside::Nothing | Beside::Leaving { .. } => 0,
        }
    }

    /// The entries of a log that have to leave for one more token, and for the cost. A state shows a log of one.
    const fn leaving(&self) -> (Time, Time) {
        match self.beside {
            Beside::Leaving { next, enough } => (next, enough),
            Beside::Nothing | Beside::Held { .. } => (self.state.stamp, self.state.stamp),
        }
    }

    /// The wait for `cost`; of a log, for the entry that must leave for it.
    fn wait_ns_for(&self, cost: Cost, leaving: Time) -> u128 {
        match self.quota.algorithm() {
            Algorithm::TokenBucket => token_bucket::wait_ns(&self.quota, self.state, cost, self.now),
            Algorithm::FixedWindow => fixed_window::wait_ns(&self.quota, self.state, self.now),
            Algorithm::SlidingCounter => sliding_counter::wait_ns(&self.quota, self.state, cost, self.now),
            Algorithm::SlidingLog => sliding_log::wait_ns(&self.quota, leaving, self.now),
        }
    }
}
