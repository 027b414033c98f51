//! The rules in force that came from files of other services, with their counters: one value, so that a call sees all
//! of the old or all of the new.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_policy::descriptor_rules::DescriptorRules;

use crate::telling::metrics::LimitName;
use crate::{Clock, LimitMetrics, LimitSet, Metrics};

/// The rules in force. Clones are one.
#[derive(Clone)]
pub struct RuleBook(Arc<Book>);

struct Book {
    in_force: ArcSwap<Rules>,
    /// Whoever puts others in force holds it.
    limits: Mutex<LimitSet>,
    clock: Clock,
}

/// All rules, and the counters of each.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Those of the reference rate limit service.
    pub(crate) descriptors: DescriptorRules,
    /// Of each, at its place.
    pub(crate) counters: Vec<LimitMetrics>,
}

impl RuleBook {
    pub(crate) fn new(metrics: &Metrics, clock: Clock) -> Self {
        let limits = Mutex::new(metrics.limit_set());
        Self(Arc::new(Book { in_force: ArcSwap::default(), limits, clock }))
    }

    /// Puts these rules in force, for the calls that come from now on. What keys owe is kept under rules that stand at
    /// the same place of their domain.
    pub fn replace(&self, rules: DescriptorRules) {
        let limits = self.0.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptors = rules.in_place_of(&self.0.in_force.load().descriptors, (self.0.clock)());
        let counters = limits.replace(&names(&descriptors));
        self.0.in_force.store(Arc::new(Rules { descriptors, counters }));
    }

    pub(crate) fn in_force(&self) -> Arc<Rules> {
        self.0.in_force.load_full()
    }
}

impl std::fmt::Debug for RuleBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RuleBook").field(&self.0.in_force.load()).finish()
    }
}

/// Each rule is a limit of a policy that is called as its domain.
fn names(rules: &DescriptorRules) -> Vec<LimitName> {
    let name = |rule: &tidegate_policy::descriptor_rules::DescriptorRule| LimitName {
        policy: rule.domain.clone(),
        limit: rule.path.clone(),
        mode: rule.mode,
        on_failure: rule.handling.on_failure,
    };
    rules.rules().iter().map(name).collect()
}
