//! What a configuration would have done to the requests of a log.
//!
//! Read `stream` first (from lines to requests in the order of time), then `engine` (policies at work on them), `tally`
//! (what is counted) and `report`.

mod blind_spots;
mod clients;
mod engine;
mod fail_if;
mod filter;
mod html;
mod interner;
mod json;
mod logs;
mod numbers;
mod paths;
mod picture;
mod report;
mod request;
mod stream;
mod tally;
mod text;
mod timeline;

pub use engine::LimitTally;
pub use fail_if::FailIf;
pub use filter::Filter;
pub use html::to_html;
pub use json::{to_csv, to_json};
pub use picture::to_plot;
pub use report::{ByStatus, ClientLine, Comparison, Example, Left, Outcome, PathLine, Report};
pub use stream::{Options, Progress};
pub use text::to_text;
pub use timeline::{Step, Timeline};

pub(crate) use clients::Clients;
pub(crate) use engine::Engine;
pub(crate) use numbers::{Count, Share};
pub(crate) use request::Request;
pub(crate) use stream::{Audience, Intake, stream};
pub(crate) use text::span;

use tidegate_policy::Policies;

use crate::log::Feeds;
use crate::replay::tally::Tally;

/// Replays logs against policies, and beside them against others to compare with.
///
/// `progress` is called now and then.
#[must_use]
pub fn replay(
    feeds: &mut Feeds,
    policies: Policies,
    compare: Option<Policies>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Report {
    let mut tally = Tally::new(policies, compare);
    let intake = stream(feeds, options, &mut tally, progress);
    tally.report(intake, feeds, options.top)
}
