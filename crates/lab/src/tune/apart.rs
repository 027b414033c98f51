//! Who is no ordinary caller: rules that anybody can read, and nothing learned.
//!
//! What is set apart does not count towards the share that stays untouched; what a limit would do to it is shown beside.

use std::fmt;
use std::str::FromStr;

use crate::log::Line;

/// What the user agent of a robot says of itself, in any case.
const ROBOT_WORDS: [&[u8]; 5] = [b"bot", b"crawl", b"spider", b"slurp", b"archiver"];
/// What robots alone ask for.
const ROBOT_PATH: &[u8] = b"/robots.txt";
/// A flood is so many requests of one key within so many seconds.
const FLOOD_REQUESTS: usize = 50;
const FLOOD_NS: u64 = 10_000_000_000;

/// A rule by which callers are set apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Robots, by what they say of themselves.
    Robots,
    /// Floods, by how much came at once.
    Floods,
}

impl Rule {
    /// All rules, in the order in which they are asked.
    pub const ALL: [Self; 2] = [Self::Robots, Self::Floods];

    /// The name by which it is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Robots => "robots",
            Self::Floods => "floods",
        }
    }

    /// Whom it sets apart, in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Robots => {
                "a request whose user agent has bot, crawl, spider, slurp or archiver in it, or one for /robots.txt"
            }
            Self::Floods => "50 requests or more within 10 seconds",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rule {
    type Err = &'static str;

    /// Reads a name.
    ///
    /// # Errors
    /// There is no such rule.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|rule| rule.name() == text.trim());
        found.ok_or("expected robots, floods, or both with a comma between them")
    }
}

/// Does this request come from a robot?
pub(crate) fn is_robot(line: &Line<'_>) -> bool {
    let has = |word: &[u8]| line.agent.windows(word.len()).any(|found| found.eq_ignore_ascii_case(word));
    line.path() == ROBOT_PATH || ROBOT_WORDS.into_iter().any(has)
}

/// Are these requests of one key, in the order of time, a flood?
pub(crate) fn is_flood(times_ns: &[u64]) -> bool {
    times_ns.windows(FLOOD_REQUESTS).any(|some| some[FLOOD_REQUESTS - 1] - some[0] < FLOOD_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_what_they_say() {
        let line = |agent: &'static [u8], target: &'static [u8]| Line { agent, target, ..Line::default() };
        assert!(is_robot(&line(b"Mozilla/5.0 (compatible; Googlebot/2.1)", b"/")));
        assert!(is_robot(&line(b"Yahoo! Slurp", b"/")) && is_robot(&line(b"-", b"/robots.txt?x")));
        assert!(!is_robot(&line(b"Mozilla/5.0 (X11; Linux)", b"/robots.txt.html")));
        let each = |gap_ms: u64| (0..50).map(|i| i * gap_ms * 1_000_000).collect::<Vec<u64>>();
        assert!(is_flood(&each(204)) && !is_flood(&each(205)) && !is_flood(&each(1)[1..]));
        assert_eq!("floods".parse(), Ok(Rule::Floods));
        assert!(Rule::Floods.meaning().contains(&format!("{FLOOD_REQUESTS} requests")));
        assert!(
            ROBOT_WORDS.into_iter().all(|word| Rule::Robots.meaning().contains(std::str::from_utf8(word).unwrap()))
        );
    }
}
