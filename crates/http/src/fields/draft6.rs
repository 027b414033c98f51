//! Revisions 3 to 6 of draft-ietf-httpapi-ratelimit-headers: a field per number, and the policies beside them.
//!
//! ```text
//! RateLimit-Policy: 60;w=60;tidegate-burst=10
//! RateLimit-Limit: 10
//! RateLimit-Remaining: 9
//! RateLimit-Reset: 1
//! ```
//!
//! The numbers mean what they mean in revision 7.

use http::{HeaderMap, HeaderName};

use super::tighter::{self, Trio};
use super::{RATELIMIT_POLICY, Reset};
use crate::Report;

const TRIO: Trio = Trio {
    limit: HeaderName::from_static("ratelimit-limit"),
    remaining: HeaderName::from_static("ratelimit-remaining"),
    reset: HeaderName::from_static("ratelimit-reset"),
};

pub(super) fn write(report: &Report, headers: &mut HeaderMap) {
    headers.append(RATELIMIT_POLICY, report.roster().draft7().clone());
    tighter::write(TRIO, report, Reset::Delta, headers);
}
