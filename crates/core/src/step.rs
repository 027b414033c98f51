//! What an algorithm returns: the mould that all of them share.

use crate::{Algorithm, Cost, Quota, State, Time, fixed_window, sliding_counter, sliding_log, token_bucket};

/// What was ruled, before anybody asks for the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    Allowed,
    Denied,
    Never,
}

/// One step of an algorithm.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) ruling: Ruling,
    /// The bucket after the step, brought up to now: what is shown.
    pub(crate) seen: State,
    /// The state that follows: what is kept.
    pub(crate) next: State,
}

/// Takes the quota's algorithm one step.
#[inline]
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    match quota.algorithm() {
        Algorithm::TokenBucket => token_bucket::step(quota, state, cost, now),
        Algorithm::FixedWindow | Algorithm::SlidingCounter | Algorithm::SlidingLog => {
            step_of_windows(quota, state, cost, now)
        }
    }
}

/// Apart, so that the usual algorithm stays short where it is inlined.
#[cold]
#[inline(never)]
fn step_of_windows(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    match quota.algorithm() {
        Algorithm::TokenBucket => token_bucket::step(quota, state, cost, now),
        Algorithm::FixedWindow => fixed_window::step(quota, state, cost, now),
        Algorithm::SlidingCounter => sliding_counter::step(quota, state, cost, now),
        Algorithm::SlidingLog => sliding_log::step(quota, state, cost, now),
    }
}
