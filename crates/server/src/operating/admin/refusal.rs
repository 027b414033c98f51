//! Why something was not done.

use std::fmt;

use http::StatusCode;
use tidegate::policy::SingleKeyError;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn of_key(error: SingleKeyError) -> Self {
        let status = match error {
            SingleKeyError::NoSuchPolicy { .. } => StatusCode::NOT_FOUND,
            SingleKeyError::Exempt | SingleKeyError::Policies(_) => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }

    pub(super) fn of_store(error: impl fmt::Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("the store could not do it: {error}"))
    }
}
