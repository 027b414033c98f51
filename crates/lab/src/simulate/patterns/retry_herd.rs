//! A herd: everybody has a backlog, asks at once, and comes back after a denial until all of it has passed.
//!
//! Those who obey come back when Retry-After says, in whole seconds as the field has it. Those who do not come back
//! after a pause of their own, again and again.

use std::time::Duration;

use tidegate_core::{Cost, Time};

use super::{Built, Params, Pattern};
use crate::simulate::agenda::{Agenda, PLANS_MAX};
use crate::simulate::{Arrival, Random, Reply, Route, Traffic};

pub(super) const RETRY_HERD: Pattern = Pattern {
    name: "retry-herd",
    about: "clients with a backlog, who come back after a denial until all of it has passed",
    params: &[
        ("count", "requests that each client wants to get through (twice the limit's count; of all 10000000 at most)"),
        ("obey", "do they come back when Retry-After says? (yes)"),
        ("pause", "after which they come back if they do not obey (1s)"),
        ("jitter", "by how much, at most and by chance, they come back later than that (0)"),
    ],
    build,
};

struct RetryHerd {
    clients: u32,
    cost: Cost,
    /// The clients who will ask.
    agenda: Agenda<u32>,
    is_obeying: bool,
    pause: Duration,
    jitter_ns: u64,
    random: Random,
}

fn build(params: &mut Params<'_>) -> Built {
    let clients = params.clients(5)?;
    let by_default = params.ground().limit.count().saturating_mul(2);
    let count = params.count_to("count", by_default, PLANS_MAX / u64::from(clients))?;
    let mut agenda = Agenda::new();
    for _ in 0..count {
        (0..clients).for_each(|client| agenda.plan(0, client));
    }
    Ok(Box::new(RetryHerd {
        clients,
        cost: params.cost()?,
        agenda,
        is_obeying: params.is("obey", true)?,
        pause: Duration::from_nanos(params.positive_span_ns("pause", 1_000_000_000)?),
        jitter_ns: params.span_ns("jitter", 0)?,
        random: params.random(),
    }))
}

impl Iterator for RetryHerd {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (at_ns, client) = self.agenda.next()?;
        Some(Arrival { at: Time::from_nanos(at_ns), client, cost: self.cost, route: Route::Api })
    }
}

impl Traffic for RetryHerd {
    fn clients(&self) -> u32 {
        self.clients
    }

    fn told(&mut self, arrival: &Arrival, reply: Reply) {
        let wait = match reply {
            Reply::Wait(wait) if self.is_obeying => whole_seconds_up(wait),
            Reply::Wait(_) => self.pause,
            // What can never pass is given up, as what has passed is.
            Reply::Passed | Reply::Never => return,
        };
        let jitter_ns = self.random.below(self.jitter_ns.saturating_add(1));
        let again = arrival.at.saturating_add(wait).saturating_add(Duration::from_nanos(jitter_ns));
        self.agenda.plan(again.as_nanos(), arrival.client);
    }
}

/// What the field says: whole seconds, rounded up, and at least 1.
fn whole_seconds_up(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(Duration::from_secs(1))
}
