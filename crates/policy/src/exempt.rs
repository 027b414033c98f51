//! Who is let off.

use crate::{PathPattern, Trust};

/// The paths at which the usual probes ask whether a service is well; the last two are gRPC's own.
pub const HEALTH_CHECKS: [&str; 6] =
    ["/healthz", "/livez", "/readyz", "/health", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"];

/// Requests that a policy, or all of them, let off. They match, and are charged nothing.
///
/// CORS preflights are let off unless told otherwise, or the policy's match names their method, `OPTIONS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exempt {
    /// Clients in these networks. The list is written as the one of trusted networks.
    pub addresses: Trust,
    /// These paths.
    pub paths: Vec<PathPattern>,
    /// These keys, each by the values of its parts. Only a policy has keys.
    pub keys: Vec<Vec<String>>,
    /// CORS preflights: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    pub preflights: bool,
    /// The paths in [`HEALTH_CHECKS`].
    pub health_checks: bool,
}

impl Default for Exempt {
    /// Nobody, and preflights.
    fn default() -> Self {
        Self {
            addresses: Trust::default(),
            paths: Vec::new(),
            keys: Vec::new(),
            preflights: true,
            health_checks: false,
        }
    }
}

impl Exempt {
    /// The paths, and those of health checks if they are let off.
    pub(crate) fn all_paths(&self) -> impl Iterator<Item = PathPattern> {
        let checks = HEALTH_CHECKS.iter().filter(|_| self.health_checks).filter_map(|path| path.parse().ok());
        self.paths.iter().cloned().chain(checks)
    }
}

/// Why a request is let off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exemption {
    /// It is a preflight.
    Preflight,
    /// By its path.
    Path,
    /// By its client's address.
    Address,
    /// By its key.
    Key,
}

impl std::fmt::Display for Exemption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Preflight => "it is a CORS preflight",
            Self::Path => "its path is exempt",
            Self::Address => "its client's address is exempt",
            Self::Key => "its key is exempt",
        })
    }
}
