//! When a request came, read by hand.
//!
//! The shape of a stamp says what it is: `17/May/2015:10:05:03 +0000`, `2026-11-29T15:04:28.697Z`, or a number since
//! 1970 in seconds, or in ms, us or ns, which its length tells. Lines of one minute share all of a stamp but its
//! seconds, so the last minute is remembered.

use crate::log::calendar::{DAY_S, days};
use crate::log::{Fault, Place, Zone};

/// When a request came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Seconds since 1970, in UTC.
    pub unix_s: u64,
    /// Nanoseconds of that second.
    pub ns: u32,
    /// Does the log tell whole seconds only?
    pub is_whole: bool,
}

impl Stamp {
    /// The stamp `span_ns` earlier. A stamp in whole seconds stays one.
    pub(crate) fn earlier_by(self, span_ns: u64) -> Self {
        match self.is_whole {
            true => Self { unix_s: self.unix_s.saturating_sub(span_ns / NS), ..self },
            false => {
                let at = (self.unix_s * NS + u64::from(self.ns)).saturating_sub(span_ns);
                Self { unix_s: at / NS, ns: (at % NS) as u32, is_whole: false }
            }
        }
    }
}

const NS: u64 = 1_000_000_000;
/// The last second that a clock of 64 bits in nanoseconds shows, rounded down: the year 2554.
const UNIX_S_MAX: i64 = 18_446_744_000;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Reads stamps, and remembers the last minute.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Where stamps are from that name no zone; whether there were any, and what the last of them meant.
    place: Place,
    last_s: Option<i64>,
    /// `17/May/2015:10:05`, and the distance from UTC.
    minute: [u8; 17],
    offset: [u8; 6],
    minute_s: i64,
}

impl Clock {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, last_s: None, minute: [0; 17], offset: [0; 6], minute_s: 0 }
    }

    /// Reads a stamp that stands in one field.
    #[inline]
    pub(crate) fn read<'a>(&mut self, text: &'a [u8]) -> Result<Stamp, Fault<'a>> {
        // `17/May/2015:10:05:03 +0000` within the minute of the line before.
        if text.len() == 26
            && text[..17] == self.minute
            && text[20..] == self.offset
            && text[17] == b':'
            && let Some(second) = two(&text[18..])
        {
            return whole(self.minute_s + second, text);
        }
        self.read_anew(text)
    }

    /// Reads a day and a time of day that stand in fields of their own.
    pub(crate) fn read_apart<'a>(&mut self, date: &'a [u8], time: &'a [u8]) -> Result<Stamp, Fault<'a>> {
        if time.is_empty() {
            return self.read(date);
        }
        let day = day(date).ok_or(Fault::new("date", date))?;
        let of_day = of_day(time).ok_or(Fault::new("time", time))?;
        self.stamp(day, of_day, time)
    }

    fn read_anew<'a>(&mut self, text: &'a [u8]) -> Result<Stamp, Fault<'a>> {
        let fault = Fault::new("time", text);
        if text.get(2) == Some(&b'/') && text.len() >= 20 {
            let day = day(&text[..11]).ok_or(fault)?;
            let of_day = of_day(&text[12..]).ok_or(fault)?;
            let stamp = self.stamp(day, of_day, text)?;
            if text.len() == 26 && stamp.is_whole {
                self.minute.copy_from_slice(&text[..17]);
                self.offset.copy_from_slice(&text[20..]);
                self.minute_s = i64::try_from(stamp.unix_s).unwrap_or(0) - of_day.second;
            }
            return Ok(stamp);
        }
        if text.get(4) == Some(&b'-') && text.len() >= 19 && matches!(text[10], b'T' | b't' | b' ') {
            let day = day(&text[..10]).ok_or(fault)?;
            return self.stamp(day, of_day(&text[11..]).ok_or(fault)?, text);
        }
        since_1970(text).ok_or(fault)
    }

    /// The place that stamps were taken to be from, if any named no zone.
    pub(crate) fn assumed(&self) -> Option<&Place> {
        self.last_s.map(|_| &self.place)
    }

    fn stamp<'a>(&mut self, day: i64, of_day: OfDay, text: &'a [u8]) -> Result<Stamp, Fault<'a>> {
        let local_s = day * DAY_S + of_day.minute * 60 + of_day.second;
        let unix_s = match of_day.zone {
            Some(zone) => local_s - i64::from(zone.ahead_s()),
            None => *self.last_s.insert(self.place.unix_s(local_s, self.last_s)),
        };
        let stamp = whole(unix_s, text)?;
        Ok(match of_day.ns {
            Some(ns) => Stamp { ns, is_whole: false, ..stamp },
            None => stamp,
        })
    }
}

