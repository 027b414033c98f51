//! Periods in words: the units, and how a period is written behind the slash of a limit.

use core::fmt;
use core::time::Duration;

const NS_PER_S: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * NS_PER_S;

/// The units: nanoseconds, the name that we write, and all names that we read.
pub(crate) const UNITS: [(u64, &str, &[&str]); 9] = [
    (365 * DAY_NS, "year", &["y", "yr", "year", "years"]),
    (30 * DAY_NS, "month", &["mo", "month", "months"]),
    (7 * DAY_NS, "week", &["w", "week", "weeks"]),
    (DAY_NS, "day", &["d", "day", "days"]),
    (3_600 * NS_PER_S, "h", &["h", "hr", "hour", "hours"]),
    (60 * NS_PER_S, "min", &["min", "mins", "minute", "minutes"]),
    (NS_PER_S, "s", &["s", "sec", "secs", "second", "seconds"]),
    (1_000_000, "ms", &["ms", "msec", "millisecond", "milliseconds"]),
    (1_000, "us", &["us", "usec", "microsecond", "microseconds"]),
];

/// A period as it stands behind the slash: `min`, `15min`, `2week`.
#[derive(Clone, Copy, Debug)]
pub struct PeriodText(pub Duration);

impl fmt::Display for PeriodText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No limit has a period above a year.
        let Ok(ns) = u64::try_from(self.0.as_nanos()) else { return write!(f, "{}ns", self.0.as_nanos()) };
        match UNITS.iter().find(|(unit_ns, ..)| ns > 0 && ns.is_multiple_of(*unit_ns)) {
            Some((unit_ns, name, _)) if ns == *unit_ns => f.write_str(name),
            Some((unit_ns, name, _)) => write!(f, "{}{name}", ns / unit_ns),
            None => write!(f, "{ns}ns"),
        }
    }
}

/// The unit of this name: its nanoseconds, and the name that we write.
pub(crate) fn unit(word: &str) -> Option<(u64, &'static str)> {
    let named = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    UNITS.iter().find(|(_, _, names)| named(names)).map(|(ns, name, _)| (*ns, *name))
}
