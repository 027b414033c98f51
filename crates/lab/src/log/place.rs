//! The clock on the wall of a place, for logs whose times name no zone.
//!
//! A place is a distance from UTC, or a name such as `Europe/Berlin`, whose changes are read from the system's files
//! (TZif, RFC 8536). Where a clock is put back an hour comes twice; which one a line means is told by the line before it:
//! the earlier one, unless that would be a large step back.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::Arc;

use crate::log::{Zone, ZoneError};

/// Where the system keeps zones.
const FOLDER: &str = "/usr/share/zoneinfo";
/// The most changes of one zone that are read.
const CHANGES_MAX: usize = 4_096;
/// No change is further than this from a local time that it makes ambiguous.
const NEAR_S: i64 = 2 * 86_400;
/// Lines are out of order by less than this.
const STEP_BACK_S: i64 = 15 * 60;
/// Files whose changes end before 2037 go on by a rule, which is not read here.
const UNIX_S_2037: i64 = 2_114_380_800;

/// The clock on the wall of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    name: Arc<str>,
    /// Before the first change.
    first: Zone,
    /// From each of these seconds on, another distance from UTC.
    changes: Arc<[(i64, Zone)]>,
}

impl Place {
    /// The moment that a local time means, if the last moment was `last_s`: both count seconds since 1970.
    pub(crate) fn unix_s(&self, local_s: i64, last_s: Option<i64>) -> i64 {
        if self.changes.is_empty() {
            return local_s - i64::from(self.first.ahead_s());
        }
        let before = self.at(local_s - NEAR_S);
        let near = self.changes.iter().filter(|(from_s, _)| (from_s - local_s).abs() < NEAR_S);
        let zones = std::iter::once(before).chain(near.map(|(_, zone)| *zone));
        let moments = zones.map(|zone| (local_s - i64::from(zone.ahead_s()), zone));
        let is_shown = |moment: &(i64, Zone)| self.at(moment.0) == moment.1;
        let is_step_back = |moment: i64| last_s.is_some_and(|last| moment < last - STEP_BACK_S);
        let found = moments.filter(is_shown).min_by_key(|(moment, _)| (is_step_back(*moment), *moment));
        // An hour that is left out when the clock is put forward: as if it had not been put yet.
        found.map_or(local_s - i64::from(before.ahead_s()), |(moment, _)| moment)
    }

    fn at(&self, unix_s: i64) -> Zone {
        let passed = self.changes.partition_point(|(from_s, _)| *from_s <= unix_s);
        passed.checked_sub(1).map_or(self.first, |last| self.changes[last].1)
    }
}

impl From<Zone> for Place {
    fn from(zone: Zone) -> Self {
        let hours = format!("{:+03}:{:02}", zone.ahead_s() / 3600, zone.ahead_s().abs() / 60 % 60);
        let name = if zone == Zone::UTC { "UTC".into() } else { hours.into() };
        Self { name, first: zone, changes: Arc::new([]) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    /// Reads a distance from UTC, or the name of a zone that the system knows.
    ///
    /// # Errors
    /// It is neither.
    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let fixed = match text.parse::<Zone>() {
            Ok(zone) => return Ok(zone.into()),
            Err(error) => error,
        };
        let is_name = text.split('/').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
        });
        let file = if is_name { fs::read(format!("{FOLDER}/{text}")).ok() } else { None };
        let (first, changes) = read(&file.ok_or(PlaceError::Unknown(fixed))?).ok_or(PlaceError::Unreadable)?;
        Ok(Self { name: text.into(), first, changes: changes.into() })
    }
}

/// It is no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// It is no distance from UTC, and the system knows no zone of this name.
    Unknown(ZoneError),
    /// The system's file of this zone is of a kind that is not understood.
    Unreadable,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) => write!(f, "{error}, or the name of a zone such as Europe/Berlin"),
            Self::Unreadable => {
                f.write_str("the system's file of this zone is not understood; write a distance from UTC")
            }
        }
    }
}

impl std::error::Error for PlaceError {}

