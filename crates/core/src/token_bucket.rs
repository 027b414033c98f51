//! The token bucket, exact.
//!
//! The rate is c tokens per p nanoseconds, in lowest terms. The state says that d whole tokens were missing at
//! instant s; so at instant t >= s the bucket lacks
//!
//! ```text
//! x(t) = max(0, d - (t - s) c / p)     tokens
//! ```
//!
//! and a request of cost n may pass if x + n <= burst. Multiplied by p everything is an integer.
//!
//! To keep d an integer without rounding, the stamp moves only in whole steps of p, each of which pays back exactly
//! c tokens; the rest of the elapsed time stays in the stamp. When the bucket is full there is nothing to keep, and
//! the stamp moves to t. So no refill is lost however often the bucket is asked, and none is made up.
//!
//! This admits exactly what GCRA admits, whose single number (the time at which the bucket will be full) is
//! s + d p / c: the same information in another coat.
//!
//! A settled reservation can leave a debt: then up to two bursts are missing, and until less than one is, nothing passes.
//!
//! The sizes: d < 2^34 (two bursts of at most 2^32 and the c <= 2^32 that the stamp has not paid back yet),
//! p < 2^55 (a year), c <= 2^32, instants and spans < 2^64. No product below reaches 2^97.

use crate::step::{Ruling, Step};
use crate::{Cost, Quota, State, Time};

#[inline]
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    let repaired = repair(quota, state, now);
    let advanced = advance(quota, repaired, now);
    let n = cost.tokens();
    if n == 0 {
        return Step { ruling: Ruling::Allowed, seen: advanced, next: state };
    }
    if n > quota.burst() {
        return Step { ruling: Ruling::Never, seen: advanced, next: state };
    }
    if lacking(quota, advanced, n, now) == 0 {
        let charged = State { deficit: advanced.deficit + n, stamp: advanced.stamp };
        return Step { ruling: Ruling::Allowed, seen: charged, next: charged };
    }
    Step { ruling: Ruling::Denied, seen: advanced, next: repaired }
}

/// The same bucket, unless the clock has stepped back so far that waiting does not explain its state: if the stamp
/// stands further ahead than the deficit, or the burst if that is more, takes to come back, it becomes now.
///
/// A bucket never lacks more than two bursts. So of a deficit above them the rest had come back before the last charge
/// already: the clock was that much past the stamp, which is the state's other reading.
#[inline]
fn repair(quota: &Quota, state: State, now: Time) -> State {
    let State { deficit, stamp } = state;
    let kept = deficit.min(2 * quota.burst());
    let over = deficit - kept;
    if (now >= stamp && over == 0) || deficit == 0 {
        return state;
    }
    let (c, p) = (quota.rate().tokens.get(), quota.rate().per_ns.get());
    let ahead_from = product(stamp.as_nanos(), c).saturating_add(product(over, p));
    let explained = ahead_from <= product(now.as_nanos(), c).saturating_add(product(kept.max(quota.burst()), p));
    if explained { state } else { State { deficit: kept, stamp: now } }
}

/// The same bucket, its state brought up to `now`: empty of whole steps, and forgotten if it is full.
#[inline]
fn advance(quota: &Quota, state: State, now: Time) -> State {
    let (c, p) = (quota.rate().tokens.get(), quota.rate().per_ns);
    let State { deficit, stamp } = state;
    if deficit == 0 {
        return State { deficit: 0, stamp: now };
    }
    // A clock that stepped back: no refill for time that was already counted.
    let Some(elapsed) = now.as_nanos().checked_sub(stamp.as_nanos()) else { return state };
    if product(elapsed, c) >= product(deficit, p.get()) {
        return State { deficit: 0, stamp: now };
    }
    if elapsed < p.get() {
        return state;
    }
    // Not full, so the steps pay back less than the deficit.
    let steps = elapsed / p;
    State { deficit: deficit - steps * c, stamp: Time::from_nanos(stamp.as_nanos() + steps * p.get()) }
}

/// By how much the bucket falls short of `n` tokens, times p. `n` is at most the burst.
#[inline]
fn lacking(quota: &Quota, advanced: State, n: u64, now: Time) -> u128 {
    let (c, p) = (quota.rate().tokens.get(), quota.rate().per_ns.get());
    let over = (advanced.deficit + n).saturating_sub(quota.burst());
    if over == 0 {
        return 0;
    }
    product(over, p).saturating_sub(product(paid_ns(advanced, now), c))
}

/// What is missing to full at `now`, times p.
#[inline]
fn missing(quota: &Quota, state: State, now: Time) -> u128 {
    let (c, p) = (quota.rate().tokens.get(), quota.rate().per_ns.get());
    product(state.deficit, p).saturating_sub(product(paid_ns(state, now), c))
}

