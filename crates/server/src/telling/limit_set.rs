//! Limits that are counted together and replaced together: those of the policies, those of imported rules, those that
//! callers bring.

use std::sync::{Mutex, PoisonError};

use crate::telling::limit_metrics::Families;
use crate::{LimitMetrics, LimitName};

/// The counters of limits that are replaced as a whole. Two sets must not have a limit of the same names: when one of them
/// forgets it, the series is gone.
#[derive(Debug)]
pub struct LimitSet {
    families: Families,
    limits: Mutex<Vec<(LimitName, LimitMetrics)>>,
}

impl LimitSet {
    pub(crate) fn new(families: Families) -> Self {
        Self { families, limits: Mutex::default() }
    }

    /// Counts these limits from now on, and returns their counters in the same order. Those that were there before and
    /// are here go on; the others are forgotten.
    pub fn replace(&self, names: &[LimitName]) -> Vec<LimitMetrics> {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = limits.iter().filter(|(name, _)| !names.contains(name));
        gone.for_each(|(name, _)| self.families.forget(name));
        let counters: Vec<_> = names.iter().map(|name| self.families.limit(name)).collect();
        *limits = names.iter().cloned().zip(counters.iter().cloned()).collect();
        counters
    }

    /// The counters of the limit at `place` in the order given last.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<LimitMetrics> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(place).map(|(_, counters)| counters.clone())
    }
}
