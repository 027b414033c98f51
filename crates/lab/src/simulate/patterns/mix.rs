//! What comes to a site on an ordinary day: readers, programs that poll, and a scraper among them.

use super::{Built, Params, Pattern, page_load, scraper, steady};
use crate::simulate::traffic::Merged;
use crate::simulate::{Chosen, Ground};

pub(super) const MIX: Pattern = Pattern {
    name: "mix",
    about: "of twenty clients, twelve read pages, seven poll, and one scrapes",
    params: &[],
    build,
};

fn build(params: &mut Params<'_>) -> Built {
    let (ground, clients) = (params.ground(), params.clients(20)?);
    let cost = params.cost()?.tokens();
    let (readers, scrapers) = (clients * 12 / 20, (clients / 20).max(1));
    let pollers = clients - (readers + scrapers).min(clients);
    let half = ground.limit.times(1, 2);
    let parts = [
        (&page_load::PAGE_LOAD, readers, ground.limit),
        (&steady::STEADY, pollers, half),
        (&scraper::SCRAPER, scrapers, ground.limit),
    ];
    let mut traffics = Vec::new();
    for (pattern, clients, limit) in parts.into_iter().filter(|(_, clients, _)| *clients > 0) {
        let chosen: Chosen = format!("{}:cost={cost}", pattern.name).parse()?;
        let ground = Ground { limit, clients: Some(clients), length_ns: ground.length_ns };
        traffics.push(chosen.build(&ground, params.random())?);
    }
    Ok(Box::new(Merged::new(traffics)))
}