/// The first distance from UTC, and the changes, of a file of version 2 or later.
fn read(file: &[u8]) -> Option<(Zone, Vec<(i64, Zone)>)> {
    let counts = |head: &[u8]| -> Option<[usize; 6]> {
        let numbers = head.strip_prefix(b"TZif")?.get(16..40)?.as_chunks::<4>().0;
        let number = |at: usize| usize::try_from(u32::from_be_bytes(numbers[at])).unwrap_or(usize::MAX);
        Some([number(0), number(1), number(2), number(3), number(4), number(5)])
    };
    // The block of version 1, with times of four bytes, is passed over.
    let [is_ut, is_std, leaps, times, types, letters] = counts(file)?;
    let first_block = times.checked_mul(5)? + types * 6 + letters + leaps * 8 + is_std + is_ut;
    let file = file.get(44 + first_block..)?;
    let [.., times, types, _] = counts(file)?;
    if times > CHANGES_MAX || types == 0 {
        return None;
    }
    let (moments, rest) = file.get(44..)?.split_at_checked(times * 8)?;
    let (places, rest) = rest.split_at_checked(times)?;
    let kinds = rest.get(..types * 6)?.as_chunks::<6>().0;
    let zone = |at: usize| kinds.get(at).map(|[a, b, c, d, ..]| Zone::ahead_by(i32::from_be_bytes([*a, *b, *c, *d])));
    let changes = moments.as_chunks::<8>().0.iter().zip(places);
    let changes: Vec<_> = changes
        .map(|(moment, place)| Some((i64::from_be_bytes(*moment), zone(usize::from(*place))?)))
        .collect::<Option<_>>()?;
    let goes_on_by_rule = file.get(44..)?.rsplit(|byte| *byte == b'\n').nth(1).is_some_and(|rule| rule.contains(&b','));
    let is_whole = !goes_on_by_rule || changes.last().is_some_and(|(last, _)| *last >= UNIX_S_2037 - 366 * 86_400);
    is_whole.then_some((zone(0)?, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br_185_a_repeated_hour_is_resolved_by_the_order_of_the_lines() {
        let berlin: Place = "Europe/Berlin".parse().unwrap();
        // Midnight of 25 October 2026 as a clock in UTC shows it; there it is put back at 3:00.
        let midnight = 1_792_886_400;
        let local = |h: i64, min: i64, s: i64| midnight + h * 3600 + min * 60 + s;
        let mut last = None;
        let mut moments = Vec::new();
        for (h, min, s) in [(1, 59, 59), (2, 0, 0), (2, 59, 59), (2, 0, 0), (2, 30, 0), (2, 59, 59), (3, 0, 0)] {
            last = Some(berlin.unix_s(local(h, min, s), last));
            moments.extend(last);
        }
        let first = midnight - 1;
        assert_eq!(
            moments.iter().map(|moment| moment - first).collect::<Vec<_>>(),
            [0, 1, 3600, 3601, 5401, 7200, 7201]
        );
        // With nothing before it, the first of the two; and an hour that there is not.
        assert_eq!(berlin.unix_s(local(2, 30, 0), None), midnight + 1800);
        let spring = 1_774_742_400 + 2 * 3600 + 1800;
        assert_eq!(berlin.unix_s(spring, None), spring - 3600);
    }

    #[test]
    fn places_are_read() {
        let error = |text: &str| text.parse::<Place>().unwrap_err().to_string();
        assert_eq!("+02:00".parse::<Place>().unwrap().unix_s(7_200, None), 0);
        assert_eq!("-03:30".parse::<Place>().unwrap().to_string(), "-03:30");
        assert_eq!("Asia/Kolkata".parse::<Place>().unwrap().unix_s(1_795_964_668, None), 1_795_964_668 - 19_800);
        for wrong in ["Europe/Atlantis", "../etc/passwd", "/etc/passwd", "", "+25"] {
            assert!(error(wrong).ends_with("or the name of a zone such as Europe/Berlin"), "{wrong}");
        }
        assert_eq!(read(b"TZif2"), None);
    }
}
