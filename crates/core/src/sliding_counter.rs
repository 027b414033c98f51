//! The sliding counter: two windows, of which the one before weighs as much as a period that ends now covers of it.
//!
//! Windows are aligned to the clock's epoch: window k is [k p, (k + 1) p). With a tokens counted in the window before
//! and b in the present one, r nanoseconds into it, so much is missing to full:
//!
//! ```text
//! x(t) = a (p - r) / p + b     tokens
//! ```
//!
//! and a request of cost n may pass if x + n <= N. Multiplied by p everything is an integer; nothing is floored.
//!
//! At an edge x does not jump: what was b with full weight becomes a, with full weight. In between it shrinks by a / p
//! a nanosecond, and a is at most N. So over any span d at most N + d N / p tokens pass, as of a token bucket of burst
//! N; and up to 2 N in one period, if the first N all came at its beginning.
//!
//! A state must say three things in two numbers: a, b and k. The stamp of a window is a multiple of p, so there is room
//! below it: the stamp is k p - a, and k is the stamp over p, rounded up. This asks for a < p; debts count up to 2 N in
//! a window, so a quota needs 2 N < p and is refused otherwise. The deficit is b. Where b is zero and a is not, the
//! state is the one of the window before, with nothing before it: so a deficit of zero is a full bucket, as everywhere.
//!
//! The sizes: a and b < 2^34, p < 2^55. No product below reaches 2^90.

use core::num::NonZeroU64;

use crate::step::{Ruling, Step};
use crate::{Cost, Quota, State, Time};

#[inline]
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    let counts = Counts::at(quota, state, now);
    let seen = counts.state();
    let n = cost.tokens();
    if n == 0 {
        return Step { ruling: Ruling::Allowed, seen, next: state };
    }
    if n > quota.burst() {
        return Step { ruling: Ruling::Never, seen, next: state };
    }
    if counts.has_room_for(quota, n, now) {
        let charged = Counts { present: counts.present + n, ..counts }.state();
        return Step { ruling: Ruling::Allowed, seen: charged, next: charged };
    }
    let is_repaired = counts.start_ns < Counts::kept(quota, state).start_ns;
    Step { ruling: Ruling::Denied, seen, next: if is_repaired { seen } else { state } }
}

/// What a state means: how much was counted in the present window and in the one before.
#[derive(Clone, Copy)]
struct Counts {
    before: u64,
    present: u64,
    /// When the present window began.
    start_ns: u64,
    period_ns: NonZeroU64,
}

impl Counts {
    /// The counts as they were written.
    #[inline]
    fn kept(quota: &Quota, state: State) -> Self {
        let period_ns = quota.rate().period_ns();
        let stamp_ns = state.stamp.as_nanos();
        let before = match stamp_ns % period_ns {
            0 => 0,
            past => period_ns.get() - past,
        };
        // A stamp that no decision left could be past the last window.
        Self { before, present: state.deficit, start_ns: stamp_ns.saturating_add(before), period_ns }
    }

    /// The counts at `now`. A clock that stepped back does not reopen a window; but one whose start is further ahead
    /// than a period becomes the present one.
    #[inline]
    fn at(quota: &Quota, state: State, now: Time) -> Self {
        let kept = Self::kept(quota, state);
        let period_ns = kept.period_ns;
        let start_ns = window_start(period_ns, now);
        let empty = Self { before: 0, present: 0, start_ns, period_ns };
        if kept.present == 0 {
            return empty;
        }
        match start_ns.checked_sub(kept.start_ns) {
            Some(0) => kept,
            Some(passed_ns) if passed_ns == period_ns.get() => Self { before: kept.present, ..empty },
            Some(_) => empty,
            None if kept.start_ns - now.as_nanos() <= period_ns.get() => kept,
            // Before the first window there is none to keep the earlier count in.
            None if start_ns < kept.before => {
                Self { present: (kept.present + kept.before).min(2 * quota.burst()), ..empty }
            }
            None => Self { start_ns, ..kept },
        }
    }

    /// The two numbers that keep it.
    #[inline]
    fn state(self) -> State {
        let Self { before, present, start_ns, period_ns } = self;
        if present > 0 || before == 0 {
            return State { deficit: present, stamp: Time::from_nanos(start_ns.saturating_sub(before)) };
        }
        State { deficit: before, stamp: Time::from_nanos(start_ns.saturating_sub(period_ns.get())) }
    }

    /// How much of a period that ends at `now` still lies in the window before, in nanoseconds.
    #[inline]
    fn covered_ns(self, now: Time) -> u64 {
        self.period_ns.get() - self.passed_ns(now)
    }

    /// How much of the present window has passed, in nanoseconds; less than a period.
    #[inline]
    fn passed_ns(self, now: Time) -> u64 {
        now.as_nanos().saturating_sub(self.start_ns)
    }

    /// How far the present window lies ahead of a clock that stepped back, in nanoseconds.
    fn ahead_ns(self, now: Time) -> u64 {
        self.start_ns.saturating_sub(now.as_nanos())
    }

    /// What the window before still weighs at `now`, times p.
    #[inline]
    fn weighed(self, now: Time) -> u128 {
        product(self.before, self.covered_ns(now))
    }

    /// What is missing to full at `now`, times p.
    #[inline]
    fn missing(self, now: Time) -> u128 {
        self.weighed(now) + product(self.present, self.period_ns.get())
    }

    #[inline]
    fn has_room_for(self, quota: &Quota, n: u64, now: Time) -> bool {
        let room = quota.burst().checked_sub(self.present + n);
        room.is_some_and(|room| self.weighed(now) <= product(room, self.period_ns.get()))
    }
}

#[inline]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

fn window_start(period_ns: NonZeroU64, now: Time) -> u64 {
    now.as_nanos() - now.as_nanos() % period_ns
}

