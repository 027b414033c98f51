//! The limits of limitador in force, with their counters: one value, so that a call sees all of the old or all of the
//! new.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tidegate_core::{Decision, Mode, Source};
use tidegate_policy::limitador::Limits;

use crate::telling::metrics::LimitName;
use crate::{Clock, LimitMetrics, LimitSet, Metrics};

/// The limits in force, if a file of them was given. Clones are one.
#[derive(Clone)]
pub struct LimitBook(Arc<Book>);

struct Book {
    in_force: ArcSwapOption<Imported>,
    /// Whoever puts others in force holds it.
    counted: Mutex<LimitSet>,
    clock: Clock,
}

/// All limits, and the counters of each.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) limits: Limits,
    counters: Vec<LimitMetrics>,
}

impl LimitBook {
    pub(crate) fn new(metrics: &Metrics, clock: Clock) -> Self {
        let counted = Mutex::new(metrics.limit_set());
        Self(Arc::new(Book { in_force: ArcSwapOption::empty(), counted, clock }))
    }

    /// Puts these limits in force, for the calls that come from now on. What keys owe is kept under limits that are the
    /// same but for `max_value`.
    pub fn replace(&self, limits: Limits) {
        let counted = self.0.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = match self.0.in_force.load().as_deref() {
            Some(old) => limits.in_place_of(&old.limits, (self.0.clock)()),
            None => limits,
        };
        let counters = counted.replace(&names(&limits));
        self.0.in_force.store(Some(Arc::new(Imported { limits, counters })));
    }

    pub(crate) fn in_force(&self) -> Option<Arc<Imported>> {
        self.0.in_force.load_full()
    }
}

impl Imported {
    /// Counts what was decided on the charges of the limits at these places.
    pub(crate) fn count(&self, places: &[usize], decisions: &[Decision], source: Source) {
        for (place, decision) in places.iter().zip(decisions) {
            self.counters.get(*place).iter().for_each(|counters| counters.count(decision, source));
        }
    }
}

impl fmt::Debug for LimitBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LimitBook").field(&self.0.in_force.load()).finish()
    }
}

/// Each limit stands under its namespace, behind a word that no policy can be called by.
fn names(limits: &Limits) -> Vec<LimitName> {
    let each = limits.as_slice().iter().map(|limit| LimitName {
        policy: format!("limitador:{}", limit.namespace),
        limit: limit.label.clone(),
        mode: Mode::Enforce,
        on_failure: limit.handling.on_failure,
    });
    each.collect()
}
