//! The formats of a line.
//!
//! `common` and `combined` are the lines that every reader of access logs knows. `combined` says behind them, in quotes,
//! what was decided: readers stop at the user agent, as goaccess and AWStats do.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;
use std::time::Duration;

use http::Version;
use tidegate::CivilTime;

use super::escape::push_escaped;
use super::json;
use crate::telling::record::Record;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Client, time, request, status and bytes.
    Common,
    /// The same with referer and user agent, and behind them what was decided.
    #[default]
    Combined,
    /// One JSON object.
    Json,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Combined, Self::Common, Self::Json];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::Json => "json",
        }
    }

    /// Adds a line about a request that took so long.
    pub(crate) fn write(self, line: &mut Vec<u8>, record: &Record, took: Duration) {
        match self {
            Self::Common => common(line, record),
            Self::Combined => combined(line, record, took),
            Self::Json => json::write(line, record, took),
        }
        line.push(b'\n');
    }
}

impl FromStr for LogFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(UnknownFormat)
    }
}

/// The text names no format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected combined, common or json")
    }
}

impl std::error::Error for UnknownFormat {}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `client - - [time] "request" status bytes`.
fn common(line: &mut Vec<u8>, record: &Record) {
    match record.client {
        Some(client) => push(line, format_args!("{client}")),
        None => line.push(b'-'),
    }
    let CivilTime { year, month, day, hour, minute, second, .. } = CivilTime::of(record.started_at);
    // A month is 1 to 12.
    let month = MONTHS[(month.max(1) - 1) as usize % MONTHS.len()];
    push(line, format_args!(" - - [{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000] \""));
    push_escaped(line, record.head.method());
    line.push(b' ');
    push_escaped(line, record.head.target());
    push(line, format_args!(" {}\" {} {}", protocol(record.version), record.status(), record.sent_bytes));
}

/// The same, and `"referer" "user agent" "decision" "source" "policy" "limit" "key" "remaining" "wait" "duration"
/// "upstream time"`.
fn combined(line: &mut Vec<u8>, record: &Record, took: Duration) {
    common(line, record);
    quoted(line, record.head.referer());
    quoted(line, record.head.user_agent());
    let finding = record.finding();
    let binding = finding.and_then(|finding| finding.binding.as_ref());
    quoted(line, finding.map(|finding| finding.ruling.word().as_bytes()));
    quoted(line, finding.and_then(|finding| finding.source).map(str::as_bytes));
    quoted(line, binding.map(|binding| binding.policy.as_bytes()));
    quoted(line, binding.map(|binding| binding.limit.as_bytes()));
    shown(line, binding.map(|binding| binding.key));
    shown(line, binding.map(|binding| binding.remaining));
    shown(line, binding.and_then(|binding| binding.wait).map(Seconds));
    shown(line, Some(Seconds(took)));
    shown(line, record.upstream_time().map(Seconds));
}

/// What somebody chose, in quotes; a dash if it is missing.
fn quoted(line: &mut Vec<u8>, text: Option<&[u8]>) {
    line.extend_from_slice(b" \"");
    push_escaped(line, text.unwrap_or(b"-"));
    line.push(b'"');
}

/// A number or the like, in quotes; a dash if it is missing.
fn shown<T: fmt::Display>(line: &mut Vec<u8>, value: Option<T>) {
    match value {
        Some(value) => push(line, format_args!(" \"{value}\"")),
        None => line.extend_from_slice(b" \"-\""),
    }
}

pub(super) fn push(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing into memory does not fail.
    let _ = line.write_fmt(text);
}

/// A span in seconds, to the nanosecond.
pub(super) struct Seconds(pub(super) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0.as_secs(), self.0.subsec_nanos())
    }
}

/// The protocol as a request line names it.
pub(super) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}
