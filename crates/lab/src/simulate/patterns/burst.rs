//! Volleys: so many at once, again and again.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::{Arrival, Route, Traffic};

pub(super) const BURST: Pattern = Pattern {
    name: "burst",
    about: "a volley of requests at once, again and again",
    params: &[
        ("count", "requests of each client in a volley (the limit's count)"),
        ("every", "from one volley to the next (the limit's period)"),
    ],
    build,
};

struct Burst {
    clients: u32,
    cost: Cost,
    size: u64,
    every_ns: u64,
    at_ns: u64,
    sent: u64,
}

fn build(params: &mut Params<'_>) -> Built {
    let (limit, clients) = (params.ground().limit, params.clients(1)?);
    let size = params.count("count", limit.count())?.saturating_mul(u64::from(clients));
    let every_ns = params.positive_span_ns("every", limit.period_ns())?;
    Ok(Box::new(Burst { clients, cost: params.cost()?, size, every_ns, at_ns: 0, sent: 0 }))
}

impl Iterator for Burst {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        if self.sent == self.size {
            (self.sent, self.at_ns) = (0, self.at_ns.saturating_add(self.every_ns));
        }
        let client = (self.sent % u64::from(self.clients)) as u32;
        self.sent += 1;
        Some(Arrival { at: Time::from_nanos(self.at_ns), client, cost: self.cost, route: Route::Api })
    }
}

impl Traffic for Burst {
    fn clients(&self) -> u32 {
        self.clients
    }
}
