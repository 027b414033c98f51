//! A line as one JSON object. Every field is there on every line; what is not known is null.

use std::fmt::Display;
use std::time::Duration;

use tidegate::CivilTime;
use tidegate_policy::Client;

use super::format::{Seconds, protocol, push};
use crate::telling::record::Record;

/// Adds the object about a request that took so long.
pub(super) fn write(line: &mut Vec<u8>, record: &Record, took: Duration) {
    let head = &record.head;
    push(line, format_args!("{{\"time\":\"{:.9}\"", CivilTime::of(record.started_at)));
    shown(line, "client", record.client);
    shown(line, "peer", record.peer.map(Client::from));
    text(line, "method", Some(head.method()));
    text(line, "target", Some(head.target()));
    text(line, "protocol", Some(protocol(record.version).as_bytes()));
    text(line, "host", head.host());
    number(line, "status", Some(record.status()));
    number(line, "bytes", Some(record.sent_bytes));
    number(line, "complete", Some(record.is_whole));
    text(line, "referer", head.referer());
    text(line, "user_agent", head.user_agent());
    number(line, "duration", Some(Seconds(took)));
    number(line, "upstream_time", record.upstream_time().map(Seconds));
    decision(line, record);
    shown(line, "trace_id", record.trace().map(|trace| format!("{trace:032x}")));
    line.push(b'}');
}

fn decision(line: &mut Vec<u8>, record: &Record) {
    let finding = record.finding();
    let binding = finding.and_then(|finding| finding.binding.as_ref());
    text(line, "decision", finding.map(|finding| finding.ruling.word().as_bytes()));
    text(line, "cause", finding.and_then(|finding| finding.cause).map(str::as_bytes));
    text(line, "source", finding.and_then(|finding| finding.source).map(str::as_bytes));
    text(line, "policy", binding.map(|binding| binding.policy.as_bytes()));
    text(line, "limit", binding.map(|binding| binding.limit.as_bytes()));
    shown(line, "key", binding.map(|binding| binding.key));
    number(line, "remaining", binding.map(|binding| binding.remaining));
    number(line, "wait", binding.and_then(|binding| binding.wait).map(Seconds));
}

/// A field whose text somebody chose. What is not UTF-8 in it is replaced.
fn text(line: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    push(line, format_args!(",\"{name}\":"));
    // Writing a text into memory does not fail.
    let _ = match value {
        Some(value) => serde_json::to_writer(line, &String::from_utf8_lossy(value)),
        None => serde_json::to_writer(line, &()),
    };
}

/// A field whose value shows itself without quotes or controls.
fn shown(line: &mut Vec<u8>, name: &str, value: Option<impl Display>) {
    match value {
        Some(value) => push(line, format_args!(",\"{name}\":\"{value}\"")),
        None => push(line, format_args!(",\"{name}\":null")),
    }
}

/// A field whose value shows itself as JSON does.
fn number(line: &mut Vec<u8>, name: &str, value: Option<impl Display>) {
    match value {
        Some(value) => push(line, format_args!(",\"{name}\":{value}")),
        None => push(line, format_args!(",\"{name}\":null")),
    }
}
