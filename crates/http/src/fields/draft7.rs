//! Revision 7 of draft-ietf-httpapi-ratelimit-headers: one dictionary, and the policies beside it.
//!
//! ```text
//! RateLimit-Policy: 60;w=60;tidegate-burst=10, 1000;w=86400
//! RateLimit: limit=10, remaining=9, reset=1
//! ```
//!
//! A bucket has no window that ends. `limit` is what can pass at once, the burst, and `reset` the seconds until the
//! bucket is full, so that `remaining` is `limit` again.

use http::{HeaderMap, HeaderValue};
use tidegate::whole_seconds_up;

use super::draft10::parameters;
use super::{RATELIMIT, RATELIMIT_POLICY, tighter};
use crate::Report;
use crate::roster::Line;
use crate::text::Text;

pub(super) fn write(report: &Report, headers: &mut HeaderMap) {
    headers.append(RATELIMIT_POLICY, report.roster().draft7().clone());
    let (quota, remaining) = (report.decision().quota(), report.decision().remaining());
    let written = headers.get(RATELIMIT).and_then(tighter::member_remaining);
    if written.is_some_and(|written| written <= remaining) {
        return;
    }
    let mut text = Text::new();
    text.push(b"limit=");
    text.push_number(quota.burst());
    text.push(b", remaining=");
    text.push_number(remaining);
    if let Some(reset_after) = report.reset_after() {
        text.push(b", reset=");
        text.push_number(whole_seconds_up(reset_after));
    }
    headers.insert(RATELIMIT, text.value());
}

/// The value of `RateLimit-Policy`.
pub(crate) fn policies(lines: &[Line]) -> HeaderValue {
    super::listed(lines.iter().map(parameters))
}
