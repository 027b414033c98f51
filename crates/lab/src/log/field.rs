//! What a field of a line can be.

use crate::log::Fault;
use crate::log::line::Line;
use crate::log::near::near;
use crate::log::stamp::Clock;

/// What a field of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Time,
    /// A day; the time of day stands elsewhere.
    Date,
    TimeOfDay,
    Client,
    /// X-Forwarded-For, where the log has no other address: its last entry is the client.
    ForwardedClient,
    Forwarded,
    User,
    /// Method, target and protocol in one.
    Request,
    Method,
    Target,
    Query,
    Protocol,
    Status,
    Bytes,
    Referer,
    Agent,
    Host,
    /// How long it took, in this unit unless another one is written behind the number.
    Duration(Unit),
    /// HAProxy's five times in milliseconds, of which the last is the whole.
    Timers,
    /// Not looked at.
    Other,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    S,
    Ms,
    Us,
    Ns,
}

impl Unit {
    const fn ns(self) -> u64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }
}

/// A line while it is read.
#[derive(Debug)]
pub(crate) struct Values<'l, 'a> {
    line: &'l mut Line<'a>,
    date: &'a [u8],
    time_of_day: &'a [u8],
    has_time: bool,
}

impl<'l, 'a> Values<'l, 'a> {
    /// What is read is written into `line`, which is a blank one.
    #[inline]
    pub(crate) fn new(line: &'l mut Line<'a>) -> Self {
        Self { line, date: &[], time_of_day: &[], has_time: false }
    }

    /// Takes one field. `-` is nothing.
    #[inline]
    pub(crate) fn take(&mut self, field: Field, value: &'a [u8], clock: &mut Clock) -> Result<(), Fault<'a>> {
        let line = &mut *self.line;
        let told = if value == b"-" { &[] } else { value };
        match field {
            Field::Other => {}
            Field::Time if told.is_empty() => {}
            Field::Time => {
                line.time = clock.read(told)?;
                self.has_time = true;
            }
            Field::Date => self.date = told,
            Field::TimeOfDay => self.time_of_day = told,
            Field::Client => line.client = told,
            Field::ForwardedClient => {
                line.forwarded = told;
                let last = memchr::memrchr(b',', told).map_or(0, |comma| comma + 1);
                line.client = told[last..].trim_ascii();
            }
            Field::Forwarded => line.forwarded = told,
            Field::User => line.user = unquoted(told),
            Field::Request => (line.method, line.target, line.protocol) = request(told),
            Field::Method => line.method = told,
            Field::Target => line.target = told,
            Field::Query => line.query = told,
            Field::Protocol => line.protocol = told,
            Field::Status => line.status = status(value)?,
            Field::Bytes if told.is_empty() => {}
            Field::Bytes => line.bytes = Some(number(told).ok_or(Fault::new("size in bytes", value))?),
            Field::Referer => line.referer = told,
            Field::Agent => line.agent = told,
            Field::Host => line.host = told,
            Field::Duration(unit) => line.duration_ns = duration(told, unit),
            Field::Timers => {
                let last = memchr::memrchr(b'/', told).map_or(0, |slash| slash + 1);
                line.duration_ns = duration(told[last..].trim_ascii_start(), Unit::Ms);
            }
        }
        Ok(())
    }

    /// Does the line have what a request must have: a time and a client?
    #[inline]
    pub(crate) fn finish(self, clock: &mut Clock) -> Result<(), Fault<'a>> {
        if !self.has_time {
            if self.date.is_empty() {
                return Err(Fault::new("time", &[]));
            }
            self.line.time = clock.read_apart(self.date, self.time_of_day)?;
        }
        if self.line.client.is_empty() { Err(Fault::new("client address", b"-")) } else { Ok(()) }
    }
}

/// `GET /a b HTTP/1.1`: the method is the first word, the protocol the last if it is one, the target what is between.
/// Bytes that are no request line are the target, whole.
#[inline]
fn request(text: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let Some(first) = near(b' ', text) else { return (&[], text, &[]) };
    let (method, rest) = (&text[..first], &text[first + 1..]);
    if method.is_empty() || !method.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')) {
        return (&[], text, &[]);
    }
    // Nearly all end like this.
    if let Some((target, protocol)) = rest.split_at_checked(rest.len().wrapping_sub(9))
        && protocol.starts_with(b" HTTP/")
        && !protocol[1..].contains(&b' ')
    {
        return (method, target, &protocol[1..]);
    }
    match memchr::memrchr(b' ', rest) {
        Some(last) if rest[last + 1..].starts_with(b"HTTP/") => (method, &rest[..last], &rest[last + 1..]),
        _ => (method, rest, &[]),
    }
}

#[inline]
fn status(value: &[u8]) -> Result<u16, Fault<'_>> {
    match value {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        // There was none: the client went away, or the server did not answer.
        b"-" | b"-1" | b"0" => Ok(0),
        _ => Err(Fault::new("status", value)),
    }
}

#[inline]
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

/// A number with a point or without, and perhaps a unit behind it. What is no number is no duration.
fn duration(text: &[u8], unit: Unit) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let unit = match &text[digits..] {
        b"s" => Unit::S,
        b"ms" => Unit::Ms,
        b"us" => Unit::Us,
        b"ns" => Unit::Ns,
        b"" => unit,
        _ => return None,
    };
    let point = memchr::memchr(b'.', &text[..digits]).unwrap_or(digits);
    let whole = number(&text[..point])?.checked_mul(unit.ns())?;
    let places = text[..digits].get(point + 1..).unwrap_or_default();
    if places.contains(&b'.') {
        return None;
    }
    let places = places.iter().take(9);
    let (part, scale) = places.fold((0, 1), |(sum, scale), byte| (sum * 10 + u64::from(byte - b'0'), scale * 10));
    whole.checked_add(u64::try_from(u128::from(part) * u128::from(unit.ns()) / u128::from(scale as u64)).ok()?)
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration(b"4ms", Unit::S), Some(4_000_000));
        assert_eq!(duration(b"0.003", Unit::S), Some(3_000_000));
        assert_eq!(duration(b"2", Unit::Us), Some(2_000));
        assert_eq!(duration(b"1.5", Unit::Ms), Some(1_500_000));
        assert_eq!(duration(b"", Unit::Ms), None);
        assert_eq!(duration(b"1.2.3", Unit::Ms), None);
        assert_eq!(duration(b"4min", Unit::Ms), None);
    }
}
