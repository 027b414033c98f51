//! One limit: a state for each key, in a row.

use tidegate_core::{Cost, Decision, Outcome, Quota, State, Time, decide};

use super::Keeper;
use crate::simulate::{Arrival, Reply};

pub(in crate::simulate) struct One {
    quota: Quota,
    states: Vec<State>,
}

impl One {
    pub(in crate::simulate) fn new(quota: Quota, keys: u32) -> Self {
        Self { quota, states: vec![State::FULL; keys as usize] }
    }
}

impl Keeper for One {
    #[inline]
    fn ask(&mut self, key: u32, arrival: &Arrival) -> Reply {
        let state = &mut self.states[key as usize];
        let (decision, next) = decide(&self.quota, *state, arrival.cost, arrival.at);
        *state = next;
        if decision.is_allowed() { Reply::Passed } else { denial(&decision) }
    }

    fn level(&mut self, key: u32, now: Time) -> Option<u64> {
        Some(decide(&self.quota, self.states[key as usize], Cost::ZERO, now).0.remaining())
    }

    fn bytes_per_key(&self) -> Option<usize> {
        Some(size_of::<State>())
    }
}

/// What a denial tells.
pub(super) fn denial(decision: &Decision) -> Reply {
    match decision.outcome() {
        Outcome::Denied { retry_after } => Reply::Wait(retry_after),
        Outcome::Allowed | Outcome::Never => Reply::Never,
    }
}
