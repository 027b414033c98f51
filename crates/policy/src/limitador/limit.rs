//! One limit of a file.

use tidegate_core::{Handling, LimitId, Quota};

use super::cel::{Condition, Variable};
use super::charging::Call;
use crate::PARTS_MAX;

/// The most variables of one limit.
pub const VARIABLES_MAX: usize = PARTS_MAX;

/// A limit as the file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whose calls it is about; the domain of a rate limit service call.
    pub namespace: String,
    /// How much may pass within its seconds; zero denies everything.
    pub max_value: u64,
    /// The length of its window, in seconds.
    pub seconds: u64,
    /// What the file calls it in header fields.
    pub name: Option<String>,
    /// What the file calls it elsewhere.
    pub id: Option<String>,
    /// What metrics and messages call it: its name, or its id, or `limit-` and its place in its namespace. Another one
    /// than every other limit of the namespace has.
    pub label: String,
    /// What stores call it.
    pub limit: LimitId,
    /// What it allows, and how that is enforced.
    pub quota: Quota,
    /// What it wants of its store.
    pub handling: Handling,
    pub(super) conditions: Vec<Condition>,
    /// In the order of their sources, each once.
    pub(super) variables: Vec<Variable>,
}

impl Limit {
    /// The conditions as they are written.
    pub fn conditions(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| condition.source.as_str())
    }

    /// The variables as they are written.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.source.as_str())
    }

    pub(super) fn applies(&self, call: &Call<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(call))
    }
}

/// The identity of a limit: what has to be the same for its buckets to be the same.
///
/// Each text stands behind its length, so that no two lists of texts look alike, and behind a byte that no identity of
/// a policy's limit has at that place.
pub(super) fn identity(namespace: &str, seconds: u64, conditions: &[Condition], variables: &[Variable]) -> LimitId {
    let mut sources: Vec<_> = conditions.iter().map(|condition| condition.source.as_str()).collect();
    sources.sort_unstable();
    let variables = variables.iter().map(|variable| variable.source.as_str());
    let mut parts = format!("limitador\0{seconds}\0{}", sources.len());
    for text in sources.into_iter().chain(variables) {
        parts.push_str(&format!("\0{}\0{text}", text.len()));
    }
    LimitId::of(namespace, "").keyed_by(&parts)
}
