//! Envoy's rate limit service: `envoy.service.ratelimit.v3.RateLimitService`, over gRPC and, as the reference service
//! has it, as JSON over HTTP.
//!
//! A call names a domain and descriptors. Each is charged under the rule that it meets in the files of the reference
//! service, or under the limit that it brings, and under Tidegate's own policies, which see it as a request; and the call
//! as a whole under the limits of limitador; all of them in one step. docs/envoy.md says what differs from the reference service.
//!
//! Read `messages`, `asked` (from a call to charges), `decide`, `statuses` (from decisions to an answer), `headers`;
//! then `json` and `over_http`, the other way to ask, and `files`, what the service says of itself.

mod asked;
mod decide;
pub(crate) mod files;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod messages;
mod over_http;
mod statuses;

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Algorithm, Handling, Mode, Store};

pub use self::headers::{EnvoyHeaders, UnknownEnvoyHeaders};
use crate::desk::Desk;
use crate::{LimitMetrics, LimitName, LimitSet};

/// The names of the one limit under which all limits are counted that calls bring.
const BROUGHT: (&str, &str) = ("envoy", "brought");

/// How calls of the rate limit service are answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateLimitSetup {
    /// How limits that calls bring are enforced.
    pub algorithm: Algorithm,
    /// What they want of their store.
    pub handling: Handling,
    /// What Envoy is asked to add to its answers.
    pub headers: EnvoyHeaders,
}

/// The rate limit service over a desk.
pub(crate) struct RateLimits<S> {
    desk: Arc<Desk<S>>,
    algorithm: Algorithm,
    handling: Handling,
    headers: EnvoyHeaders,
    brought: LimitMetrics,
    /// The counters are there for as long as the service is.
    _set: LimitSet,
}

impl<S: Store + 'static> RateLimits<S> {
    pub(crate) fn new(desk: Arc<Desk<S>>, setup: RateLimitSetup) -> Self {
        let RateLimitSetup { algorithm, handling, headers } = setup;
        let (policy, limit) = BROUGHT;
        let name = LimitName {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            mode: Mode::Enforce,
            on_failure: handling.on_failure,
        };
        let set = desk.metrics.limit_set();
        Self { desk, algorithm, handling, headers, brought: set.replace(&[name]).swap_remove(0), _set: set }
    }
}

impl<S> fmt::Debug for RateLimits<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimits").field("imports", &self.desk.imports).finish_non_exhaustive()
    }
}
