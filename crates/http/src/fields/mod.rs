//! Header fields that tell a client about its limits, in the dialects that clients know.
//!
//! There is no standard yet, but a draft whose revisions differ, and customs. Each dialect is a file that knows its
//! names and its syntax; all say the same: what the limit is, what is left, and when there is more.

mod dialect;
pub(crate) mod draft10;
mod draft6;
pub(crate) mod draft7;
mod tighter;
mod timestamp;
mod window;
mod x_ratelimit;

use http::header::{CACHE_CONTROL, HeaderMap, RETRY_AFTER};
use http::{HeaderName, HeaderValue};
use tidegate::{Source, whole_seconds_up};

pub use dialect::{Dialect, Dialects, Reset, UnknownDialect};

use crate::{Denial, Report, text};

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const TIDEGATE_SOURCE: HeaderName = HeaderName::from_static("tidegate-source");

/// Writes what the dialects say about `report` beside what is in `headers` already.
///
/// An inner service may have written the same fields: another layer of ours, or an upstream that limits too. Where a
/// field is a list, ours is added to it. Where there can be only one value, the one with less remaining stands, since a
/// client that keeps to it keeps to both.
pub(crate) fn write(dialects: Dialects, report: &Report, headers: &mut HeaderMap) {
    match dialects.draft() {
        Some(Dialect::Draft10) => draft10::write(report, headers),
        Some(Dialect::Draft7) => draft7::write(report, headers),
        Some(Dialect::Draft6) => draft6::write(report, headers),
        Some(Dialect::XRateLimit(_)) | None => {}
    }
    if let Some(reset) = dialects.x_ratelimit() {
        x_ratelimit::write(report, reset, headers);
    }
}

/// Writes `Tidegate-Source: fallback` if the store could not be asked, so that the failure mode of the limits decided.
pub(crate) fn write_source(source: Source, headers: &mut HeaderMap) {
    if source == Source::Fallback {
        headers.insert(TIDEGATE_SOURCE, HeaderValue::from_static(source.name()));
    }
}

/// Writes what belongs to a denial: when to come back, that nobody keeps it, and who decided if it was not the store.
///
/// `Retry-After` is in whole seconds, rounded up, and at least 1 (RFC 9110, section 10.2.3); there is none if waiting
/// does not help.
pub(crate) fn write_denial(denial: &Denial, headers: &mut HeaderMap) {
    if let Some(wait) = denial.retry_after() {
        let seconds = whole_seconds_up(wait).max(1);
        headers.entry(RETRY_AFTER).or_insert_with(|| text::number(seconds));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    write_source(denial.source(), headers);
}

/// A list, its items rendered already.
fn listed(items: impl Iterator<Item = String>) -> HeaderValue {
    let list = items.collect::<Vec<_>>().join(", ");
    // Names were escaped, and the rest are numbers.
    HeaderValue::try_from(list).unwrap_or(HeaderValue::from_static(""))
}
