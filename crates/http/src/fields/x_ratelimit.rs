//! The custom before there was a draft: three fields, whose `Reset` some write as a span and some as a date.
//!
//! ```text
//! X-RateLimit-Limit: 10
//! X-RateLimit-Remaining: 9
//! X-RateLimit-Reset: 1771404501
//! ```
//!
//! The numbers mean what they mean in revision 7 of the draft.

use http::{HeaderMap, HeaderName};

use super::Reset;
use super::tighter::{self, Trio};
use crate::Report;

const TRIO: Trio = Trio {
    limit: HeaderName::from_static("x-ratelimit-limit"),
    remaining: HeaderName::from_static("x-ratelimit-remaining"),
    reset: HeaderName::from_static("x-ratelimit-reset"),
};

pub(super) fn write(report: &Report, reset: Reset, headers: &mut HeaderMap) {
    tighter::write(TRIO, report, reset, headers);
}