/// A moment as people write it: a date, or a date and a time, in any of the shapes of a stamp. Seconds since 1970;
/// `place` is where it is meant that names no zone.
///
/// # Errors
/// It is no moment.
pub fn moment(text: &str, place: &Place) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no moment; expected one such as 2026-11-29 or 2026-11-29T15:04:28Z");
    let bytes = text.as_bytes();
    let stamp = match (day(bytes), bytes.len()) {
        (Some(day), _) => whole(place.unix_s(day * DAY_S, None), bytes),
        (None, 16) => return moment(&format!("{text}:00"), place),
        (None, _) => Clock::new(place.clone()).read(bytes),
    };
    stamp.map(|stamp| stamp.unix_s).map_err(|_| wrong())
}

#[inline]
fn whole(unix_s: i64, text: &[u8]) -> Result<Stamp, Fault<'_>> {
    match (0..=UNIX_S_MAX).contains(&unix_s) {
        // It is not negative.
        true => Ok(Stamp { unix_s: unix_s as u64, ns: 0, is_whole: true }),
        false => Err(Fault::new("time from 1970 to 2554", text)),
    }
}

#[inline]
fn two(text: &[u8]) -> Option<i64> {
    let [a, b, ..] = text else { return None };
    let (a, b) = (a.wrapping_sub(b'0'), b.wrapping_sub(b'0'));
    (a < 10 && b < 10).then(|| i64::from(a * 10 + b))
}

/// A day of `17/May/2015` or `2015-05-17`, from 1970.
fn day(text: &[u8]) -> Option<i64> {
    let (year, month, of_month) = match text {
        [_, _, b'/', month @ .., b'/', _, _, _, _] if month.len() == 3 => {
            let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
            (two(&text[7..])? * 100 + two(&text[9..])?, i64::try_from(month).ok()? + 1, two(text)?)
        }
        [_, _, _, _, b'-' | b'/', _, _, b'-' | b'/', _, _] => {
            (two(text)? * 100 + two(&text[2..])?, two(&text[5..])?, two(&text[8..])?)
        }
        [_, _, b'/', _, _, b'/', _, _, _, _] => {
            (two(&text[6..])? * 100 + two(&text[8..])?, two(&text[3..])?, two(text)?)
        }
        _ => return None,
    };
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&of_month);
    is_day.then(|| days(year, month, of_month))
}

/// `10:05:03`, with a fraction and a zone or without.
#[derive(Clone, Copy)]
struct OfDay {
    /// Of the day.
    minute: i64,
    second: i64,
    ns: Option<u32>,
    zone: Option<Zone>,
}

