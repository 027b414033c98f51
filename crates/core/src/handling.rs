//! How a store treats the buckets of a limit, beyond deciding.

use core::num::NonZeroU32;

use crate::{Algorithm, FailureMode, Quota, Time};

/// What a limit wants of its store, beyond a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handling {
    /// What happens if the store has no room for the key.
    pub at_bound: AtBound,
    /// What happens if the store cannot answer.
    pub on_failure: FailureMode,
    /// How processes share the bucket.
    pub sharing: Sharing,
    /// Since when the quota is in force, on the store's clock: what a key owed under another quota is carried over as it
    /// stood then. With `None` it is carried over as it stands when the key is next seen.
    pub in_force_since: Option<Time>,
}

impl Handling {
    /// The same, with another behaviour at the memory bound.
    #[must_use]
    pub const fn with_at_bound(self, at_bound: AtBound) -> Self {
        Self { at_bound, ..self }
    }

    /// The same, with another behaviour while the store cannot answer.
    #[must_use]
    pub const fn with_on_failure(self, on_failure: FailureMode) -> Self {
        Self { on_failure, ..self }
    }

    /// The same, with another way to share.
    #[must_use]
    pub const fn with_sharing(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// The same for a quota that is in force since `time`.
    #[must_use]
    pub const fn with_in_force_since(self, time: Time) -> Self {
        Self { in_force_since: Some(time), ..self }
    }
}

/// What a limit does for a key that is new to a store without room for another bucket.
///
/// Limits that share a store should agree on it: one that displaces may take the slot of one that does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtBound {
    /// Take the slot of the bucket nearest to full among those probed. It is counted, and whoever is displaced starts
    /// again with a full bucket.
    #[default]
    Displace,
    /// Deny the newcomer until the first of the buckets probed will be full.
    Deny,
    /// Let the newcomers of one limit share one bucket. One that gets a bucket of its own later starts with what the
    /// shared one lacks.
    Pool,
}

/// How processes share the bucket of a key in a store outside of them. In memory there is nothing to share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Every decision is made where the bucket is.
    #[default]
    Exact,
    /// A process takes tokens ahead and decides by itself until they are spent. Over time the limit holds exactly; in
    /// any one window the tokens out on lease come on top.
    Leased {
        /// The most tokens of one key that a process holds ahead.
        most: NonZeroU32,
    },
}

impl Sharing {
    /// The most tokens of one key that a process holds ahead under `quota`: what is said, and no more than a quarter of
    /// the burst, so that others find some. Zero if that leaves less than two: then the limit is decided exactly. So is a
    /// sliding counter or log: what is given back unused would have to name the time at which it was taken.
    #[must_use]
    pub fn most_ahead(self, quota: &Quota) -> u64 {
        match self {
            Self::Exact => 0,
            Self::Leased { .. } if matches!(quota.algorithm(), Algorithm::SlidingCounter | Algorithm::SlidingLog) => 0,
            Self::Leased { most } => match u64::from(most.get()).min(quota.burst() / 4) {
                most @ 2.. => most,
                _ => 0,
            },
        }
    }
}
