//! How a proxy wants its answer.
//!
//! nginx understands 401 and 403 as a no, and takes every other status for a failure of its own. So it asks with
//! `?deny_status=403`, and finds in two fields what its client should be told.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, request::Parts};

use super::PATH;
use super::meant::Wrong;

/// The status that the caller should be told, where the answer has another.
const TIDEGATE_STATUS: HeaderName = HeaderName::from_static("tidegate-status");
/// The body that the caller should be told, for proxies that do not read the answer's.
const TIDEGATE_PROBLEM: HeaderName = HeaderName::from_static("tidegate-problem");
const DENY_STATUS: &str = "deny_status";

/// What a proxy wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The status of every denial.
    deny_status: Option<StatusCode>,
}

impl Asked {
    /// What the query says. Where the path is that of the request that is meant, the query is too.
    pub(super) fn in_query(parts: &Parts) -> Result<Self, Wrong> {
        let query = parts.uri.query().filter(|_| parts.uri.path() == PATH).unwrap_or_default();
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        // Other names are none of ours: some proxies pass on the query of their client.
        let Some((_, value)) = pairs.into_iter().find(|(name, _)| *name == DENY_STATUS) else {
            return Ok(Self::default());
        };
        let status = value.parse().ok().filter(StatusCode::is_client_error).ok_or(Wrong::DenyStatus)?;
        Ok(Self { deny_status: Some(status) })
    }

    /// The answer as it is wanted.
    pub(super) fn shown(self, mut answer: Response<Bytes>) -> Response<Bytes> {
        let told = answer.status();
        let Some(status) = self.deny_status.filter(|_| !told.is_success()) else { return answer };
        *answer.status_mut() = status;
        // It is a line of JSON, which has no control characters but the end of the line.
        let problem = HeaderValue::from_bytes(answer.body().trim_ascii_end()).ok();
        let headers = answer.headers_mut();
        headers.insert(TIDEGATE_STATUS, HeaderValue::from(told.as_u16()));
        if let Some(problem) = problem {
            headers.insert(TIDEGATE_PROBLEM, problem);
        }
        answer
    }
}