fn of_day(text: &[u8]) -> Option<OfDay> {
    let [_, _, b':', _, _, b':', _, _, rest @ ..] = text else { return None };
    let (hour, minute, second) = (two(text)?, two(&text[3..])?, two(&text[6..])?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (ns, rest) = match rest {
        [b'.' | b',', digits @ ..] => {
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (Some(fraction(&digits[..count])?), &digits[count..])
        }
        _ => (None, rest),
    };
    let zone = match rest {
        [] => None,
        [b' ', zone @ ..] | zone => Some(std::str::from_utf8(zone).ok()?.parse().ok()?),
    };
    Some(OfDay { minute: hour * 60 + minute, second, ns, zone })
}

/// The digits behind the point, in nanoseconds; what is finer is cut off.
fn fraction(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    Some(places.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

fn since_1970(text: &[u8]) -> Option<Stamp> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (units, digits) = (&text[..point.unwrap_or(text.len())], point.map(|at| &text[at + 1..]));
    let number: u64 = std::str::from_utf8(units).ok().filter(|text| !text.starts_with('+'))?.parse().ok()?;
    let per_s = match units.len() {
        ..=11 => 1,
        12..=14 => 1_000,
        15..=17 => 1_000_000,
        _ => NS,
    };
    let mut stamp = whole(i64::try_from(number / per_s).ok()?, text).ok()?;
    if per_s > 1 {
        return Some(Stamp { ns: (number % per_s * (NS / per_s)) as u32, is_whole: false, ..stamp });
    }
    if let Some(digits) = digits {
        stamp = Stamp { ns: fraction(digits)?, is_whole: false, ..stamp };
    }
    Some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(u64, u32, bool)>) {
        let mut clock = Clock::new("+01:00".parse().unwrap());
        for _ in 0..2 {
            let got = clock.read(text.as_bytes()).ok().map(|stamp| (stamp.unix_s, stamp.ns, stamp.is_whole));
            assert_eq!(got, expect, "{text}");
        }
    }

    #[test]
    fn stamps_are_read_by_their_shape() {
        check("17/May/2015:10:05:03 +0000", Some((1_431_857_103, 0, true)));
        check("29/Nov/2026:15:04:28.687", Some((1_795_961_068, 687_000_000, false)));
        check("2026-11-29T15:04:28.697Z", Some((1_795_964_668, 697_000_000, false)));
        check("2026-11-29 15:04:28", Some((1_795_961_068, 0, true)));
        check("1795964668.6556628", Some((1_795_964_668, 655_662_800, false)));
        check("1795964668697", Some((1_795_964_668, 697_000_000, false)));
        check("1795964668", Some((1_795_964_668, 0, true)));
    }

    #[test]
    fn what_is_no_time_is_no_time() {
        for text in
            ["", "-", "17/May/2015", "32/May/2015:10:05:03 +0000", "17/Mai/2015:10:05:03 +0000", "1969-12-31T00:00:00Z"]
        {
            check(text, None);
        }
        for text in ["17/May/2015:24:05:03 +0000", "17/May/2015:10:05:03 +2500", "2015-05-17T10:05:03.", "+1795964668"]
        {
            check(text, None);
        }
    }

    #[test]
    fn br_185_offsets_are_part_of_the_time() {
        let mut clock = Clock::new(Zone::UTC.into());
        let mut at = |text: &'static str| clock.read(text.as_bytes()).unwrap().unix_s;
        assert_eq!(at("25/Oct/2026:02:00:00 +0100") - at("25/Oct/2026:02:59:59 +0200"), 1);
        assert_eq!(at("05/Apr/2026:02:00:00 +1000") - at("05/Apr/2026:02:59:59 +1100"), 1);
        assert_eq!(at("2018-12-04T17:28:07+02:00"), at("2018-12-04T15:28:07Z"));
        assert_eq!(at("2018-12-04T17:28:07+0530"), at("2018-12-04T11:58:07Z"));
        assert_eq!(at("2018-12-04T17:28:07-0330"), at("2018-12-04T20:58:07Z"));
        assert_eq!(at("2018-12-04T17:28:07+1245"), at("2018-12-04T04:43:07Z"));
        assert_eq!(at("2018-12-04T17:28:07-0000"), at("2018-12-04T17:28:07"));
        let mut there = Clock::new("+02:00".parse().unwrap());
        assert_eq!(there.read(b"2018-12-04T17:28:07").unwrap().unix_s, at("2018-12-04T15:28:07Z"));
    }
}
