//! A span as OTLP writes it in JSON: numbers of 64 bits as text, identities in hexadecimal.
//!
//! The names of attributes are those of OpenTelemetry's conventions for HTTP servers; ours begin with `tidegate.`.

use std::time::Duration;

use http::Version;
use serde_json::{Value, json};
use tidegate_policy::Client;

use super::Position;
use crate::telling::record::{Head, Record};

/// The kind of a span that serves a request.
const SERVER: u8 = 2;
/// The status of a span that failed; of the others none is said.
const FAILED: u8 = 2;

/// Methods that a span is named after; callers can invent any number of others.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// One line about a request that took so long.
pub(super) fn line(position: &Position, record: &Record, took: Duration) -> Vec<u8> {
    let Position { own, parent } = position;
    let end = record.started_at.saturating_add(took);
    let mut span = json!({
        "traceId": format!("{:032x}", own.trace),
        "spanId": format!("{:016x}", own.span),
        "name": method(&record.head).unwrap_or("HTTP"),
        "kind": SERVER,
        "startTimeUnixNano": record.started_at.as_nanos().to_string(),
        "endTimeUnixNano": end.as_nanos().to_string(),
        "attributes": attributes(record),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if record.status() >= 500 {
        span["status"] = json!({ "code": FAILED });
    }
    let mut line = span.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn attributes(record: &Record) -> Vec<Value> {
    let (head, mut all) = (&record.head, Vec::with_capacity(20));
    request(head, &mut all);
    text(&mut all, "client.address", record.client.map(|client| client.to_string()));
    text(&mut all, "network.peer.address", record.peer.map(|peer| Client::from(peer).to_string()));
    text(&mut all, "network.protocol.version", Some(version(record.version).to_owned()));
    number(&mut all, "http.response.status_code", Some(record.status().into()));
    number(&mut all, "http.response.body.size", Some(record.sent_bytes));
    if record.status() >= 500 {
        text(&mut all, "error.type", Some(record.status().to_string()));
    }
    decision(record, &mut all);
    all
}

fn request(head: &Head, all: &mut Vec<Value>) {
    let known = method(head);
    text(all, "http.request.method", Some(known.unwrap_or("_OTHER").to_owned()));
    text(all, "http.request.method_original", known.is_none().then(|| lossy(head.method())));
    let target = lossy(head.target());
    let (path, query) = target.split_once('?').map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
    text(all, "url.scheme", Some("http".to_owned()));
    text(all, "url.path", Some(path.to_owned()));
    text(all, "url.query", query.map(str::to_owned));
    text(all, "server.address", head.host().map(lossy));
    text(all, "user_agent.original", head.user_agent().map(lossy));
}

fn decision(record: &Record, all: &mut Vec<Value>) {
    let Some(finding) = record.finding() else { return };
    text(all, "tidegate.decision", Some(finding.ruling.word().to_owned()));
    text(all, "tidegate.cause", finding.cause.map(str::to_owned));
    text(all, "tidegate.source", finding.source.map(str::to_owned));
    let Some(binding) = &finding.binding else { return };
    text(all, "tidegate.policy", Some(binding.policy.to_string()));
    text(all, "tidegate.limit", Some(binding.limit.to_string()));
    text(all, "tidegate.key", Some(binding.key.to_string()));
    number(all, "tidegate.remaining", Some(binding.remaining));
}

fn method(head: &Head) -> Option<&'static str> {
    METHODS.into_iter().find(|known| known.as_bytes() == head.method())
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text(all: &mut Vec<Value>, key: &str, value: Option<String>) {
    all.extend(value.map(|value| json!({ "key": key, "value": { "stringValue": value } })));
}

fn number(all: &mut Vec<Value>, key: &str, value: Option<u64>) {
    all.extend(value.map(|value| json!({ "key": key, "value": { "intValue": value.to_string() } })));
}
