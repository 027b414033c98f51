//! Requests that know nothing of each other: a Poisson process.
//!
//! Of all clients together: their processes merged are one, and each arrival is anybody's.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::{Arrival, Pace, Random, Route, Traffic};

pub(super) const POISSON: Pattern = Pattern {
    name: "poisson",
    about: "requests by chance, which know nothing of each other",
    params: &[("rate", "of each client on average (the limit's)")],
    build,
};

struct Poisson {
    clients: u32,
    cost: Cost,
    instants: Instants,
    random: Random,
}

fn build(params: &mut Params<'_>) -> Built {
    let (clients, pace) = (params.clients(1)?, params.pace("rate", params.ground().limit)?);
    let instants = Instants::new(pace, clients, params.random());
    Ok(Box::new(Poisson { clients, cost: params.cost()?, instants, random: params.random() }))
}

impl Iterator for Poisson {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        let at = Time::from_nanos(self.instants.next_ns());
        let client = if self.clients == 1 { 0 } else { self.random.below(u64::from(self.clients)) as u32 };
        Some(Arrival { at, client, cost: self.cost, route: Route::Api })
    }
}

impl Traffic for Poisson {
    fn clients(&self) -> u32 {
        self.clients
    }
}

/// The instants of a Poisson process.
pub(super) struct Instants {
    period_ns: u64,
    divisor: u64,
    random: Random,
    at_ns: u64,
    /// What the division by the count has left.
    rest: u64,
}

impl Instants {
    /// For `clients` of this pace each, all together.
    pub(super) fn new(pace: Pace, clients: u32, random: Random) -> Self {
        let divisor = pace.count().saturating_mul(u64::from(clients)).max(1);
        Self { period_ns: pace.period_ns(), divisor, random, at_ns: 0, rest: 0 }
    }

    #[inline]
    pub(super) fn next_ns(&mut self) -> u64 {
        let gap = self.random.exponential(self.period_ns).saturating_add(self.rest);
        self.at_ns = self.at_ns.saturating_add(gap / self.divisor);
        self.rest = gap % self.divisor;
        self.at_ns
    }
}
