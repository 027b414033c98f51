//! Even requests for a while, then silence for a while.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::pace::{Even, Turns};
use crate::simulate::{Arrival, Route, Traffic};

pub(super) const ON_OFF: Pattern = Pattern {
    name: "on-off",
    about: "requests at even distances for a while, then none for a while",
    params: &[
        ("rate", "of each client while on (three times the limit's)"),
        ("on", "for how long (a third of the limit's period)"),
        ("off", "for how long (two thirds of the limit's period)"),
    ],
    build,
};

struct OnOff {
    clients: u32,
    cost: Cost,
    /// Instants of the time that is on, without the rests between.
    instants: Even,
    turns: Turns,
    on_ns: u64,
    off_ns: u64,
}

fn build(params: &mut Params<'_>) -> Built {
    let (limit, clients) = (params.ground().limit, params.clients(1)?);
    let pace = params.pace("rate", limit.times(3, 1))?;
    let on_ns = params.positive_span_ns("on", limit.period_ns() / 3)?;
    let off_ns = params.span_ns("off", limit.period_ns() / 3 * 2)?;
    let (instants, turns) = (Even::new(pace, clients), Turns::new(clients));
    Ok(Box::new(OnOff { clients, cost: params.cost()?, instants, turns, on_ns, off_ns }))
}

impl Iterator for OnOff {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let on_ns = self.instants.next_ns();
        let at_ns = on_ns.saturating_add((on_ns / self.on_ns).saturating_mul(self.off_ns));
        let at = Time::from_nanos(at_ns);
        Some(Arrival { at, client: self.turns.next(), cost: self.cost, route: Route::Api })
    }
}

impl Traffic for OnOff {
    fn clients(&self) -> u32 {
        self.clients
    }
}
