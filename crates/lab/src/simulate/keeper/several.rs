//! Several limits in one decision: all are charged, or none.

use tidegate_core::{CHARGES_MAX, Charge, Cost, Decision, LimitId, Quota, Standing, State, Time, decide, decide_all};

use super::Keeper;
use super::one::denial;
use crate::simulate::{Arrival, Reply};

pub(in crate::simulate) struct Several {
    charges: Vec<Charge<'static>>,
    /// The states of a key stand together, in the order of the charges.
    standings: Vec<Standing>,
}

impl Several {
    /// Of at most [`CHARGES_MAX`] quotas; those beyond are left out.
    pub(in crate::simulate) fn new(quotas: &[Quota], keys: u32) -> Self {
        let quotas = &quotas[..quotas.len().min(CHARGES_MAX)];
        let charge = |(i, quota): (usize, &Quota)| Charge::new(LimitId::of("simulate", &i.to_string()), *quota, b"");
        Self {
            charges: quotas.iter().enumerate().map(charge).collect(),
            standings: vec![Ok(State::FULL); quotas.len() * keys as usize],
        }
    }

    fn place(&self, key: u32) -> std::ops::Range<usize> {
        let first = key as usize * self.charges.len();
        first..first + self.charges.len()
    }
}

impl Keeper for Several {
    fn ask(&mut self, key: u32, arrival: &Arrival) -> Reply {
        let place = self.place(key);
        let Some(first) = self.charges.first() else { return Reply::Passed };
        let mut decisions = [Decision::unmade(&first.quota); CHARGES_MAX];
        let decisions = &mut decisions[..self.charges.len()];
        self.charges.iter_mut().for_each(|charge| charge.cost = arrival.cost);
        let verdict = decide_all(&self.charges, &mut self.standings[place], decisions, arrival.at);
        match verdict.binding {
            Some(i) if !verdict.allowed => denial(&decisions[i]),
            _ => Reply::Passed,
        }
    }

    fn level(&mut self, key: u32, now: Time) -> Option<u64> {
        let standings = self.charges.iter().zip(&self.standings[self.place(key)]);
        let left = |(charge, standing): (&Charge<'_>, &Standing)| {
            let state = standing.as_ref().ok()?;
            Some(decide(&charge.quota, *state, Cost::ZERO, now).0.remaining())
        };
        standings.filter_map(left).min()
    }

    fn bytes_per_key(&self) -> Option<usize> {
        Some(size_of::<State>() * self.charges.len())
    }
}
