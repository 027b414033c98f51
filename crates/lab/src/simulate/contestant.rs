//! Who decides in a simulation: limits under an algorithm, or policies.

use tidegate_core::{Algorithm, CHARGES_MAX, Limit, Quota};
use tidegate_policy::Policies;

use super::{Pace, SimulateError};

/// Who decides.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// Limits, all or none, under one algorithm; at least one.
    Limits {
        /// How they are enforced.
        algorithm: Algorithm,
        /// What they allow.
        quotas: Vec<Quota>,
    },
    /// Policies, as the proxy has them.
    Policies {
        /// What they are called here: the name of a file.
        name: String,
        /// The policies.
        policies: Box<Policies>,
    },
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keyed {
    /// Those of each client.
    #[default]
    Client,
    /// All.
    Global,
}

/// The order in which the algorithms are shown: the trap first.
#[must_use]
pub fn demonstrated() -> Vec<Algorithm> {
    /// The window that forgets, what was made to mend it, and the bucket that needs no window.
    const ORDER: [&str; 4] = ["fixed-window", "sliding-log", "sliding-counter", "token-bucket"];
    let mut all = Algorithm::ALL.to_vec();
    all.sort_by_key(|algorithm| ORDER.iter().position(|name| *name == algorithm.name()));
    all
}

impl Contestant {
    /// These limits under this algorithm.
    ///
    /// # Errors
    /// The algorithm does not take one of the limits, one of them is unlimited, or there are none or too many.
    pub fn new(algorithm: Algorithm, limits: &[Limit]) -> Result<Self, SimulateError> {
        if limits.is_empty() || limits.len() > CHARGES_MAX {
            return Err(SimulateError::LimitCount(limits.len()));
        }
        let quota = |limit: &Limit| {
            let quota = limit.quota().ok_or(SimulateError::Unlimited)?;
            quota.with_algorithm(algorithm).map_err(|error| SimulateError::Quota { limit: *limit, algorithm, error })
        };
        Ok(Self::Limits { algorithm, quotas: limits.iter().map(quota).collect::<Result<_, _>>()? })
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Limits { algorithm, .. } => algorithm.to_string(),
            Self::Policies { name, .. } => name.clone(),
        }
    }

    pub(super) fn quotas(&self) -> &[Quota] {
        match self {
            Self::Limits { quotas, .. } => quotas,
            Self::Policies { .. } => &[],
        }
    }

    /// The pace of the first limit, of the first policy that has one.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        match self {
            Self::Limits { quotas, .. } => quotas.first().map(pace),
            Self::Policies { policies, .. } => {
                let mut limits = policies.as_slice().iter().flat_map(|policy| policy.limits());
                limits.find_map(|named| named.limit.quota()).as_ref().map(pace)
            }
        }
    }

    /// What each limit promises, of which all decide on each request; none of policies.
    pub(super) fn promises(&self) -> Vec<Pace> {
        self.quotas().iter().map(pace).collect()
    }
}

impl Keyed {
    pub(super) const fn keys(self, clients: u32) -> u32 {
        match self {
            Self::Client => clients,
            Self::Global => 1,
        }
    }

    pub(super) const fn key(self, client: u32) -> u32 {
        match self {
            Self::Client => client,
            Self::Global => 0,
        }
    }
}

fn pace(quota: &Quota) -> Pace {
    Pace::new(quota.rate().count(), quota.rate().period())
}
