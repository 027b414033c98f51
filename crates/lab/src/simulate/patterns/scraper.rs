//! A scraper: a few workers who take one thing after the other, each as soon as it has the last.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::agenda::{Agenda, PLANS_MAX};
use crate::simulate::{Arrival, Random, Route, Traffic};

pub(super) const SCRAPER: Pattern = Pattern {
    name: "scraper",
    about: "workers that take one thing after the other, as fast as they are served",
    params: &[
        ("workers", "of each client (4)"),
        ("latency", "until a worker has what it asked for, on average (200ms)"),
    ],
    build,
};

struct Scraper {
    clients: u32,
    cost: Cost,
    /// The workers, by their client.
    agenda: Agenda<u32>,
    latency_ns: u64,
    random: Random,
    taken: u32,
}

fn build(params: &mut Params<'_>) -> Built {
    let (clients, mut random) = (params.clients(1)?, params.random());
    let latency_ns = params.positive_span_ns("latency", 200_000_000)?;
    let workers = params.count_to("workers", 4, PLANS_MAX / u64::from(clients))?;
    let mut agenda = Agenda::new();
    for client in 0..clients {
        (0..workers).for_each(|_| agenda.plan(random.below(latency_ns), client));
    }
    Ok(Box::new(Scraper { clients, cost: params.cost()?, agenda, latency_ns, random, taken: 0 }))
}

impl Iterator for Scraper {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (at_ns, client) = self.agenda.next()?;
        let served_ns = (self.latency_ns / 2).saturating_add(self.random.below(self.latency_ns)).max(1);
        self.agenda.plan(at_ns.saturating_add(served_ns), client);
        let route = Route::Item(self.taken);
        self.taken = self.taken.wrapping_add(1);
        Some(Arrival { at: Time::from_nanos(at_ns), client, cost: self.cost, route })
    }
}

impl Traffic for Scraper {
    fn clients(&self) -> u32 {
        self.clients
    }
}
