//! A point in time, as fields write it.

use std::time::Duration;

use http::HeaderValue;
use tidegate::{CivilTime, Time, whole_seconds_up};

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
    let date = CivilTime::of(Time::from_secs(epoch_s)).to_string();
    HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

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
