//! What is asked of a limiter about one key.

use tidegate_core::{Cost, Quota};

/// What a request wants of its key's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Tokens of each limit.
    pub cost: Cost,
    /// The quota that the key brings (its plan, say), in place of the first limit's.
    pub quota: Option<Quota>,
    /// Does the key stand in for one that is missing? Then it is charged in a namespace of its own, which is the same in
    /// all processes and which no other key reaches.
    pub is_stand_in: bool,
}

impl Demand {
    /// So many tokens.
    #[must_use]
    pub const fn of(cost: Cost) -> Self {
        Self { cost, quota: None, is_stand_in: false }
    }

    /// The same, for a key that stands in for a missing one.
    #[must_use]
    pub const fn for_stand_in(self) -> Self {
        Self { is_stand_in: true, ..self }
    }
}

impl From<Cost> for Demand {
    fn from(cost: Cost) -> Self {
        Self::of(cost)
    }
}
