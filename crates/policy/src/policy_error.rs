//! Why policies cannot stand together.

use std::fmt;

use tidegate_core::CHARGES_MAX;

use crate::{FieldName, OverrideError, POLICIES_MAX};

/// How many policies a message names.
const NAMED_MAX: usize = 5;

/// Policies that cannot stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A limit has the names of an earlier one, so both would draw on one bucket.
    SameLimit {
        /// The policy's name.
        policy: String,
        /// The limit's name.
        limit: String,
    },
    /// One request could make more than [`CHARGES_MAX`] charges.
    TooManyLimits {
        /// How many.
        count: usize,
        /// Under which policies.
        policies: Vec<String>,
    },
    /// More than [`POLICIES_MAX`] policies.
    TooManyPolicies {
        /// How many.
        count: usize,
    },
    /// A match asks for one field twice.
    SameHeader {
        /// The policy's name.
        policy: String,
        /// The field.
        header: FieldName,
    },
    /// An override, or an exempt key, does not fit its policy.
    Override {
        /// The policy's name.
        policy: String,
        /// Why.
        error: OverrideError,
    },
    /// A key is let off by all policies, and each may have other keys.
    KeyWithoutPolicy,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameLimit { policy, limit } => {
                write!(f, "limit `{limit}` of policy `{policy}` is there twice; give each limit a name of its own")
            }
            Self::TooManyLimits { count, policies } => {
                write!(f, "{count} limits apply to one request; the maximum is {CHARGES_MAX}")?;
                for (i, policy) in policies.iter().take(NAMED_MAX).enumerate().filter(|_| policies.len() > 1) {
                    write!(f, "{} `{policy}`", if i == 0 { "; together apply" } else { "," })?;
                }
                f.write_str(if policies.len() > NAMED_MAX { " and more" } else { "" })
            }
            Self::TooManyPolicies { count } => write!(f, "there are {count} policies; the maximum is {POLICIES_MAX}"),
            Self::SameHeader { policy, header } => write!(
                f,
                "the match of policy `{policy}` asks for header {header} twice; write one list of values for it"
            ),
            Self::Override { policy, error } => write!(f, "policy `{policy}`: {error}"),
            Self::KeyWithoutPolicy => {
                f.write_str("each policy has keys of its own, so keys are exempt in a policy, not in all of them")
            }
        }
    }
}

impl std::error::Error for PolicyError {}
