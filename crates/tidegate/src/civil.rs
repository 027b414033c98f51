//! Points in time as people and their tools write them: on the calendar, in UTC.

use std::fmt;

use tidegate_core::Time;

/// A point in time in UTC. Displayed as RFC 3339 wants it: `2026-11-29T23:01:00Z`, and with a precision, such as
/// `{:.3}`, with that many digits of the second's fraction, nine at most; what is left is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour, from 0.
    pub hour: u64,
    /// The minute, from 0.
    pub minute: u64,
    /// The second, from 0. Leap seconds are not counted.
    pub second: u64,
    /// The nanoseconds of the second.
    pub nanosecond: u64,
}

impl CivilTime {
    /// The time on a clock whose epoch is that of Unix, as that of [`SystemClock`](crate::SystemClock) is.
    #[must_use]
    pub fn of(time: Time) -> Self {
        let (epoch_s, nanosecond) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
        let (year, month, day) = date(epoch_s / 86_400);
        let (hour, minute, second) = (epoch_s / 3_600 % 24, epoch_s / 60 % 60, epoch_s % 60);
        Self { year, month, day, hour, minute, second, nanosecond }
    }
}

impl fmt::Display for CivilTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, nanosecond } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if let Some(digits @ 1..) = f.precision().map(|digits| digits.min(9)) {
            // Nine digits at most.
            write!(f, ".{:0digits$}", nanosecond / 10_u64.pow(9 - digits as u32))?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of the day that is `days` after 1970-01-01, in the Gregorian calendar.
///
/// Counted in years that begin in March, so that the leap day is the last one, and in eras of 400 years, which are all
/// alike (Hinnant, "chrono-compatible low-level date algorithms").
fn date(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    let since_march_0000 = days + 719_468;
    let (era, day_of_era) = (since_march_0000 / ERA_DAYS, since_march_0000 % ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (epoch_s, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (68_169_599, "1972-02-28T23:59:59Z"),
            (68_169_600, "1972-02-29T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_771_404_500, "2026-02-18T08:48:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (18_446_744_073, "2554-07-21T23:34:33Z"),
        ] {
            assert_eq!(CivilTime::of(Time::from_secs(epoch_s)).to_string(), date);
        }
    }

    #[test]
    fn as_much_of_the_fraction_is_shown_as_is_asked_for() {
        let time = CivilTime::of(Time::from_nanos(1_771_404_500_012_345_678));
        for (shown, expected) in [
            (format!("{time}"), "2026-02-18T08:48:20Z"),
            (format!("{time:.0}"), "2026-02-18T08:48:20Z"),
            (format!("{time:.3}"), "2026-02-18T08:48:20.012Z"),
            (format!("{time:.9}"), "2026-02-18T08:48:20.012345678Z"),
            (format!("{time:.20}"), "2026-02-18T08:48:20.012345678Z"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
