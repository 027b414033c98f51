//! A point in time, as fields write it.

use std::time::Duration;

use http::HeaderValue;
use tidegate::{Time, whole_seconds_up};

use super::Reset;
use crate::text;

/// The instant `after` from `now`, rounded up, so that it is never early. Dates need a clock whose epoch is 1970, as
/// that of [`tidegate::SystemClock`] is.
pub(super) fn value(style: Reset, now: Time, after: Duration) -> HeaderValue {
    let then_ns = now.saturating_add(after).as_nanos();
    match style {
        Reset::Delta => text::number(whole_seconds_up(after)),
        Reset::Epoch => text::number(then_ns.div_ceil(1_000_000_000)),
        Reset::EpochMillis => text::number(then_ns.div_ceil(1_000_000)),
        Reset::Rfc3339 => rfc3339(then_ns.div_ceil(1_000_000_000)),
    }
}

fn rfc3339(epoch_s: u64) -> HeaderValue {
    let (year, month, day) = civil(epoch_s / 86_400);
    let (hour, minute, second) = (epoch_s / 3_600 % 24, epoch_s / 60 % 60, epoch_s % 60);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static(""))
}

/// Year, month and day of the day that is `days` after 1970-01-01, in the Gregorian calendar.
///
/// Counted in years that begin in March, so that the leap day is the last one, and in eras of 400 years, which are all
/// alike (Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
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
            assert_eq!(rfc3339(epoch_s), date);
        }
    }

    #[test]
    fn points_in_time_are_rounded_up() {
        let (now, after) = (Time::from_millis(1_771_404_500_001), Duration::from_millis(2_000));
        assert_eq!(value(Reset::Delta, now, after), "2");
        assert_eq!(value(Reset::Epoch, now, after), "1771404503");
        assert_eq!(value(Reset::EpochMillis, now, after), "1771404502001");
        assert_eq!(value(Reset::Rfc3339, now, after), "2026-02-18T08:48:23Z");
        assert_eq!(value(Reset::EpochMillis, now, Duration::from_nanos(1)), "1771404500002");
    }
}