/// How far into a window the `count` of the one before weighs at most `room`, which is below it. Nanoseconds.
fn weighs_at_most(room: u64, count: u64, period_ns: NonZeroU64) -> u128 {
    // count (p - r) <= room p, so p - r is at most room p / count; less than p, since room < count.
    let covered_ns = product(room, period_ns.get()) / u128::from(count.max(1));
    u128::from(period_ns.get()) - covered_ns.min(period_ns.get().into())
}

/// Whole tokens that would still pass at `now`.
pub(crate) fn remaining(quota: &Quota, seen: State, now: Time) -> u64 {
    let counts = Counts::at(quota, seen, now);
    let missing_tokens = counts.missing(now).div_ceil(counts.period_ns.get().into());
    quota.burst().saturating_sub(u64::try_from(missing_tokens).unwrap_or(u64::MAX))
}

/// The least wait, in nanoseconds, after which `cost` passes. `cost` is at most the burst, and does not pass now.
///
/// If the present count leaves room for it, the earlier one has to weigh less, at the window's end nothing. Else the
/// present count has to become the earlier one first, and then to weigh less.
pub(crate) fn wait_ns(quota: &Quota, seen: State, cost: Cost, now: Time) -> u128 {
    let counts = Counts::at(quota, seen, now);
    let Counts { before, present, period_ns, .. } = counts;
    let then_ns = match quota.burst().checked_sub(present + cost.tokens()) {
        Some(room) => weighs_at_most(room, before, period_ns),
        None => {
            let room = quota.burst().saturating_sub(cost.tokens());
            u128::from(period_ns.get()) + weighs_at_most(room, present, period_ns)
        }
    };
    u128::from(counts.ahead_ns(now)) + then_ns.saturating_sub(counts.passed_ns(now).into())
}

/// The time until neither window weighs anything, in nanoseconds.
pub(crate) fn reset_ns(quota: &Quota, seen: State, now: Time) -> u128 {
    let counts = Counts::at(quota, seen, now);
    let windows: u64 = match counts {
        Counts { present: 1.., .. } => 2,
        Counts { before: 1.., .. } => 1,
        _ => return 0,
    };
    let end_ns = u128::from(counts.start_ns) + product(windows, counts.period_ns.get());
    end_ns - u128::from(now.as_nanos())
}

/// A count weighs until the window after its own is over.
#[inline]
pub(crate) fn full_at(quota: &Quota, state: State) -> Time {
    if state.deficit == 0 {
        return Time::ZERO;
    }
    let Counts { start_ns, period_ns, .. } = Counts::kept(quota, state);
    Time::from_nanos(start_ns.saturating_add(period_ns.get()).saturating_add(period_ns.get()))
}

/// Tokens come off the counts, the present window's first; one of the window before is worth what it still weighs.
pub(crate) fn grant(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let counts = Counts::at(quota, state, now);
    let present = counts.present.saturating_sub(tokens);
    let before = counts.before.saturating_sub(tokens - (counts.present - present));
    forgotten_if_full(Counts { before, present, ..counts })
}

/// Tokens come off the count of the window in which they were taken, as if they had not been; of one that is over and
/// weighs nothing any more they are forgotten.
pub(crate) fn give_back(quota: &Quota, state: State, taken_at: Time, tokens: u64, now: Time) -> State {
    let counts = Counts::at(quota, state, now);
    let since_start_ns = taken_at.as_nanos().checked_sub(counts.start_ns);
    let is_before = taken_at.as_nanos().saturating_add(counts.period_ns.get()) >= counts.start_ns;
    forgotten_if_full(match since_start_ns {
        Some(_) => Counts { present: counts.present.saturating_sub(tokens), ..counts },
        None if is_before => Counts { before: counts.before.saturating_sub(tokens), ..counts },
        None => counts,
    })
}

fn forgotten_if_full(counts: Counts) -> State {
    if counts.present == 0 && counts.before == 0 { State::FULL } else { counts.state() }
}

/// A debt is counted in the present window; no more than two bursts are ever missing.
pub(crate) fn owe(quota: &Quota, state: State, tokens: u64, now: Time) -> State {
    let counts = Counts::at(quota, state, now);
    // At most 2 N were counted before, so this is no more than 2 N.
    let weighed = counts.weighed(now).div_ceil(counts.period_ns.get().into()) as u64;
    let most = (2 * quota.burst()).saturating_sub(weighed).max(counts.present);
    forgotten_if_full(Counts { present: counts.present.saturating_add(tokens).min(most), ..counts })
}

/// Under the same period both counts go over, unless more is missing than the new burst. That, and what is missing under
/// another period, is rounded up to whole tokens and counted in the present window.
pub(crate) fn carry_over(old: &Quota, new: &Quota, state: State, now: Time) -> State {
    let counts = Counts::at(old, state, now);
    let missing = counts.missing(now);
    let period_ns = new.rate().period_ns();
    if missing == 0 {
        return State::FULL;
    }
    if period_ns == counts.period_ns && missing <= product(new.burst(), period_ns.get()) {
        return counts.state();
    }
    let tokens = missing.div_ceil(counts.period_ns.get().into()).min(new.burst().into());
    let start_ns = window_start(period_ns, now.max(Time::from_nanos(counts.start_ns)));
    // At most the new burst.
    forgotten_if_full(Counts { before: 0, present: tokens as u64, start_ns, period_ns })
}

/// The state in which `present` tokens are counted in the window that began at `start`, and `before` in the one before.
pub(crate) fn of_counts(quota: &Quota, before: u64, present: u64, start: Time) -> State {
    let (start_ns, period_ns) = (start.as_nanos(), quota.rate().period_ns());
    forgotten_if_full(Counts { before, present, start_ns, period_ns })
}
