//! Requests at even distances, the clients in turn.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::pace::{Even, Turns};
use crate::simulate::{Arrival, Route, Traffic};

pub(super) const STEADY: Pattern = Pattern {
    name: "steady",
    about: "requests at even distances",
    params: &[("rate", "of each client (the limit's)")],
    build,
};

struct Steady {
    clients: u32,
    cost: Cost,
    instants: Even,
    turns: Turns,
}

fn build(params: &mut Params<'_>) -> Built {
    let (clients, pace) = (params.clients(1)?, params.pace("rate", params.ground().limit)?);
    let (instants, turns) = (Even::new(pace, clients), Turns::new(clients));
    Ok(Box::new(Steady { clients, cost: params.cost()?, instants, turns }))
}

impl Iterator for Steady {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        let at = Time::from_nanos(self.instants.next_ns());
        Some(Arrival { at, client: self.turns.next(), cost: self.cost, route: Route::Api })
    }
}

impl Traffic for Steady {
    fn clients(&self) -> u32 {
        self.clients
    }
}
