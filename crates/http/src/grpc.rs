//! Denials in gRPC's own shape, and other failures.
//!
//! An answer without messages has its trailers in the header section ("Trailers-Only", gRPC over HTTP/2): status 200,
//! `grpc-status`, `grpc-message`, and in `grpc-status-details-bin` a `google.rpc.Status` with
//!
//! - `google.rpc.RetryInfo`: the exact wait, without which clients take RESOURCE_EXHAUSTED as final,
//! - `google.rpc.QuotaFailure`: the name of the limit.
//!
//! `grpc-retry-pushback-ms` (gRPC proposal A6) says the same to the clients' own retries; negative means do not retry.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request::Parts};

use crate::text::percent;
use crate::{Denial, Dialects, Reason, Report, fields};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Codes of `google.rpc.Code`.
const DEADLINE_EXCEEDED: u16 = 4;
const UNIMPLEMENTED: u16 = 12;
const RESOURCE_EXHAUSTED: u16 = 8;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;

/// Is it `application/grpc`, with or without the name of an encoding?
pub(crate) fn is_grpc(parts: &Parts) -> bool {
    is_grpc_call(&parts.headers)
}

/// Are these the fields of a gRPC call, or of its answer? (gRPC-Web has another shape.)
#[must_use]
pub fn is_grpc_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.as_bytes().strip_prefix(b"application/grpc"));
    kind.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The answer to a denied call.
pub(crate) fn answer(denial: &Denial, dialects: Dialects) -> Response<Bytes> {
    let (code, detail) = (code(denial.reason()), denial.detail());
    let mut answer = Response::new(Bytes::new());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(code));
    insert(headers, GRPC_MESSAGE, percent_encoded(&detail));
    insert(headers, GRPC_STATUS_DETAILS, base64(&status(code, &detail, denial)));
    headers.insert(GRPC_RETRY_PUSHBACK, HeaderValue::from(pushback_ms(denial.retry_after())));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(report) = denial.report() {
        fields::write(dialects, report, headers);
    }
    fields::write_source(denial.source(), headers);
    answer
}

/// The answer to a gRPC call that failed on its way, where a request of another kind would be answered with `status`.
#[must_use]
pub fn failed_call(status: StatusCode, detail: &str) -> Response<Bytes> {
    let code = match status {
        StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED => UNIMPLEMENTED,
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => DEADLINE_EXCEEDED,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        _ => INTERNAL,
    };
    let mut answer = Response::new(Bytes::new());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(code));
    insert(headers, GRPC_MESSAGE, percent_encoded(detail));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    // Encoded, so it is ASCII.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// What the client has asked too much of is exhausted; what the server lacks is unavailable.
fn code(reason: Reason) -> u16 {
    match reason {
        Reason::Limit | Reason::MissingKey | Reason::MemoryBound | Reason::Penalty => RESOURCE_EXHAUSTED,
        Reason::Store => UNAVAILABLE,
        Reason::PeerUnknown => INTERNAL,
    }
}

/// Milliseconds, rounded up, as a signed number of 32 bits; -1 if waiting does not help.
fn pushback_ms(wait: Option<Duration>) -> i32 {
    wait.map_or(-1, |wait| i32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX))
}

/// `grpc-message` is percent-encoded: all but printable ASCII, and the percent sign.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&percent(byte)),
        }
    }
    encoded
}

/// `google.rpc.Status { int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3; }`
fn status(code: u16, message: &str, denial: &Denial) -> Vec<u8> {
    let mut status = Vec::new();
    push_number(&mut status, 1, u64::from(code));
    push_bytes(&mut status, 2, message.as_bytes());
    if let Some(wait) = denial.retry_after() {
        push_bytes(&mut status, 3, &any("RetryInfo", &retry_info(wait)));
    }
    if let Some(name) = denial.report().map(Report::limit_name) {
        push_bytes(&mut status, 3, &any("QuotaFailure", &quota_failure(name, message)));
    }
    status
}

/// `google.protobuf.Any { string type_url = 1; bytes value = 2; }`
fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let mut any = Vec::new();
    push_bytes(&mut any, 1, format!("type.googleapis.com/google.rpc.{name}").as_bytes());
    push_bytes(&mut any, 2, value);
    any
}

/// `RetryInfo { google.protobuf.Duration retry_delay = 1; }`, `Duration { int64 seconds = 1; int32 nanos = 2; }`
fn retry_info(wait: Duration) -> Vec<u8> {
    let mut duration = Vec::new();
    push_number(&mut duration, 1, wait.as_secs());
    push_number(&mut duration, 2, u64::from(wait.subsec_nanos()));
    let mut info = Vec::new();
    push_bytes(&mut info, 1, &duration);
    info
}

/// `QuotaFailure { repeated Violation violations = 1; }`, `Violation { string subject = 1; string description = 2; }`
fn quota_failure(name: &str, description: &str) -> Vec<u8> {
    let mut violation = Vec::new();
    push_bytes(&mut violation, 1, name.as_bytes());
    push_bytes(&mut violation, 2, description.as_bytes());
    let mut failure = Vec::new();
    push_bytes(&mut failure, 1, &violation);
    failure
}

/// A field of protobuf's wire type 0; zero is the default and is left out.
fn push_number(message: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        message.push(field << 3);
        push_varint(message, number);
    }
}

/// A field of protobuf's wire type 2.
fn push_bytes(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    message.push(field << 3 | 2);
    push_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Seven bits to a byte, the low ones first; the top bit says that more follow.
fn push_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

/// Base64 (RFC 4648, section 4) without padding, as gRPC asks of `-bin` fields.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        // Each byte begun takes one digit, and one more ends the chunk.
        (0..=chunk.len()).for_each(|i| text.push(char::from(ALPHABET[(word >> (18 - 6 * i)) as usize & 63])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10, without the padding.
        let cases = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(cases, ["", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff]), "+/8");
    }

    #[test]
    fn protobuf_is_that_of_the_encoding_guide() {
        // 150 is 96 01; "testing" in field 2 is 12 07 74 65 73 74 69 6e 67.
        let mut message = Vec::new();
        push_number(&mut message, 1, 150);
        push_bytes(&mut message, 2, b"testing");
        push_number(&mut message, 3, 0);
        assert_eq!(message, b"\x08\x96\x01\x12\x07testing");
        assert_eq!(retry_info(Duration::from_millis(2_300)), b"\x0a\x08\x08\x02\x10\x80\xc6\x86\x8f\x01");
    }

    #[test]
    fn pushback_is_rounded_up_and_bounded() {
        assert_eq!(pushback_ms(Some(Duration::from_nanos(1))), 1);
        assert_eq!(pushback_ms(Some(Duration::from_millis(2_300))), 2_300);
        assert_eq!(pushback_ms(Some(Duration::from_secs(31_536_000))), i32::MAX);
        assert_eq!(pushback_ms(None), -1);
    }

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent_encoded("100 % of \"a\r\n\u{e9}\""), "100 %25 of \"a%0D%0A%C3%A9\"");
    }
}
