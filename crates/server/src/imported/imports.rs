//! The rules and limits in force that came from files of other services: one value, with the counters of each.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tidegate_core::{Charge, Decision, LimitId, Source};
use tidegate_policy::descriptor_rules::DescriptorRules;
use tidegate_policy::limitador::Limits;

use super::limit::ImportedLimit;
use crate::operating::denied::Denied;
use crate::{Clock, LimitMetrics, LimitSet, Metrics};

/// What is in force of other services' files. Clones are one.
#[derive(Clone)]
pub(crate) struct Imports(Arc<Shelf>);

struct Shelf {
    in_force: ArcSwap<Imported>,
    /// Whoever puts others in force holds it.
    counted: Mutex<LimitSet>,
    clock: Clock,
    denied: Option<Arc<Denied>>,
}

/// All rules and limits, and the counters of each.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    files: Files,
    /// The rules, then the limits of limitador.
    all: Vec<ImportedLimit>,
    /// Of each, at its place.
    counters: Vec<LimitMetrics>,
    places: HashMap<LimitId, usize>,
    denied: Option<Arc<Denied>>,
}

/// What the files say.
#[derive(Clone, Debug, Default)]
struct Files {
    /// Those of the reference rate limit service.
    rules: Arc<DescriptorRules>,
    /// That of limitador, if one was given.
    limitador: Option<Arc<Limits>>,
}

impl Imports {
    pub(crate) fn new(metrics: &Metrics, clock: Clock, denied: Option<Arc<Denied>>) -> Self {
        let counted = Mutex::new(metrics.limit_set());
        Self(Arc::new(Shelf { in_force: ArcSwap::default(), counted, clock, denied }))
    }

    /// Puts these rules in force.
    pub(crate) fn replace_rules(&self, rules: DescriptorRules) {
        self.replace(|files| files.rules = Arc::new(rules.in_place_of(&files.rules, (self.0.clock)())));
    }

    /// Puts these limits of limitador in force.
    pub(crate) fn replace_limits(&self, limits: Limits) {
        self.replace(|files| {
            let limits = match &files.limitador {
                Some(old) => limits.in_place_of(old, (self.0.clock)()),
                None => limits,
            };
            files.limitador = Some(Arc::new(limits));
        });
    }

    fn replace(&self, change: impl FnOnce(&mut Files)) {
        let Shelf { in_force, counted, denied, .. } = &*self.0;
        let counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = in_force.load().files.clone();
        change(&mut files);
        in_force.store(Arc::new(Imported::new(files, &counted, denied.clone())));
    }

    pub(crate) fn in_force(&self) -> Arc<Imported> {
        self.0.in_force.load_full()
    }
}

impl Imported {
    fn new(files: Files, counted: &LimitSet, denied: Option<Arc<Denied>>) -> Self {
        let limits = files.limitador.iter().flat_map(|limits| limits.as_slice());
        let all: Vec<_> = files.rules.rules().iter().map(Into::into).chain(limits.map(Into::into)).collect();
        let counters = counted.replace(&all.iter().map(ImportedLimit::name).collect::<Vec<_>>());
        let places = all.iter().enumerate().map(|(place, limit)| (limit.named.id, place)).collect();
        Self { files, all, counters, places, denied }
    }

    /// The rules of the reference rate limit service.
    pub(crate) fn rules(&self) -> &DescriptorRules {
        &self.files.rules
    }

    /// The limits of limitador, if they were given.
    pub(crate) fn limitador(&self) -> Option<&Limits> {
        self.files.limitador.as_deref()
    }

    /// Counts what was decided on charges; those that others make are left to them.
    pub(crate) fn count(&self, charges: &[Charge<'_>], decisions: &[Decision], source: Source) {
        for (charge, decision) in charges.iter().zip(decisions) {
            let Some(counters) = self.places.get(&charge.limit).and_then(|place| self.counters.get(*place)) else {
                continue;
            };
            counters.count(decision, source);
            self.denied.iter().for_each(|denied| denied.count(charge, decision));
        }
    }

    /// The one that stores call so.
    pub(crate) fn by_id(&self, limit: LimitId) -> Option<&ImportedLimit> {
        self.all.get(*self.places.get(&limit)?)
    }

    /// Each with its counters, those of one policy behind each other.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&ImportedLimit, &LimitMetrics)> {
        self.all.iter().zip(&self.counters)
    }

    /// Those of what stands for a policy.
    pub(crate) fn of_policy<'a>(&'a self, policy: &'a str) -> impl Iterator<Item = &'a ImportedLimit> {
        self.all.iter().filter(move |limit| limit.policy == policy)
    }
}

impl fmt::Debug for Imports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Imports").field(&self.0.in_force.load()).finish()
    }
}
