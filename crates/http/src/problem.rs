//! Problem bodies (RFC 9457) of the types that draft-ietf-httpapi-ratelimit-headers registers.
//!
//! ```text
//! {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
//!  "title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
//!  "detail":"limit \"per-user\" (60/min) is used up; try again in 1 second","violated-policies":["per-user"]}
//! ```

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use crate::text::push_json;
use crate::{Denial, Reason, Report};

/// Enough for a name of usual length; a longer one makes the text grow.
const BODY_BYTES_USUAL: usize = 384;

const QUOTA_EXCEEDED: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "Request cannot be satisfied as assigned quota has been exceeded",
);
const TEMPORARY_REDUCED_CAPACITY: (&str, &str) = (
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    "Request cannot be satisfied due to temporary server capacity constraints",
);

/// The answer to a denied request, without the fields that tell of limits.
pub(crate) fn answer(denial: &Denial) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body(denial)));
    *answer.status_mut() = denial.status();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    answer
}

fn body(denial: &Denial) -> String {
    let status = denial.status();
    let (kind, title) = match denial.reason() {
        Reason::Limit | Reason::MemoryBound => QUOTA_EXCEEDED,
        Reason::Store => TEMPORARY_REDUCED_CAPACITY,
        Reason::MissingKey | Reason::PeerUnknown => ("about:blank", status.canonical_reason().unwrap_or_default()),
    };
    let mut json = String::with_capacity(BODY_BYTES_USUAL);
    // Kinds and titles are ours, and plain.
    let fixed = ["{\"type\":\"", kind, "\",\"title\":\"", title, "\",\"status\":", status.as_str(), ",\"detail\":"];
    fixed.iter().for_each(|part| json.push_str(part));
    push_json(&mut json, &denial.detail());
    json.push_str(",\"violated-policies\":[");
    if let Some(name) = denial.report().map(Report::limit_name) {
        push_json(&mut json, name);
    }
    // A line, so that a terminal shows its prompt below.
    json.push_str("]}\n");
    json
}
