//! The charges of a request that no outer layer has made.

use http::Extensions;
use tidegate::Charge;
use tidegate::policy::{Charges, Place};

use crate::once::{Mark, is_charged};

/// Charges to be made, each with the limit that it comes from.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    all: &'a Charges<'a>,
    /// Those that are left, with their places among all; `None` if all are.
    left: Option<(Vec<usize>, Vec<Charge<'a>>)>,
}

impl<'a> Claim<'a> {
    /// What is left of `all` for a request with these extensions.
    pub(crate) fn new(all: &'a Charges<'a>, extensions: &Extensions) -> Self {
        let is_left = |charge: &Charge<'_>| !is_charged(extensions, Mark::Limit(charge.limit));
        if all.iter().all(is_left) {
            return Self { all, left: None };
        }
        let left = all.iter().enumerate().filter(|(_, charge)| is_left(charge));
        Self { all, left: Some(left.map(|(i, charge)| (i, *charge)).unzip()) }
    }

    pub(crate) fn charges(&self) -> &[Charge<'a>] {
        self.left.as_ref().map_or(self.all, |(_, charges)| charges)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Place<'a>, &Charge<'a>)> + Clone {
        let place = |i: usize| self.all.place(self.left.as_ref().map_or(i, |(places, _)| places[i]));
        self.charges().iter().enumerate().filter_map(move |(i, charge)| Some((place(i)?, charge)))
    }
}
