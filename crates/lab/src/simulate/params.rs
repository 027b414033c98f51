//! A pattern as it is written, `name:param=value,...`, and the values that it is built from.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tidegate_core::{Cost, Limit};

use super::{CLIENTS_MAX, Pace, Pattern, Random, Traffic, patterns};

/// What all patterns know.
const COMMON: [(&str, &str); 2] =
    [("clients", "how many clients, unless --clients says it"), ("cost", "tokens that each request takes (1)")];
/// The largest number that a parameter takes.
const NUMBER_MAX: u64 = 1_000_000_000;

/// A pattern that was chosen, with the parameters that were given.
#[derive(Clone, Debug)]
pub struct Chosen {
    pattern: &'static Pattern,
    given: Vec<(String, String)>,
}

/// What a pattern is built on, where its parameters say nothing else.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The pace of the limit.
    pub limit: Pace,
    /// How long the run lasts, in nanoseconds.
    pub length_ns: u64,
    /// How many clients, if that was said.
    pub clients: Option<u32>,
}

/// A pattern that cannot be built. Its `Display` says why, and what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl Chosen {
    /// A pattern as it is by default.
    #[must_use]
    pub const fn plain(pattern: &'static Pattern) -> Self {
        Self { pattern, given: Vec::new() }
    }

    /// The pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The traffic, with chance of its own.
    ///
    /// # Errors
    /// A value is not what its parameter takes.
    pub fn build(&self, ground: &Ground, random: Random) -> Result<Box<dyn Traffic>, PatternError> {
        (self.pattern.build)(&mut Params { chosen: self, ground, random })
    }
}

impl FromStr for Chosen {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let known = || patterns::ALL.iter().map(|pattern| pattern.name).collect::<Vec<_>>().join(", ");
        let pattern = patterns::ALL.into_iter().find(|pattern| pattern.name == name.trim());
        let pattern =
            pattern.ok_or_else(|| PatternError(format!("there is no pattern `{name}`; there are {}", known())))?;
        let mut given: Vec<(String, String)> = Vec::new();
        for pair in rest.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (param, value) = pair.split_once('=').ok_or_else(|| {
                PatternError(format!("`{pair}` of pattern `{name}` says no value; write `{pair}=VALUE`"))
            })?;
            let (param, value) = (param.trim(), value.trim());
            if pattern.knows().all(|(known, _)| *known != param) {
                let known: Vec<_> = pattern.knows().map(|(known, _)| *known).collect();
                return Err(PatternError(format!("pattern `{name}` has no `{param}`; it takes {}", known.join(", "))));
            }
            if given.iter().any(|(earlier, _)| earlier == param) {
                return Err(PatternError(format!("pattern `{name}` is given `{param}` twice")));
            }
            given.push((param.to_owned(), value.to_owned()));
        }
        Ok(Self { pattern, given })
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pattern.name)?;
        for (i, (param, value)) in self.given.iter().enumerate() {
            write!(f, "{}{param}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl Pattern {
    /// All parameters that it takes, with what they mean.
    pub fn knows(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> + use<> {
        self.params.iter().chain(COMMON.iter())
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// The values of a pattern that is being built.
pub(super) struct Params<'a> {
    chosen: &'a Chosen,
    ground: &'a Ground,
    random: Random,
}

impl<'a> Params<'a> {
    pub(super) const fn ground(&self) -> &'a Ground {
        self.ground
    }

    pub(super) fn random(&mut self) -> Random {
        self.random.branch()
    }

    /// How often: `60/min`.
    pub(super) fn pace(&self, name: &str, default: Pace) -> Result<Pace, PatternError> {
        self.value(name, default, Pace::read, "a rate such as `60/min`")
    }

    /// How long, in nanoseconds: `90s`, `5min`, `0`.
    pub(super) fn span_ns(&self, name: &str, default_ns: u64) -> Result<u64, PatternError> {
        let read = |text: &str| if text == "0" { Some(0) } else { span(text).map(|span| span.as_nanos() as u64) };
        self.value(name, default_ns, read, "a span such as `90s` or `5min`, or 0")
    }

    /// How long, and not zero.
    pub(super) fn positive_span_ns(&self, name: &str, default_ns: u64) -> Result<u64, PatternError> {
        let read = |text: &str| span(text).map(|span| span.as_nanos() as u64);
        self.value(name, default_ns.max(1), read, "a span such as `90s` or `5min`")
    }

    /// How many, from 1.
    pub(super) fn count(&self, name: &str, default: u64) -> Result<u64, PatternError> {
        let read = |text: &str| text.parse().ok().filter(|count| (1..=NUMBER_MAX).contains(count));
        self.value(name, default.clamp(1, NUMBER_MAX), read, "a whole number from 1 to 1000000000")
    }

    /// `yes` or `no`.
    pub(super) fn is(&self, name: &str, default: bool) -> Result<bool, PatternError> {
        let read = |text: &str| match text {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        self.value(name, default, read, "yes or no")
    }

    /// How many clients: as this pattern is told, or all of them, or as it likes.
    pub(super) fn clients(&self, default: u32) -> Result<u32, PatternError> {
        let read = |text: &str| text.parse().ok().filter(|clients| (1..=CLIENTS_MAX).contains(clients));
        self.value("clients", self.ground.clients.unwrap_or(default), read, "a whole number from 1 to 1000000")
    }

    /// What each request takes.
    pub(super) fn cost(&self) -> Result<Cost, PatternError> {
        self.count("cost", 1).map(Cost::new)
    }

    fn value<T>(
        &self,
        name: &str,
        default: T,
        read: impl Fn(&str) -> Option<T>,
        wanted: &str,
    ) -> Result<T, PatternError> {
        let Some((_, text)) = self.chosen.given.iter().find(|(given, _)| given == name) else { return Ok(default) };
        read(text).ok_or_else(|| {
            PatternError(format!("`{name}={text}` of pattern `{}` is not {wanted}", self.chosen.pattern.name))
        })
    }
}

/// Reads a span in the units of limits: `90s`, `5min`, at most a year.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    // What may stand behind the slash of a limit, with a number in front and nothing behind.
    if !text.starts_with(|c: char| c.is_ascii_digit()) || text.contains(char::is_whitespace) {
        return None;
    }
    match format!("1/{text}").parse().ok()? {
        Limit::Quota(quota) => Some(quota.rate().period()),
        Limit::Block { .. } | Limit::Unlimited => None,
    }
}
