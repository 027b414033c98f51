//! Rules that were written for the rate limit service that Envoy's project publishes: which limit a descriptor meets.
//!
//! A file has one domain, and below it a tree: each level is found by the key and value of one entry. The rule of a
//! descriptor is the one that its last entry leads to; where that has none, it is not limited. What a rule counts is
//! told apart by the values that the file leaves open.
//!
//! Differences from that service are meant: they stand in docs/envoy.md. Read `rule`, `level`, `wildcard`, then `read` and
//! `rate_limit`.

mod level;
mod rate_limit;
mod read;
mod rule;
#[cfg(test)]
mod tests;
mod wildcard;

use std::collections::HashMap;

use tidegate_core::Time;

use self::level::Level;
pub use self::read::{RuleFile, RulesError, read};
pub use self::rule::{BroughtLimit, CallUnit, DescriptorRule};
use crate::Entry;

/// The most rules, over all files: each brings its own counters.
pub const RULES_MAX: usize = 1 << 16;
/// The most entries of a descriptor that a rule can be about.
pub const RULE_DEPTH_MAX: usize = 14;

/// The rules of all domains.
#[derive(Clone, Debug, Default)]
pub struct DescriptorRules {
    domains: HashMap<String, Level>,
    rules: Vec<DescriptorRule>,
}

impl DescriptorRules {
    /// All rules, in the order of the files.
    #[must_use]
    pub fn rules(&self) -> &[DescriptorRule] {
        &self.rules
    }

    /// How many domains there are rules for.
    #[must_use]
    pub fn domains(&self) -> usize {
        self.domains.len()
    }

    /// The place, in [`DescriptorRules::rules`], of the rule that a descriptor meets; `None` if it meets none.
    ///
    /// At each level the value as it stands comes first, then patterns in the order of the file, then the key without a
    /// value. A rule is met only by a descriptor with as many entries as lead to it.
    #[must_use]
    pub fn place_of(&self, domain: &str, entries: &[Entry<'_>]) -> Option<usize> {
        let (last, path) = entries.split_last()?;
        let mut level = self.domains.get(domain)?;
        for entry in path {
            level = &level.node(entry)?.below;
        }
        level.node(last)?.rule
    }

    /// These rules in place of `old` ones, from `now` on, on the clock of the store.
    #[must_use]
    pub fn in_place_of(mut self, old: &Self, now: Time) -> Self {
        let before: HashMap<_, _> = old.rules.iter().map(|rule| (rule.id, rule)).collect();
        for rule in &mut self.rules {
            let Some(before) = before.get(&rule.id) else { continue };
            let is_same = before.limit == rule.limit;
            rule.handling.in_force_since = if is_same { before.handling.in_force_since } else { Some(now) };
        }
        self
    }
}

// The keys of one decision have room in `Keys`, which counts bytes in 16 bits.
const _: () = assert!(tidegate_core::CHARGES_MAX * RULE_DEPTH_MAX * (2 + crate::VALUE_BYTES_MAX) <= u16::MAX as usize);
