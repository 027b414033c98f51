//! Why a call has no answer, in gRPC's own words.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response};

use super::body::CallBody;

/// The type of calls and answers.
pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The codes of `google.rpc.Code` that are given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgument = 3,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

/// A call that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
}

impl CallError {
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// The answer that says so: one without messages has its trailers in the header section.
    pub(crate) fn response(&self) -> Response<CallBody> {
        let mut response = Response::new(CallBody::empty());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, GRPC);
        headers.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        // Encoded, so it is ASCII.
        if let Ok(message) = HeaderValue::try_from(encoded(&self.message)) {
            headers.insert(GRPC_MESSAGE, message);
        }
        response
    }
}

/// `grpc-message` is percent-encoded: all but printable ASCII, and the percent sign.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_the_header_section() {
        let response = CallError::invalid("100 % of\n\u{e9}").response();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        assert_eq!(response.headers()["grpc-status"], "3");
        assert_eq!(response.headers()["grpc-message"], "100 %25 of%0A%C3%A9");
    }
}
