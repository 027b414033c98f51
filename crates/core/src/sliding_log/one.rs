//! A log of one entry, which two numbers hold: how a log is shown, and what the functions on a [`State`] make of one.

use super::ring::{Log, LogEntry, LogPlace};
use crate::step::{Ruling, Step};
use crate::{Cost, Quota, State, Time};

/// The state after a change to a log of one entry.
pub(crate) fn of_one(quota: &Quota, state: State, now: Time, change: impl FnOnce(&mut Log<'_>)) -> State {
    let (mut ring, mut place) = ([LogEntry::default()], LogPlace::default());
    let entry = LogEntry { at: state.stamp, tokens: state.deficit };
    let mut log = Log::of_one(entry, &mut ring, &mut place);
    change(&mut log);
    let view = log.view(quota, Cost::ZERO, now);
    if view.used == 0 { State::FULL } else { view.state() }
}

/// A step of a log of one entry.
pub(crate) fn step(quota: &Quota, state: State, cost: Cost, now: Time) -> Step {
    let (mut ring, mut place) = ([LogEntry::default()], LogPlace::default());
    let entry = LogEntry { at: state.stamp, tokens: state.deficit };
    let view = Log::of_one(entry, &mut ring, &mut place).view(quota, Cost::ZERO, now);
    let ruling = view.ruling(quota, cost);
    if ruling == Ruling::Allowed && cost > Cost::ZERO {
        let charged = view.charged(cost.tokens(), now).state();
        return Step { ruling, seen: charged, next: charged };
    }
    Step { ruling, seen: view.state(), next: state }
}

pub(crate) fn remaining(quota: &Quota, seen: State) -> u64 {
    quota.burst().saturating_sub(seen.deficit)
}

/// The time until the entry of instant `leaving` has left, in nanoseconds.
pub(crate) fn wait_ns(quota: &Quota, leaving: Time, now: Time) -> u128 {
    let end_ns = u128::from(leaving.as_nanos()) + u128::from(quota.rate().period_ns().get());
    end_ns.saturating_sub(u128::from(now.as_nanos()))
}

pub(crate) fn reset_ns(quota: &Quota, seen: State, now: Time) -> u128 {
    if seen.deficit == 0 { 0 } else { wait_ns(quota, seen.stamp, now) }
}

pub(crate) fn full_at(quota: &Quota, state: State) -> Time {
    if state.deficit == 0 { Time::ZERO } else { state.stamp.saturating_add(quota.rate().period()) }
}
