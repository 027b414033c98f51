//! The state of one bucket, and what can happen to it.
//!
//! Two numbers: what is missing to full, and when that was true. The functions here choose the algorithm's file.

use crate::{Algorithm, Quota, Time, fixed_window, sliding_counter, sliding_log, token_bucket};

/// What a bucket remembers: its deficit in whole tokens, and the instant at which that was the deficit.
///
/// It means something only together with the [`Quota`] it was written under; [`carry_over`] takes it to another.
/// For a fixed window the deficit is the count so far and the stamp is the start of the window. For a sliding counter the
/// stamp lies before that start by as many nanoseconds as were counted in the window before. A sliding log is more than
/// two numbers, see [`Log`](crate::Log): here it has one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub(crate) deficit: u64,
    pub(crate) stamp: Time,
}

impl State {
    /// A bucket that was never used. A bucket that has refilled behaves exactly like this one.
    pub const FULL: Self = Self { deficit: 0, stamp: Time::ZERO };

    /// No deficit that a decision leaves reaches this: 2^34 tokens.
    pub const DEFICIT_END: u64 = 1 << 34;

    /// The state with `deficit` tokens missing at `stamp`.
    #[must_use]
    pub const fn from_parts(deficit: u64, stamp: Time) -> Self {
        Self { deficit, stamp }
    }

    /// The state of a sliding counter: `present` tokens are counted in the window that began at `start`, and `before` in
    /// the one before it. For stores that count in ticks of their own.
    #[must_use]
    pub fn of_counts(quota: &Quota, before: u64, present: u64, start: Time) -> Self {
        sliding_counter::of_counts(quota, before, present, start)
    }

    /// Tokens missing to full at [`State::stamp`].
    #[must_use]
    pub const fn deficit(self) -> u64 {
        self.deficit
    }

    /// The instant at which the deficit was true.
    #[must_use]
    pub const fn stamp(self) -> Time {
        self.stamp
    }
}

/// The instant from which on the bucket is full, and its state may be forgotten. At most [`Time::MAX`].
#[must_use]
#[inline]
pub fn full_at(quota: &Quota, state: State) -> Time {
    match quota.algorithm() {
        Algorithm::TokenBucket => token_bucket::full_at(quota, state),
        Algorithm::FixedWindow => fixed_window::full_at(quota, state),
        Algorithm::SlidingCounter => sliding_counter::full_at(quota, state),
        Algorithm::SlidingLog => sliding_log::full_at(quota, state),
    }
}

/// The state with `tokens` given back, at most to full.
#[must_use]
pub fn grant(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    match quota.algorithm() {
        Algorithm::TokenBucket => token_bucket::grant(quota, state, tokens, now),
        Algorithm::FixedWindow => fixed_window::grant(quota, state, tokens, now),
        Algorithm::SlidingCounter => sliding_counter::grant(quota, state, tokens, now),
        Algorithm::SlidingLog => sliding_log::of_one(quota, state, now, |log| log.grant(quota, tokens, now)),
    }
}

/// The state that owes `tokens` more, whether they are there or not: a debt.
///
/// At most one further burst is owed: no more than two are ever missing. Nothing passes until less than one is.
#[must_use]
pub fn owe(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    match quota.algorithm() {
        _ if tokens == 0 => state,
        Algorithm::TokenBucket => token_bucket::owe(quota, state, tokens, now),
        Algorithm::FixedWindow => fixed_window::owe(quota, state, tokens, now),
        Algorithm::SlidingCounter => sliding_counter::owe(quota, state, tokens, now),
        Algorithm::SlidingLog => sliding_log::of_one(quota, state, now, |log| log.owe(quota, tokens, now)),
    }
}

/// The state written under quota `old`, as quota `new` continues it.
///
/// What the key owes is counted in tokens and is kept; a deficit above the new burst becomes the new burst. Under
/// another algorithm the bucket starts fresh.
#[must_use]
pub fn carry_over(old: &Quota, new: &Quota, state: State, now: Time) -> State {
    if old == new {
        return state;
    }
    match (old.algorithm(), new.algorithm()) {
        (Algorithm::TokenBucket, Algorithm::TokenBucket) => token_bucket::carry_over(old, new, state, now),
        (Algorithm::FixedWindow, Algorithm::FixedWindow) => fixed_window::carry_over(old, new, state, now),
        (Algorithm::SlidingCounter, Algorithm::SlidingCounter) => sliding_counter::carry_over(old, new, state, now),
        (Algorithm::SlidingLog, Algorithm::SlidingLog) => {
            sliding_log::of_one(old, state, now, |log| log.carry_over(old, new, now))
        }
        _ => State::FULL,
    }
}
