//! Denials in gRPC's own shape, read back by a few lines that know protobuf.

use std::time::Duration;

use http::Request;
use tidegate_http::{Dialects, LimitLayer};

use crate::given::{Body, Limited, Seen, get, limiter, limiter_of, with};

fn call() -> Request<Body> {
    let mut request = with(get("/greeter.Greeter/Hello"), &[("content-type", "application/grpc"), ("te", "trailers")]);
    *request.method_mut() = http::Method::POST;
    request
}

/// The fields of a protobuf message: number, and either a number or bytes.
fn message(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let number = varint(&mut bytes);
        match tag & 7 {
            0 => fields.push((tag >> 3, number, Vec::new())),
            2 => {
                let (content, rest) = bytes.split_at(usize::try_from(number).unwrap());
                bytes = rest;
                fields.push((tag >> 3, 0, content.to_vec()));
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<_> = text.chars().map(|c| ALPHABET.find(c).unwrap()).collect();
    let bit = |i: usize| bits[i / 6] >> (5 - i % 6) & 1;
    (0..bits.len() * 6 / 8).map(|byte| (0..8).fold(0, |value, i| value << 1 | bit(byte * 8 + i) as u8)).collect()
}

/// Code, message, the delay of RetryInfo, the subjects of QuotaFailure.
fn details(seen: &Seen) -> (u64, String, Option<Duration>, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let status = message(&base64(seen.field("grpc-status-details-bin").unwrap()));
    let (mut code, mut words, mut delay, mut subjects) = (0, String::new(), None, Vec::new());
    for (field, number, content) in status {
        match field {
            1 => code = number,
            2 => words = text(&content),
            3 => {
                let any = message(&content);
                let value = message(&any[1].2);
                match text(&any[0].2).as_str() {
                    "type.googleapis.com/google.rpc.RetryInfo" => {
                        let duration = message(&value[0].2);
                        let part =
                            |field| duration.iter().find(|(n, ..)| *n == field).map_or(0, |(_, number, _)| *number);
                        delay = Some(Duration::new(part(1), u32::try_from(part(2)).unwrap()));
                    }
                    "type.googleapis.com/google.rpc.QuotaFailure" => {
                        subjects.extend(value.iter().map(|(_, _, violation)| text(&message(violation)[0].2)));
                    }
                    other => panic!("{other}"),
                }
            }
            other => panic!("field {other}"),
        }
    }
    (code, words, delay, subjects)
}

#[test]
fn br_135_calls_beyond_the_limit_are_resource_exhausted_with_http_200() {
    let limited = Limited::new(LimitLayer::new(limiter_of(&[("calls", "1/min")]).0));
    assert_eq!(limited.send(call()).body, "hello");
    let seen = limited.send(call());
    assert_eq!((seen.status.as_u16(), seen.field("content-type")), (200, Some("application/grpc")));
    assert_eq!((seen.number("grpc-status"), seen.body.len()), (Some(8), 0));
    assert_eq!(seen.field("grpc-message"), Some("limit \"calls\" (1/min) is used up; try again in 60 seconds"));
    assert_eq!(seen.field("grpc-retry-pushback-ms"), Some("60000"));
    assert_eq!((seen.field("retry-after"), seen.remaining()), (None, 0));
    let words = seen.field("grpc-message").unwrap().to_owned();
    assert_eq!(details(&seen), (8, words, Some(Duration::from_secs(60)), vec!["calls".to_owned()]));
}

#[test]
fn br_137_retry_info_carries_the_exact_wait() {
    let (limiter, _) = limiter("1/2300ms");
    let layer = LimitLayer::new(limiter).key(|request: &Request<Body>| Some(request.uri().path().to_owned()));
    let limited = Limited::new(layer);
    let (_, denied) = (limited.send(call()), limited.send(call()));
    assert_eq!(details(&denied).2, Some(Duration::from_millis(2_300)));
    assert_eq!(denied.field("grpc-retry-pushback-ms"), Some("2300"));
    let (_, denied) = (limited.get(), limited.get());
    assert_eq!((denied.status.as_u16(), denied.field("retry-after")), (429, Some("3")));
}

#[test]
fn what_can_never_pass_says_do_not_retry() {
    let seen = Limited::new(LimitLayer::new(limiter("0/min").0)).send(call());
    assert_eq!(seen.field("grpc-retry-pushback-ms"), Some("-1"));
    let (code, _, delay, subjects) = details(&seen);
    assert_eq!((code, delay, subjects.len()), (8, None, 1));
}

#[test]
fn messages_are_encoded_and_never_raw() {
    let seen = Limited::new(LimitLayer::new(limiter_of(&[("100%\r\n\u{e9}", "0/min")]).0)).send(call());
    let message = seen.field("grpc-message").unwrap();
    assert!(message.starts_with("limit \"100%25%0D%0A%C3%A9\" (0/min)"), "{message}");
    assert_eq!(details(&seen).3, ["100%\r\n\u{e9}"]);
}

#[test]
fn only_grpc_is_answered_as_grpc() {
    let limited = Limited::new(LimitLayer::new(limiter("0/min").0).dialects(Dialects::NONE));
    for (kind, is_grpc) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc; charset=utf-8", true),
        ("application/grpc-web", false),
        ("application/grpcx", false),
        ("application/json", false),
    ] {
        let seen = limited.send(with(get("/"), &[("content-type", kind)]));
        assert_eq!(seen.field("grpc-status").is_some(), is_grpc, "{kind}");
        assert_eq!(seen.status == 200, is_grpc, "{kind}");
    }
}

#[test]
fn whoever_asks_for_a_call_goes_by_the_status() {
    let limited = Limited::new(LimitLayer::new(limiter("1/min").0).without_grpc_shape());
    assert_eq!(limited.send(call()).body, "hello");
    let seen = limited.send(call());
    assert_eq!((seen.status.as_u16(), seen.field("retry-after")), (429, Some("60")));
    assert_eq!((seen.field("content-type"), seen.field("grpc-status")), (Some("application/problem+json"), None));
}
