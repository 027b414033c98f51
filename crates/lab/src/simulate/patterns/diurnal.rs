//! Day and night: a Poisson process whose rate swings between a low and a peak.
//!
//! Arrivals are made at the peak's rate, and each is kept with the chance that the hour has. The swing is a smooth one
//! of integers: x^2 (3 - 2x) up to noon, and back.

use tidegate_core::{Cost, Time};

use super::poisson::Instants;
use super::{Built, Params, Pattern};
use crate::simulate::{Arrival, Random, Route, Traffic};

pub(super) const DIURNAL: Pattern = Pattern {
    name: "diurnal",
    about: "requests by chance, few by night and many by day",
    params: &[
        ("peak", "the rate of each client at noon (one and a half times the limit's)"),
        ("low", "the rate of each client at midnight, in hundredths of the peak (10)"),
        ("day", "how long a day is (the whole run)"),
    ],
    build,
};

struct Diurnal {
    clients: u32,
    cost: Cost,
    instants: Instants,
    random: Random,
    day_ns: u64,
    /// The chance of midnight, in 2^-32.
    low: u64,
}

fn build(params: &mut Params<'_>) -> Built {
    let (ground, clients) = (params.ground(), params.clients(1)?);
    let peak = params.pace("peak", ground.limit.times(3, 2))?;
    let low = (params.count_to("low", 10, 100)? << 32) / 100;
    let day_ns = params.positive_span_ns("day", ground.length_ns)?;
    let instants = Instants::new(peak, clients, params.random());
    Ok(Box::new(Diurnal { clients, cost: params.cost()?, instants, random: params.random(), day_ns, low }))
}

impl Diurnal {
    /// The chance that an arrival at this instant has, in 2^-32.
    fn chance(&self, at_ns: u64) -> u64 {
        /// The bits of a fraction.
        const ONE: u64 = 1 << 32;
        let hour = ((u128::from(at_ns % self.day_ns) << 33) / u128::from(self.day_ns)) as u64;
        let x = if hour < ONE { hour } else { 2 * ONE - hour };
        let squared = (x * (x >> 1)) >> 31;
        let swing = (u128::from(squared) * u128::from(3 * ONE - 2 * x)) >> 32;
        self.low + ((u128::from(ONE - self.low) * swing) >> 32) as u64
    }
}

impl Iterator for Diurnal {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let at_ns = self.instants.next_ns();
            // The end of time, which an endless night would reach.
            let is_over = at_ns == u64::MAX;
            if is_over || self.random.bits() >> 32 < self.chance(at_ns) {
                let client = self.random.below(u64::from(self.clients)) as u32;
                return Some(Arrival { at: Time::from_nanos(at_ns), client, cost: self.cost, route: Route::Api });
            }
        }
    }
}

impl Traffic for Diurnal {
    fn clients(&self) -> u32 {
        self.clients
    }
}
