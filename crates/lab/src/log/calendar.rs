//! Dates without a library: days since 1970, and back.
//!
//! The proleptic Gregorian calendar repeats after 400 years of 146,097 days. Counting a year from March puts the leap
//! day at its end, and then the days before a month follow from one formula (Howard Hinnant, "chrono-compatible
//! low-level date algorithms").

use std::fmt;
use std::str::FromStr;

/// Seconds of one day.
pub(crate) const DAY_S: i64 = 86_400;

/// Days from 1 January 1970 to this date. The month is from 1 to 12.
pub(crate) const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that is so many days from 1 January 1970: year, month from 1, day from 1.
pub(crate) const fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// An instant in words: `2015-05-17 10:05:03`, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc {
    /// Seconds since 1970.
    pub unix_s: i64,
}

impl Utc {
    /// The beginning of a day. The month is from 1 to 12.
    #[must_use]
    pub const fn midnight(year: i64, month: i64, day: i64) -> Self {
        Self { unix_s: days(year, month, day) * DAY_S }
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.unix_s.div_euclid(DAY_S));
        let of_day = self.unix_s.rem_euclid(DAY_S);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// How far a clock on the wall is ahead of UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    ahead_s: i32,
}

impl Zone {
    /// UTC itself.
    pub const UTC: Self = Self { ahead_s: 0 };

    /// So many seconds ahead of UTC.
    pub(crate) const fn ahead_by(ahead_s: i32) -> Self {
        Self { ahead_s }
    }

    /// Seconds ahead of UTC.
    #[must_use]
    pub const fn ahead_s(self) -> i32 {
        self.ahead_s
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    /// Reads `UTC`, `Z`, `+02:00`, `+0530`, `-03`.
    ///
    /// # Errors
    /// It is none of these.
    fn from_str(text: &str) -> Result<Self, ZoneError> {
        if ["utc", "z", "gmt"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
            return Ok(Self::UTC);
        }
        let (sign, digits) = match text.as_bytes() {
            [b'+', rest @ ..] => (1, rest),
            [b'-', rest @ ..] => (-1, rest),
            _ => return Err(ZoneError),
        };
        let digits: Vec<u8> = digits.iter().copied().filter(|byte| *byte != b':').collect();
        let number = |at: usize| match digits.get(at..at + 2) {
            Some([a @ b'0'..=b'9', b @ b'0'..=b'9']) => Ok(i32::from((a - b'0') * 10 + (b - b'0'))),
            _ => Err(ZoneError),
        };
        let (hours, minutes) = match digits.len() {
            2 => (number(0)?, 0),
            4 => (number(0)?, number(2)?),
            _ => return Err(ZoneError),
        };
        if hours > 23 || minutes > 59 { Err(ZoneError) } else { Ok(Self::ahead_by(sign * (hours * 60 + minutes) * 60)) }
    }
}

/// It is no distance from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneError;

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected UTC or a distance from it, such as +02:00")
    }
}

impl std::error::Error for ZoneError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(2015, 5, 17), 16_572);
        for day in -800_000..800_000 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
        assert_eq!(Utc { unix_s: 1_431_857_103 }.to_string(), "2015-05-17 10:05:03");
    }

    #[test]
    fn zones_are_read() {
        let ahead = |text: &str| text.parse::<Zone>().map(Zone::ahead_s);
        assert_eq!(ahead("UTC"), Ok(0));
        assert_eq!(ahead("+05:30"), Ok(19_800));
        assert_eq!(ahead("-0330"), Ok(-12_600));
        assert_eq!(ahead("+12:45"), Ok(45_900));
        assert_eq!(ahead("-00"), Ok(0));
        for wrong in ["", "CET", "+1", "+24:00", "02:00", "+02:60", "+x2:00"] {
            assert_eq!(ahead(wrong), Err(ZoneError), "{wrong}");
        }
    }
}
