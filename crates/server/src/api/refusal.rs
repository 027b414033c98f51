//! Why a call is not answered, as a problem (RFC 9457) that names what is wrong, and where.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use tidegate_policy::Printable;

use crate::ProxyBody;
use crate::json::{Fault, Writer};

/// Why a call is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// The field of the body that is wrong, and its line and column.
    place: Option<(String, u64, u64)>,
    /// The methods that the path takes.
    allow: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), place: None, allow: None }
    }

    /// A body that is wrong.
    pub(super) fn body(text: &str, fault: &Fault) -> Self {
        let place = fault.place(text);
        let field = match fault.pointer() {
            "" => "the body".to_owned(),
            pointer => format!("`{}`", Printable(pointer.trim_start_matches('/').replace('/', ".").as_bytes())),
        };
        let detail = format!("{field}, at {place}: {}", fault.message());
        let place = (fault.pointer().to_owned(), place.line as u64, place.column as u64);
        let status = if fault.is_conflict() { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        Self { place: Some(place), ..Self::new(status, detail) }
    }

    /// A parameter that is wrong.
    pub(super) fn parameter(name: &str, what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("`{}`: {what}", Printable(name.as_bytes())))
    }

    /// A method that the path does not take.
    pub(super) fn method(allow: &'static str) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("this takes {allow}"));
        Self { allow: Some(allow), ..refusal }
    }

    /// The store gave no answer.
    pub(super) fn store(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("the store could not decide: {error}"))
    }

    pub(super) fn response(&self) -> Response<ProxyBody> {
        let mut text = String::new();
        let mut object = Writer::object(&mut text);
        object.text("title", self.status.canonical_reason().unwrap_or("Error"));
        object.number("status", self.status.as_u16().into());
        object.text("detail", &self.detail);
        if let Some((pointer, line, column)) = &self.place {
            object.text("pointer", pointer);
            object.number("line", *line);
            object.number("column", *column);
        }
        object.end();
        text.push('\n');
        let mut response = Response::new(ProxyBody::from(Bytes::from(text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.allow.into_iter().for_each(|allow| drop(headers.insert(ALLOW, HeaderValue::from_static(allow))));
        match self.status {
            StatusCode::UNAUTHORIZED => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        response
    }
}
