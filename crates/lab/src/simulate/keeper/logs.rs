//! Sliding logs: for each key and limit a ring of entries, which grows with what passes.

use tidegate_core::{CHARGES_MAX, Charge, Cost, Decision, LimitId, Quota, State, Time, decide_all_with_logs};

use super::Keeper;
use super::one::denial;
use crate::ring::Ring;
use crate::simulate::{Arrival, Reply};

pub(in crate::simulate) struct Logs {
    charges: Vec<Charge<'static>>,
    /// The rings of a key stand together, in the order of the charges.
    rings: Vec<Ring>,
}

impl Logs {
    /// Of at most [`CHARGES_MAX`] quotas; those beyond are left out.
    pub(in crate::simulate) fn new(quotas: &[Quota], keys: u32) -> Self {
        let quotas = &quotas[..quotas.len().min(CHARGES_MAX)];
        let charge = |(i, quota): (usize, &Quota)| Charge::new(LimitId::of("simulate", &i.to_string()), *quota, b"");
        Self {
            charges: quotas.iter().enumerate().map(charge).collect(),
            rings: vec![Ring::default(); quotas.len() * keys as usize],
        }
    }

    fn of_key(&mut self, key: u32) -> (&mut [Charge<'static>], &mut [Ring]) {
        let first = key as usize * self.charges.len();
        let rings = &mut self.rings[first..first + self.charges.len()];
        (&mut self.charges, rings)
    }
}

impl Keeper for Logs {
    fn ask(&mut self, key: u32, arrival: &Arrival) -> Reply {
        let (charges, rings) = self.of_key(key);
        let Some(first) = charges.first() else { return Reply::Passed };
        let (mut decisions, mut views) = ([Decision::unmade(&first.quota); CHARGES_MAX], [None; CHARGES_MAX]);
        let mut standings = [Ok(State::FULL); CHARGES_MAX];
        let count = charges.len();
        for ((charge, ring), view) in charges.iter_mut().zip(rings.iter_mut()).zip(&mut views) {
            charge.cost = arrival.cost;
            *view = Some(ring.view(&charge.quota, arrival.cost, arrival.at));
        }
        let (decisions, views) = (&mut decisions[..count], &views[..count]);
        let verdict = decide_all_with_logs(charges, &mut standings[..count], views, decisions, arrival.at);
        match verdict.binding {
            Some(i) if !verdict.allowed => return denial(&decisions[i]),
            _ => {}
        }
        // Time does not step back here, so a denial has nothing to repair.
        for (charge, ring) in charges.iter().zip(rings) {
            ring.charge(&charge.quota, arrival.cost, arrival.at);
        }
        Reply::Passed
    }

    fn level(&mut self, key: u32, now: Time) -> Option<u64> {
        let (charges, rings) = self.of_key(key);
        let left = |(charge, ring): (&mut Charge<'_>, &mut Ring)| {
            let used = ring.view(&charge.quota, Cost::ZERO, now).used;
            charge.quota.burst().saturating_sub(used)
        };
        charges.iter_mut().zip(rings).map(left).min()
    }

    /// Of the key that keeps most.
    fn bytes_per_key(&self) -> Option<usize> {
        self.rings.chunks(self.charges.len().max(1)).map(|rings| rings.iter().map(Ring::bytes).sum()).max()
    }
}
