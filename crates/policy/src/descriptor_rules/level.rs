//! One level of a tree of rules: what an entry leads to.

use std::collections::HashMap;

use super::wildcard::Wildcard;
use crate::Entry;

/// The nodes that one entry can lead to, by its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Level(HashMap<String, Keyed>);

/// The nodes of one key.
#[derive(Clone, Debug, Default)]
struct Keyed {
    values: HashMap<String, Node>,
    /// In the order of the file.
    wildcards: Vec<(Wildcard, Node)>,
    any: Option<Node>,
}

/// What an entry leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The rule's place among all.
    pub(super) rule: Option<usize>,
    pub(super) below: Level,
}

impl Level {
    pub(super) fn node(&self, entry: &Entry<'_>) -> Option<&Node> {
        let keyed = self.0.get(entry.key)?;
        let by_pattern = || keyed.wildcards.iter().find(|(wildcard, _)| wildcard.matches(entry.value));
        keyed.values.get(entry.value).or_else(|| by_pattern().map(|(_, node)| node)).or(keyed.any.as_ref())
    }

    /// Puts a node there. Nothing is there yet for this key and value, which may be empty.
    pub(super) fn insert(&mut self, key: &str, value: &str, node: Node) {
        let keyed = self.0.entry(key.to_owned()).or_default();
        match Wildcard::new(value) {
            Some(wildcard) => keyed.wildcards.push((wildcard, node)),
            None if value.is_empty() => keyed.any = Some(node),
            None => drop(keyed.values.insert(value.to_owned(), node)),
        }
    }
}
