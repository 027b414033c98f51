//! The fields that Envoy adds to its answer to the client, by choice.

use std::fmt;
use std::str::FromStr;

use super::messages::{Code, DescriptorStatus, HeaderToAdd};

/// Which fields Envoy is asked to add to an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvoyHeaders {
    /// None.
    Off,
    /// `Retry-After` on a denial.
    #[default]
    RetryAfter,
    /// The same, and `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` on every answer, as the reference
    /// service names them.
    RateLimit,
    /// The same under the names that begin with `X-`.
    XRateLimit,
}

impl EnvoyHeaders {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("off", Self::Off),
        ("retry-after", Self::RetryAfter),
        ("ratelimit", Self::RateLimit),
        ("x-ratelimit", Self::XRateLimit),
    ];

    /// The fields for these statuses: of the denials the one that lasts longest counts, else the one with the least left.
    pub(super) fn fields(self, overall: Code, statuses: &[DescriptorStatus]) -> Vec<HeaderToAdd> {
        let names = match self {
            Self::Off => return Vec::new(),
            Self::RetryAfter => None,
            Self::RateLimit => Some(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]),
            Self::XRateLimit => Some(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]),
        };
        let Some(binding) = binding(overall, statuses) else { return Vec::new() };
        let seconds = binding.duration_until_reset.map(|span| span.seconds);
        let mut fields = Vec::new();
        let mut add = |key: &str, value: String| fields.push(HeaderToAdd { key: key.to_owned(), value });
        if let Some([limit, remaining, reset]) = names {
            add(limit, binding.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit).to_string());
            add(remaining, binding.limit_remaining.to_string());
            seconds.iter().for_each(|seconds| add(reset, seconds.to_string()));
        }
        if overall == Code::OverLimit {
            seconds.iter().for_each(|seconds| add("Retry-After", seconds.max(&1).to_string()));
        }
        fields
    }
}

fn binding(overall: Code, statuses: &[DescriptorStatus]) -> Option<&DescriptorStatus> {
    let limited = || statuses.iter().filter(|status| status.current_limit.is_some());
    let seconds = |status: &&DescriptorStatus| status.duration_until_reset.map_or(i64::MAX, |span| span.seconds);
    if overall == Code::OverLimit {
        let denied = limited().filter(|status| status.code == Code::OverLimit as i32);
        // Of equals the first.
        return denied.rev().max_by_key(seconds);
    }
    limited().min_by_key(|status| status.limit_remaining)
}

impl fmt::Display for EnvoyHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, one)| one == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for EnvoyHeaders {
    type Err = UnknownEnvoyHeaders;

    fn from_str(name: &str) -> Result<Self, UnknownEnvoyHeaders> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, one)| *one).ok_or(UnknownEnvoyHeaders)
    }
}

/// The name is not one of [`EnvoyHeaders::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEnvoyHeaders;

impl fmt::Display for UnknownEnvoyHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of")?;
        EnvoyHeaders::ALL
            .iter()
            .enumerate()
            .try_for_each(|(i, (name, _))| write!(f, "{} `{name}`", if i == 0 { "" } else { "," }))
    }
}

impl std::error::Error for UnknownEnvoyHeaders {}
