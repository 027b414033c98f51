//! `simulate`: traffic of a pattern against one or several algorithms, side by side, on virtual time.
//!
//! The same seed gives the same run on every machine. Each algorithm meets the same traffic, unless those who arrive
//! act on what they are told, as herds do.
//!
//! Read the modules in this order: `traffic` (what arrives), `chosen`, `params` and `patterns` (how it is written and
//! made), `contestant` and `keeper` (who decides), `engine` (a run), `tally` and `series` (what is counted), `comparison`
//! and `report` (all of it side by side), then `table`, `json`, `picture` and `sweep` (how it is shown), and `race`,
//! which is about threads and not about time.
//!
//! The patterns are of use elsewhere too, where real requests are to be sent. A [`Chosen`] is read from what a user
//! wrote; on a [`Ground`] (the limit that the pattern goes by, the length of the run, the number of clients) and a
//! [`Random`] it builds [`Traffic`]: an iterator of [`Arrival`]s, each with its planned time from the beginning, its
//! client, its cost and its path. It is open loop, since the times do not wait for answers. The exceptions are herds,
//! which come back after a denial: they want to hear of each answer by [`Traffic::told`], and plan by it. Whoever
//! tells them late hears of their return late, and whoever tells them nothing gets their first requests alone.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_lab::simulate::{Chosen, Ground, Pace, Random, Reply};
//!
//! let chosen: Chosen = "steady:rate=2/s,clients=2".parse()?;
//! let ground = Ground { limit: Pace::new(60, Duration::from_secs(60)), length_ns: 1_000_000_000, clients: None };
//! let mut traffic = chosen.build(&ground, Random::new(1))?;
//! let mut planned = Vec::new();
//! while let Some(arrival) = traffic.next().filter(|arrival| arrival.at.as_nanos() < ground.length_ns) {
//!     // Here a request to `arrival.route` is sent for `arrival.client`, and its answer is told.
//!     traffic.told(&arrival, Reply::Passed);
//!     planned.push((arrival.at.as_nanos() / 1_000_000, arrival.client));
//! }
//! assert_eq!(planned, [(0, 0), (250, 1), (500, 0), (750, 1)]);
//! # Ok::<(), tidegate_lab::simulate::PatternError>(())
//! ```

mod agenda;
#[cfg(test)]
mod cases;
mod chosen;
mod comparison;
mod contestant;
mod engine;
mod error;
mod json;
mod keeper;
mod pace;
mod params;
mod patterns;
mod picture;
pub mod race;
mod random;
mod report;
mod series;
mod sweep;
mod table;
mod tally;
mod traffic;

pub use chosen::{Chosen, PatternError};
pub use comparison::{PATTERNS_MAX, Simulation, traffic};
pub use contestant::{Contestant, Keyed, demonstrated};
pub use engine::ARRIVALS_MAX;
pub use error::SimulateError;
pub use pace::Pace;
pub use params::{Ground, span};
pub use patterns::Pattern;
pub use random::Random;
pub use report::{Report, Row};
pub use series::{Bin, Series};
pub use sweep::{Sweep, SweepError, Swept};
pub use traffic::{Arrival, Reply, Route, Traffic};

/// The most clients of a run.
pub const CLIENTS_MAX: u32 = 1_000_000;
