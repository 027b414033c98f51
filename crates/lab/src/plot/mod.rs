//! Plots over time: for a terminal, and as SVG or PNG for a page or a talk.
//!
//! A plot is plain data; who fills it need not know how it is drawn. Each panel shows, over the same span of time, how
//! much a window held that ended then, the limit's line across it, what was left in the bucket, and below all that the
//! requests that came: those that passed and those that were denied.

mod bars;
mod canvas;
mod drawing;
mod png;
mod scale;
mod svg;
mod terminal;

pub use bars::{Bar, Bars, Group};

use crate::log::Utc;

/// Panels over one span of time, one below the other.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// What is seen, in one line.
    pub title: String,
    /// What else is to be known, in one line.
    pub subtitle: String,
    /// What the area shows: `passed in the minute before`.
    pub area_name: String,
    /// When the time that is shown began, if it was a real one.
    pub begins: Option<Utc>,
    /// The length of the time that is shown, in nanoseconds.
    pub length_ns: u64,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// One panel. Its rows of numbers are equally long, one number for each bin of time.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Whose it is.
    pub title: String,
    /// What came out, in one line.
    pub note: String,
    /// Does the note say that a promise was broken?
    pub is_broken: bool,
    /// The most that a window held that ended in the bin.
    pub area: Vec<u64>,
    /// The line that the area should not pass.
    pub limit: Option<u64>,
    /// The least that was left in the bucket; empty where that is not known.
    pub level: Vec<u64>,
    /// Requests that passed.
    pub admitted: Vec<u64>,
    /// Requests that were denied.
    pub denied: Vec<u64>,
}

impl Plot {
    /// The top of all panels: what the areas, the levels and the limits reach, and not less than 1.
    fn most(&self) -> u64 {
        let of = |panel: &Panel| panel.area.iter().chain(&panel.level).chain(&panel.limit).copied().max();
        self.panels.iter().filter_map(of).max().unwrap_or(0).max(1)
    }

    /// The most that was left in a bucket, and not less than 1.
    fn fullest(&self) -> u64 {
        self.panels.iter().flat_map(|panel| &panel.level).copied().max().unwrap_or(0).max(1)
    }

    /// The most requests that came in one bin, and not less than 1.
    fn busiest(&self) -> u64 {
        let of = |panel: &Panel| panel.admitted.iter().zip(&panel.denied).map(|(passed, denied)| passed + denied).max();
        self.panels.iter().filter_map(of).max().unwrap_or(0).max(1)
    }
}
