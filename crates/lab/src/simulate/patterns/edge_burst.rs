//! The classic trap: as many as a window allows just before its edge, and as many just after it.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::{Arrival, Route, Traffic};

pub(super) const EDGE_BURST: Pattern = Pattern {
    name: "edge-burst",
    about: "a volley just before an edge of the clock, and another just after it",
    params: &[
        ("count", "requests in each volley (the limit's count)"),
        ("edge", "when the edge is (after the limit's period)"),
        ("gap", "how far each volley is from the edge (a sixtieth of the limit's period)"),
    ],
    build,
};

struct EdgeBurst {
    clients: u32,
    cost: Cost,
    edge_ns: u64,
    volleys: [Volley; 2],
}

struct Volley {
    at_ns: u64,
    sent: u64,
    /// Of all clients together.
    size: u64,
}

fn build(params: &mut Params<'_>) -> Built {
    let limit = params.ground().limit;
    let (clients, count) = (params.clients(1)?, params.count("count", limit.count())?);
    let edge_ns = params.positive_span_ns("edge", limit.period_ns())?;
    let gap_ns = params.span_ns("gap", limit.period_ns() / 60)?;
    let size = count.saturating_mul(u64::from(clients));
    let volley = |at_ns| Volley { at_ns, sent: 0, size };
    let volleys = [volley(edge_ns.saturating_sub(gap_ns)), volley(edge_ns.saturating_add(gap_ns))];
    Ok(Box::new(EdgeBurst { clients, cost: params.cost()?, edge_ns, volleys }))
}

impl Iterator for EdgeBurst {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let volley = self.volleys.iter_mut().find(|volley| volley.sent < volley.size)?;
        let client = (volley.sent % u64::from(self.clients)) as u32;
        volley.sent += 1;
        Some(Arrival { at: Time::from_nanos(volley.at_ns), client, cost: self.cost, route: Route::Api })
    }
}

impl Traffic for EdgeBurst {
    fn clients(&self) -> u32 {
        self.clients
    }

    fn ends(&self) -> Option<Time> {
        let [_, second] = &self.volleys;
        // As long after the edge as before it, and the second volley within that.
        let after_ns = self.edge_ns.max((second.at_ns - self.edge_ns).saturating_mul(2));
        Some(Time::from_nanos(self.edge_ns.saturating_add(after_ns)))
    }
}
