//! Problem bodies (RFC 9457) of the types that draft-ietf-httpapi-ratelimit-headers registers.
//!
//! ```text
//! {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
//!  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
//!  "detail":"limit \"per-user\" (60/min) is used up; try again in 1 second","violated-policies":["per-user"]}
//! ```
//!
//! If the store could not be asked, a member `"source":"fallback"` says that the failure mode of the limits decided.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tidegate::{Quota, Source};

use crate::denial::{USED_UP, called, push_when};
use crate::text::push_json;
use crate::{Denial, Reason, Report};

/// Enough for a name of usual length; a longer one makes the text grow.
const BODY_BYTES_USUAL: usize = 384;
/// `try again in`, a number of 20 digits, `seconds`.
const WHEN_BYTES_MAX: usize = 41;

const QUOTA_EXCEEDED: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "Request cannot be satisfied as assigned quota has been exceeded",
);
const ABNORMAL_USAGE: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
    "Request not satisfied due to detection of abnormal request pattern",
);
const TEMPORARY_REDUCED_CAPACITY: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    "Request cannot be satisfied due to temporary server capacity constraints",
);

/// The answer to a denied request, without the fields that tell of limits. The memory of the request's fields serves
/// again for its own.
pub(crate) fn answer(denial: &Denial, mut room: HeaderMap) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body(denial)));
    *answer.status_mut() = denial.status();
    room.clear();
    *answer.headers_mut() = room;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    answer
}

fn body(denial: &Denial) -> String {
    let is_usual = denial.reason() == Reason::Limit && denial.source() != Source::Fallback;
    if let (true, Some(report), Some(wait)) = (is_usual, denial.report(), denial.retry_after()) {
        return report.line().used_up.body(wait);
    }
    let status = denial.status();
    let kind_and_title = match denial.reason() {
        Reason::Limit | Reason::MemoryBound => QUOTA_EXCEEDED,
        Reason::Penalty => ABNORMAL_USAGE,
        Reason::Store => TEMPORARY_REDUCED_CAPACITY,
        Reason::MissingKey | Reason::PeerUnknown => ("about:blank", status.canonical_reason().unwrap_or_default()),
    };
    let mut json = opening(kind_and_title, status);
    push_json(&mut json, &denial.detail());
    push_ending(&mut json, denial.report().map(Report::limit_name), denial.source());
    json
}

/// All that comes before the detail.
fn opening((kind, title): (&str, &str), status: StatusCode) -> String {
    let mut json = String::with_capacity(BODY_BYTES_USUAL);
    // Kinds and titles are ours, and plain.
    let fixed = ["{\"type\":\"", kind, "\",\"title\":\"", title, "\",\"status\":", status.as_str(), ",\"detail\":"];
    fixed.iter().for_each(|part| json.push_str(part));
    json
}

/// All that comes after it.
fn push_ending(json: &mut String, limit_name: Option<&str>, source: Source) {
    json.push_str(",\"violated-policies\":[");
    if let Some(name) = limit_name {
        push_json(json, name);
    }
    json.push(']');
    if source == Source::Fallback {
        [",\"source\":\"", source.name(), "\""].iter().for_each(|part| json.push_str(part));
    }
    // A line, so that a terminal shows its prompt below.
    json.push_str("}\n");
}

/// The problem of a limit that is used up. One denial differs from the next only in when to come back, so the rest is
/// rendered once.
#[derive(Debug)]
pub(crate) struct UsedUp {
    before: Box<str>,
    after: Box<str>,
}

impl UsedUp {
    pub(crate) fn new(limit_name: &str, quota: &Quota) -> Self {
        let mut before = opening(QUOTA_EXCEEDED, StatusCode::TOO_MANY_REQUESTS);
        push_json(&mut before, &(called(limit_name, quota) + USED_UP));
        // The quotation mark at the end of the detail comes after what is added to it.
        let mut after = String::from(before.pop().unwrap_or('"'));
        push_ending(&mut after, Some(limit_name), Source::Store);
        Self { before: before.into(), after: after.into() }
    }

    fn body(&self, wait: Duration) -> String {
        let mut json = String::with_capacity(self.before.len() + WHEN_BYTES_MAX + self.after.len());
        json.push_str(&self.before);
        push_when(&mut json, Some(wait));
        json.push_str(&self.after);
        json
    }
}
