//! The fixed window, naive on purpose: a count per period, which starts again at each edge.
//!
//! Windows are aligned to the clock's epoch: window k is [k p, (k + 1) p). At most N pass in each, so around an edge
//! up to 2 N pass within one period. The token bucket next door does not have that fault; this one stays because
//! people know it, and because seeing the burst at the edge is how one understands the other.
//!
//! The state's deficit is the count so far, its stamp the start of the window that was counted.

use core::num::NonZeroU64;

use crate::step::{Ruling, Step};
use crate::{Cost, Quota, State, Time};

#[inline]
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    let advanced = advance(quota, state, now);
    let n = cost.tokens();
    if n == 0 {
        return Step { ruling: Ruling::Allowed, seen: advanced, next: state };
    }
    if n > quota.burst() {
        return Step { ruling: Ruling::Never, seen: advanced, next: state };
    }
    if advanced.deficit + n <= quota.burst() {
        let charged = State { deficit: advanced.deficit + n, stamp: advanced.stamp };
        return Step { ruling: Ruling::Allowed, seen: charged, next: charged };
    }
    let kept = if advanced.stamp < state.stamp { advanced } else { state };
    Step { ruling: Ruling::Denied, seen: advanced, next: kept }
}

/// The same window, or an empty one if its time is over.
#[inline]
fn advance(quota: &Quota, state: State, now: Time) -> State {
    let period_ns = quota.rate().period_ns();
    let State { deficit, stamp } = state;
    let window = window_start(period_ns, now);
    if deficit == 0 || window > stamp {
        return State { deficit: 0, stamp: window };
    }
    // A clock that stepped back does not reopen a window; but one that is further ahead than a period is repaired.
    let ahead_ns = stamp.as_nanos().saturating_sub(now.as_nanos());
    if ahead_ns > period_ns.get() { State { deficit, stamp: window } } else { state }
}

fn window_start(period_ns: NonZeroU64, now: Time) -> Time {
    Time::from_nanos(now.as_nanos() - now.as_nanos() % period_ns)
}

/// Whole tokens that would still pass in this window.
pub(crate) fn remaining(quota: &Quota, advanced: State) -> u64 {
    quota.burst().saturating_sub(advanced.deficit)
}

/// The time until `cost` passes, in nanoseconds: nothing passes before the window's end, and any cost does then.
pub(crate) fn wait_ns(quota: &Quota, advanced: State, now: Time) -> u128 {
    let end = u128::from(advanced.stamp.as_nanos()) + u128::from(quota.rate().period_ns().get());
    end.saturating_sub(u128::from(now.as_nanos()))
}

/// The time until the window is empty again, in nanoseconds.
pub(crate) fn reset_ns(quota: &Quota, advanced: State, now: Time) -> u128 {
    if advanced.deficit == 0 { 0 } else { wait_ns(quota, advanced, now) }
}

#[inline]
pub(crate) fn full_at(quota: &Quota, state: State) -> Time {
    if state.deficit == 0 {
        return Time::ZERO;
    }
    Time::from_nanos(state.stamp.as_nanos().saturating_add(quota.rate().period_ns().get()))
}

pub(crate) fn grant(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let advanced = advance(quota, state, now);
    match advanced.deficit.saturating_sub(tokens) {
        0 => State::FULL,
        deficit => State { deficit, stamp: advanced.stamp },
    }
}

/// A debt is at most one further count. It is over when the window is.
pub(crate) fn owe(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let advanced = advance(quota, state, now);
    State { deficit: advanced.deficit.saturating_add(tokens).min(2 * quota.burst()), ..advanced }
}

/// When the window that is open now began.
pub(crate) fn open_since(quota: &Quota, state: State, now: Time) -> Time {
    advance(quota, state, now).stamp
}

/// The count of the window that is open now goes over into the new quota's window.
pub(crate) fn carry_over(old: &Quota, new: &Quota, state: State, now: Time) -> State {
    let advanced = advance(old, state, now);
    match advanced.deficit.min(new.burst()) {
        0 => State::FULL,
        deficit => State { deficit, stamp: window_start(new.rate().period_ns(), advanced.stamp.max(now)) },
    }
}
