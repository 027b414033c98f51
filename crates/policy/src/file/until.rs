//! Instants as people write them: RFC 3339, with an offset.

/// The seconds of a day.
const DAY_S: i64 = 86_400;

/// Reads `2026-12-24T18:00:00+01:00` as seconds since the epoch of Unix. Parts of a second are dropped.
///
/// # Errors
/// It is no such instant; the error says what to write.
pub(crate) fn unix_s(text: &str) -> Result<u64, String> {
    let error = |what: &str| format!("`{}` {what}", crate::Printable(text.as_bytes()));
    let Some(day) = text.get(..10).and_then(day) else {
        return Err(error("is no time; write one such as `2026-12-24T18:00:00Z`"));
    };
    let rest = &text[10..];
    if rest.is_empty() {
        let whole = format!("is a day, and where it ends depends on the time zone; write `{text}T00:00:00Z`");
        return Err(error(&whole));
    }
    let clock = rest.strip_prefix(['T', 't', ' ']).and_then(clock);
    let Some((second, behind)) = clock else {
        return Err(error("has no time of day that can be read; write one such as `2026-12-24T18:00:00Z`"));
    };
    let fraction = behind.strip_prefix('.').map(|digits| digits.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = fraction.unwrap_or(behind);
    if zone.is_empty() {
        return Err(error(&format!("has no time zone; write `{text}Z` for UTC, or an offset such as `{text}+01:00`")));
    }
    let offset =
        offset_s(zone).ok_or_else(|| error("has no offset that can be read; write `Z`, or one such as `+01:00`"))?;
    u64::try_from(day * DAY_S + second - offset).map_err(|_| error("is before 1970"))
}

/// An instant, in seconds since the epoch of Unix, as people write it: `2026-12-24T18:00:00Z`.
#[must_use]
pub fn text(unix_s: u64) -> String {
    // 2^63 seconds are enough, and a file cannot say more.
    let unix_s = i64::try_from(unix_s).unwrap_or(i64::MAX);
    let (days, second) = (unix_s / DAY_S, unix_s % DAY_S);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Days since the epoch, of `YYYY-MM-DD`.
fn day(text: &str) -> Option<i64> {
    let [y, m, d] = text.split('-').collect::<Vec<_>>().try_into().ok()?;
    let (year, month, day) = (number(y)?, number(m)?, number(d)?);
    if y.len() != 4 || m.len() != 2 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // A day that the month does not have comes back as another.
    Some(days(year, month, day)).filter(|at| civil(*at) == (year, month, day))
}

/// Seconds of the day, of `HH:MM` or `HH:MM:SS`, and what follows.
fn clock(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(text.len());
    let parts: Vec<_> = text[..end].split(':').map(|part| number(part).filter(|_| part.len() == 2)).collect();
    let (hour, minute, second) = match parts[..] {
        [Some(hour), Some(minute)] => (hour, minute, 0),
        [Some(hour), Some(minute), Some(second)] => (hour, minute, second),
        _ => return None,
    };
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3_600 + minute * 60 + second, &text[end..]))
}

fn offset_s(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (second, rest) = clock(&zone[1..])?;
    (rest.is_empty() && zone.len() == 6).then_some(sign * second)
}

/// Days since the epoch of a date in the Gregorian calendar, counted in years that begin in March, so that a leap day
/// is the last of its year; 400 years have 146,097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + year * 365 + year / 4 - year / 100 + of_year - 719_468
}

/// The reverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read() {
        for (text, expect) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2026-12-24T18:00:00+01:00", 1_798_131_600),
            ("2026-12-24t17:00:00.999z", 1_798_131_600),
            ("2026-12-24 13:30-03:30", 1_798_131_600),
            ("1970-01-01T01:00:00+01:00", 0),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(unix_s(text), Ok(expect), "{text}");
        }
        for s in (0..4_000_000_000).step_by(86_399 * 7) {
            assert_eq!(unix_s(&super::text(s)), Ok(s));
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, expect) in [
            ("tomorrow", "`tomorrow` is no time; write one such as `2026-12-24T18:00:00Z`"),
            ("2026-02-29T00:00:00Z", "`2026-02-29T00:00:00Z` is no time; write one such as `2026-12-24T18:00:00Z`"),
            (
                "2026-12-24",
                "`2026-12-24` is a day, and where it ends depends on the time zone; write `2026-12-24T00:00:00Z`",
            ),
            (
                "2026-12-24T18:00:00",
                "`2026-12-24T18:00:00` has no time zone; write `2026-12-24T18:00:00Z` for UTC, or an offset such as \
                 `2026-12-24T18:00:00+01:00`",
            ),
            ("1969-12-31T00:00:00Z", "`1969-12-31T00:00:00Z` is before 1970"),
        ] {
            assert_eq!(unix_s(text), Err(expect.to_owned()));
        }
        for text in
            ["2026-12-24T25:00:00Z", "2026-12-24T18:00:00+1:00", "2026-12-24T18:00:00X", "2026-12-24Tx", "é026-12-24"]
        {
            assert!(unix_s(text).is_err(), "{text}");
        }
    }
}
