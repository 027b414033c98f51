//! Numbers and spans as they stand in reports.

use std::fmt;
use std::time::Duration;

use tidegate_core::{PeriodText, Time};

/// A number with a comma between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span in one unit, with as many digits as one reads: `59 s`, `1.02 s`, `2 min`, `90 min`.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The units, and from how many of them on each is used: 2 min is nicer than 120 s, and 90 s than 1.5 min.
        const UNITS: [(u64, u64, &str); 6] = [
            (86_400_000_000_000, 2, "d"),
            (3_600_000_000_000, 2, "h"),
            (60_000_000_000, 2, "min"),
            (1_000_000_000, 1, "s"),
            (1_000_000, 1, "ms"),
            (1_000, 1, "us"),
        ];
        let ns = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let unit = UNITS.iter().find(|(unit_ns, from, _)| ns / unit_ns >= *from);
        let Some((unit_ns, _, name)) = unit else { return write!(f, "{ns} ns") };
        let (whole, hundredths) = (ns / unit_ns, ns % unit_ns / (unit_ns / 100));
        match hundredths {
            0 => write!(f, "{} {name}", grouped(whole)),
            _ if whole >= 100 => write!(f, "{} {name}", grouped(whole)),
            tenths if tenths % 10 == 0 => write!(f, "{whole}.{} {name}", tenths / 10),
            hundredths => write!(f, "{whole}.{hundredths:02} {name}"),
        }
    }
}

/// An instant of a run as a clock shows it: `0:59`, `1:00:01`, `0:00.25`, `100 d 0:00:00`.
pub(crate) struct Clock(pub(crate) Time);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_nanos() / 1_000_000;
        /// From so many hours on days are named.
        const HOURS: u64 = 48;
        let (h, min, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        match h {
            0 => write!(f, "{min}:{s:02}")?,
            1..HOURS => write!(f, "{h}:{min:02}:{s:02}")?,
            _ => write!(f, "{} d {}:{min:02}:{s:02}", h / 24, h % 24)?,
        }
        match ms {
            0 => Ok(()),
            _ => f.write_str(format!(".{ms:03}").trim_end_matches('0')),
        }
    }
}

/// The period of a rate as it stands behind the slash: `min`, `15min`.
pub(crate) fn period(period: Duration) -> String {
    PeriodText(period).to_string()
}

/// The same in a sentence: `minute`, `15 min`.
pub(crate) fn period_in_words(span: Duration) -> String {
    let text = period(span);
    match text.as_str() {
        "s" => "second".to_owned(),
        "min" => "minute".to_owned(),
        "h" => "hour".to_owned(),
        _ => match text.find(|c: char| !c.is_ascii_digit()) {
            None | Some(0) => text,
            Some(unit) => format!("{} {}", &text[..unit], &text[unit..]),
        },
    }
}

/// `1 client`, `2 clients`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// The word that was likely meant: one that begins like this one, or is spelled most like it.
pub(crate) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    /// The longest word that is compared, in bytes, and the shortest beginning.
    const BYTES: std::ops::RangeInclusive<usize> = 3..=64;
    /// So many letters can be wrong, if that is not half of the word.
    const LETTERS_MAX: usize = 2;
    if !BYTES.contains(&word.len()) {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let begins = known.clone().find(|known| known.starts_with(&word));
    let spelled = || {
        let all = known.map(|known| (letters_between(word.as_bytes(), known.as_bytes()), known));
        let near = all.min_by_key(|(letters, _)| *letters);
        near.filter(|(letters, known)| *letters <= LETTERS_MAX && letters * 2 < known.len()).map(|(_, near)| near)
    };
    begins.or_else(spelled)
}

/// How many letters have to be put in, left out or replaced (Levenshtein).
fn letters_between(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut above_left = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (above_left + usize::from(a != b)).min(above + 1).min(row[j] + 1);
            above_left = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let words = ["edge-burst", "steady", "burst", "on-off", "mix"];
        let meant =
            ["edge", "steddy", "burts", "onoff", "BURST", "xyz", "m", ""].map(|word| near(word, words.into_iter()));
        let wanted =
            [Some("edge-burst"), Some("steady"), Some("burst"), Some("on-off"), Some("burst"), None, None, None];
        assert_eq!(meant, wanted);
    }

    #[test]
    fn numbers_spans_and_instants_read_well() {
        let numbers = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        let spans = [59_000, 1_017, 120_000, 90_000, 7_200_000, 250, 151_300]
            .map(|ms| Span(Duration::from_millis(ms)).to_string());
        assert_eq!(spans, ["59 s", "1.01 s", "2 min", "90 s", "2 h", "250 ms", "2.52 min"]);
        let periods = [1, 60, 900, 3_600, 86_400].map(|s| period_in_words(Duration::from_secs(s)));
        assert_eq!(periods, ["second", "minute", "15 min", "hour", "day"]);
        let clock = [59_000, 61_000, 3_601_000, 250, 8_640_000_000].map(|ms| Clock(Time::from_millis(ms)).to_string());
        assert_eq!(clock, ["0:59", "1:01", "1:00:01", "0:00.25", "100 d 0:00:00"]);
    }
}
