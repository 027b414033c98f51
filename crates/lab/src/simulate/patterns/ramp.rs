//! A rate that grows, or shrinks, evenly over the whole run.
//!
//! Where the rate goes from a to b over a run of length D, a t + (b - a) t^2 / 2D have come at t. The n-th comes when
//! that is n, which is a square root; of the ways to write it, the one that subtracts nothing alike.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::pace::Turns;
use crate::simulate::{Arrival, Route, Traffic};

pub(super) const RAMP: Pattern = Pattern {
    name: "ramp",
    about: "a rate that grows evenly from the beginning of the run to its end",
    params: &[
        ("from", "the rate of each client at the beginning (a tenth of the limit's)"),
        ("to", "the rate of each client at the end (three times the limit's)"),
    ],
    build,
};

struct Ramp {
    clients: u32,
    cost: Cost,
    turns: Turns,
    length_ns: f64,
    /// How many would come in the run at the first rate, and how many more at the last.
    first: f64,
    more: f64,
    sent: f64,
}

fn build(params: &mut Params<'_>) -> Built {
    let (ground, clients) = (params.ground(), params.clients(1)?);
    let from = params.pace("from", ground.limit.times(1, 10))?;
    let to = params.pace("to", ground.limit.times(3, 1))?;
    let length_ns = ground.length_ns as f64;
    let in_run = |each_ns: f64| each_ns * length_ns * f64::from(clients);
    let (first, last) = (in_run(from.each_ns()), in_run(to.each_ns()));
    let (cost, turns) = (params.cost()?, Turns::new(clients));
    Ok(Box::new(Ramp { clients, cost, turns, length_ns, first, more: last - first, sent: 0.0 }))
}

impl Iterator for Ramp {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let square = self.first * self.first + 2.0 * self.more * self.sent;
        // A rate that shrinks is zero some day, and then no more come.
        let part = 2.0 * self.sent / (self.first + if square < 0.0 { return None } else { square.sqrt() });
        self.sent += 1.0;
        let at = Time::from_nanos((part * self.length_ns) as u64);
        Some(Arrival { at, client: self.turns.next(), cost: self.cost, route: Route::Api })
    }
}

impl Traffic for Ramp {
    fn clients(&self) -> u32 {
        self.clients
    }
}
