//! The patterns of traffic, one file each, in one mould: what it is, what it takes, and how it is built.

mod burst;
mod diurnal;
mod edge_burst;
mod mix;
mod on_off;
mod page_load;
mod poisson;
mod ramp;
mod retry_herd;
mod scraper;
mod steady;

use std::fmt;

use super::params::Params;
use super::{PatternError, Traffic};

/// All of them; the one that shows the trap first.
pub(super) const ALL: [&Pattern; 11] = [
    &edge_burst::EDGE_BURST,
    &steady::STEADY,
    &burst::BURST,
    &on_off::ON_OFF,
    &ramp::RAMP,
    &poisson::POISSON,
    &diurnal::DIURNAL,
    &retry_herd::RETRY_HERD,
    &page_load::PAGE_LOAD,
    &scraper::SCRAPER,
    &mix::MIX,
];

type Built = Result<Box<dyn Traffic>, PatternError>;

/// A pattern of traffic.
pub struct Pattern {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What it takes beside `clients` and `cost`, with what that means and is by default.
    pub params: &'static [(&'static str, &'static str)],
    pub(super) build: fn(&mut Params<'_>) -> Built,
}

impl Pattern {
    /// All patterns.
    #[must_use]
    pub const fn all() -> &'static [&'static Self] {
        &ALL
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