/// The time that has passed since the stamp and still counts, in nanoseconds.
#[inline]
fn paid_ns(state: State, now: Time) -> u64 {
    now.as_nanos().saturating_sub(state.stamp.as_nanos())
}

#[inline]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// `a / b`, rounded up. Most of what is shown fits 64 bits, where a division is several times faster.
fn div_ceil(a: u128, b: core::num::NonZeroU64) -> u128 {
    match u64::try_from(a) {
        Ok(a) => u128::from(a / b + u64::from(a % b != 0)),
        Err(_) => a.div_ceil(u128::from(b.get())),
    }
}

/// Whole tokens that would still pass at `now`.
pub(crate) fn remaining(quota: &Quota, advanced: State, now: Time) -> u64 {
    let missing_tokens = div_ceil(missing(quota, advanced, now), quota.rate().per_ns);
    quota.burst().saturating_sub(u64::try_from(missing_tokens).unwrap_or(u64::MAX))
}

/// The least wait, in nanoseconds, after which `cost` passes. `cost` is at most the burst.
pub(crate) fn wait_ns(quota: &Quota, advanced: State, cost: Cost, now: Time) -> u128 {
    let lacking = lacking(quota, advanced, cost.tokens(), now);
    skew_ns(advanced, now) + div_ceil(lacking, quota.rate().tokens)
}

/// The time until the bucket is full, in nanoseconds.
pub(crate) fn reset_ns(quota: &Quota, advanced: State, now: Time) -> u128 {
    match missing(quota, advanced, now) {
        0 => 0,
        missing => skew_ns(advanced, now) + div_ceil(missing, quota.rate().tokens),
    }
}

/// How far the stamp stands ahead of a clock that stepped back: nothing refills until then. Nanoseconds.
fn skew_ns(advanced: State, now: Time) -> u128 {
    u128::from(advanced.stamp.as_nanos().saturating_sub(now.as_nanos()))
}

#[inline]
pub(crate) fn full_at(quota: &Quota, state: State) -> Time {
    let rate = quota.rate();
    let refill_ns = div_ceil(product(state.deficit, rate.per_ns.get()), rate.tokens);
    let at = u128::from(state.stamp.as_nanos()) + refill_ns;
    if state.deficit == 0 { Time::ZERO } else { Time::from_nanos(u64::try_from(at).unwrap_or(u64::MAX)) }
}

pub(crate) fn grant(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let advanced = advance(quota, repair(quota, state, now), now);
    if missing(quota, advanced, now) <= product(tokens, quota.rate().per_ns.get()) {
        return State::FULL;
    }
    // More than `tokens` are missing, so the deficit is larger still.
    State { deficit: advanced.deficit - tokens, stamp: advanced.stamp }
}

/// A debt is at most one further burst: what is missing reaches two, and there it stands at `now`.
pub(crate) fn owe(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let most = 2 * quota.burst();
    let advanced = advance(quota, repair(quota, state, now), now);
    let owing = State { deficit: advanced.deficit.saturating_add(tokens), ..advanced };
    if missing(quota, owing, now) < product(most, quota.rate().per_ns.get()) {
        return owing;
    }
    State { deficit: most, stamp: advanced.stamp.max(now) }
}

/// What is missing is x = X / p tokens. Under the new rate it is written as ceil(x) missing tokens, of which the
/// part that is too much was paid back in the last few nanoseconds; rounded to whole ones, in the limit's favour.
pub(crate) fn carry_over(old: &Quota, new: &Quota, state: State, now: Time) -> State {
    let advanced = advance(old, repair(old, state, now), now);
    let missing = missing(old, advanced, now);
    if missing == 0 {
        return State::FULL;
    }
    // While the stamp is ahead of a clock that stepped back, it stays there.
    let at = advanced.stamp.max(now);
    let old_p = old.rate().per_ns;
    if missing >= product(new.burst(), old_p.get()) {
        return State { deficit: new.burst(), stamp: at };
    }
    let deficit = div_ceil(missing, old_p);
    let surplus = deficit * u128::from(old_p.get()) - missing;
    let (new_c, new_p) = (new.rate().tokens.get(), new.rate().per_ns.get());
    let paid_ns = surplus * u128::from(new_p) / product(new_c, old_p.get());
    // The deficit is below the new burst; less than one token's time was paid, which fits 64 bits.
    State {
        deficit: deficit as u64,
        stamp: Time::from_nanos(at.as_nanos().saturating_sub(u64::try_from(paid_ns).unwrap_or(0))),
    }
}
