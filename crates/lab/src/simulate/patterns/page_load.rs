//! Browsers: a page now and then, and a volley for all that it is made of.

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::agenda::{Agenda, PLANS_MAX};
use crate::simulate::{Arrival, Random, Route, Traffic};

pub(super) const PAGE_LOAD: Pattern = Pattern {
    name: "page-load",
    about: "browsers: a page now and then, and a volley for what it is made of",
    params: &[
        ("assets", "what a page is made of (24)"),
        ("within", "in which all of that is asked for (800ms)"),
        ("every", "from one page of a client to the next, on average and by chance (20s)"),
    ],
    build,
};

struct PageLoad {
    clients: u32,
    cost: Cost,
    agenda: Agenda<(u32, Route)>,
    assets: u32,
    within_ns: u64,
    every_ns: u64,
    random: Random,
}

/// The most that a page is made of.
const ASSETS_MAX: u64 = 10_000;

fn build(params: &mut Params<'_>) -> Built {
    let (clients, mut random) = (params.clients(10)?, params.random());
    let every_ns = params.positive_span_ns("every", 20_000_000_000)?;
    let assets = params.count_to("assets", 24, ASSETS_MAX)?;
    let within_ns = params.span_ns("within", 800_000_000)?;
    // On average so many pages of a client are being loaded.
    let pages = within_ns / every_ns + 1;
    if u64::from(clients).saturating_mul(assets).saturating_mul(pages) > PLANS_MAX {
        let message = format!("the pages that are loaded at once are made of more than {PLANS_MAX} things");
        return Err(params.too_much("assets", message));
    }
    let mut agenda = Agenda::new();
    (0..clients).for_each(|client| agenda.plan(random.below(every_ns), (client, Route::Page)));
    // It is at most ASSETS_MAX.
    let assets = assets as u32;
    Ok(Box::new(PageLoad { clients, cost: params.cost()?, agenda, assets, within_ns, every_ns, random }))
}

impl Iterator for PageLoad {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (at_ns, (client, route)) = self.agenda.next()?;
        if route == Route::Page {
            for number in 0..self.assets {
                let later = self.random.below(self.within_ns);
                self.agenda.plan(at_ns.saturating_add(later), (client, Route::Asset(number)));
            }
            let next = at_ns.saturating_add(self.random.exponential(self.every_ns));
            self.agenda.plan(next, (client, Route::Page));
        }
        Some(Arrival { at: Time::from_nanos(at_ns), client, cost: self.cost, route })
    }
}

impl Traffic for PageLoad {
    fn clients(&self) -> u32 {
        self.clients
    }
}
