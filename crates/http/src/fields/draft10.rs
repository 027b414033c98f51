//! Revision 10 of draft-ietf-httpapi-ratelimit-headers: two lists of structured fields (RFC 9651).
//!
//! ```text
//! RateLimit-Policy: "minute";q=60;w=60;tidegate-burst=10, "day";q=1000;w=86400
//! RateLimit: "minute";r=9;t=1
//! ```
//!
//! `q` per `w` seconds is the rate; `tidegate-burst` says what can pass at once where that is not `q`. `r` is what would
//! pass now, and `t` the seconds until more does.

use http::{HeaderMap, HeaderValue};

use super::window::window;
use super::{RATELIMIT, RATELIMIT_POLICY};
use crate::Report;
use crate::roster::Line;
use crate::text::Text;

pub(super) fn write(report: &Report, headers: &mut HeaderMap) {
    headers.append(RATELIMIT_POLICY, report.roster().draft10().clone());
    let mut text = Text::new();
    text.push(report.line().string.as_bytes());
    text.push(b";r=");
    text.push_number(report.decision().remaining());
    if let Some(seconds) = report.next_token_s() {
        text.push(b";t=");
        text.push_number(seconds);
    }
    headers.append(RATELIMIT, text.value());
}

/// The value of `RateLimit-Policy`.
pub(crate) fn policies(lines: &[Line]) -> HeaderValue {
    super::listed(lines.iter().map(|line| format!("{};q={}", line.string, parameters(line))))
}

/// What revisions 4 to 10 have in common: the count and its parameters.
pub(super) fn parameters(line: &Line) -> String {
    let window = window(&line.quota);
    let (burst, count) = (line.quota.burst(), line.quota.rate().count());
    let burst = if burst == count { String::new() } else { format!(";tidegate-burst={burst}") };
    format!("{};w={}{burst}", window.count, window.seconds)
}
