//! Answers that say what went wrong (RFC 9457).

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use crate::ProxyBody;

/// An answer with `status` whose body says `detail` to a person.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response<ProxyBody> {
    let title = status.canonical_reason().unwrap_or("Error");
    let text = serde_json::json!({ "title": title, "status": status.as_u16(), "detail": detail }).to_string();
    let mut answer = Response::new(ProxyBody::from(Bytes::from(text)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
