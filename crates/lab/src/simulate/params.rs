//! The values that a pattern is built from: those that were given, and what they are by default.

use std::time::Duration;

use tidegate_core::{Cost, Limit};

use super::{CLIENTS_MAX, Chosen, Pace, PatternError, Random};

/// The largest number that a parameter takes.
const NUMBER_MAX: u64 = 1_000_000_000;

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

/// The values of a pattern that is being built.
pub(super) struct Params<'a> {
    chosen: &'a Chosen,
    ground: &'a Ground,
    random: Random,
}

/// What is wrong with a value, and so many bytes behind its beginning.
type Fault = (usize, String);

impl<'a> Params<'a> {
    pub(super) const fn new(chosen: &'a Chosen, ground: &'a Ground, random: Random) -> Self {
        Self { chosen, ground, random }
    }

    pub(super) const fn ground(&self) -> &'a Ground {
        self.ground
    }

    pub(super) fn random(&mut self) -> Random {
        self.random.branch()
    }

    /// How often: `60/min`.
    pub(super) fn pace(&self, name: &str, default: Pace) -> Result<Pace, PatternError> {
        self.value(name, default, pace)
    }

    /// How long, in nanoseconds: `90s`, `5min`, `0`.
    pub(super) fn span_ns(&self, name: &str, default_ns: u64) -> Result<u64, PatternError> {
        let wanted = "expected a span such as `90s` or `5min`, of at most a year, or 0";
        let read = |text: &str| if text == "0" { Some(0) } else { span(text).map(|span| span.as_nanos() as u64) };
        self.value(name, default_ns, |text| read(text).ok_or_else(|| (0, wanted.to_owned())))
    }

    /// How long, and not zero.
    pub(super) fn positive_span_ns(&self, name: &str, default_ns: u64) -> Result<u64, PatternError> {
        let wanted = "expected a span such as `90s` or `5min`, of at most a year";
        let read = |text: &str| span(text).map(|span| span.as_nanos() as u64);
        self.value(name, default_ns.max(1), |text| read(text).ok_or_else(|| (0, wanted.to_owned())))
    }

    /// How many, from 1.
    pub(super) fn count(&self, name: &str, default: u64) -> Result<u64, PatternError> {
        self.count_to(name, default, NUMBER_MAX)
    }

    /// How many, from 1 to this; by default no more than that either.
    pub(super) fn count_to(&self, name: &str, default: u64, most: u64) -> Result<u64, PatternError> {
        let read = |text: &str| text.parse().ok().filter(|count| (1..=most).contains(count));
        let wanted = format!("expected a whole number from 1 to {most}");
        self.value(name, default.clamp(1, most), |text| read(text).ok_or_else(|| (0, wanted.clone())))
    }

    /// `yes` or `no`.
    pub(super) fn is(&self, name: &str, default: bool) -> Result<bool, PatternError> {
        self.value(name, default, |text| match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err((0, "expected yes or no".to_owned())),
        })
    }

    /// How many clients: as this pattern is told, or all of them, or as it likes.
    pub(super) fn clients(&self, default: u32) -> Result<u32, PatternError> {
        let default = self.ground.clients.unwrap_or(default).clamp(1, CLIENTS_MAX);
        // It fits, since the largest does.
        Ok(self.count_to("clients", u64::from(default), u64::from(CLIENTS_MAX))? as u32)
    }

    /// What each request takes.
    pub(super) fn cost(&self) -> Result<Cost, PatternError> {
        self.count("cost", 1).map(Cost::new)
    }

    /// A value that is fine by itself, and too much with the others.
    pub(super) fn too_much(&self, name: &str, message: String) -> PatternError {
        self.chosen.wrong(name, 0, message)
    }

    fn value<T>(&self, name: &str, default: T, read: impl Fn(&str) -> Result<T, Fault>) -> Result<T, PatternError> {
        let Some(text) = self.chosen.given(name) else { return Ok(default) };
        read(text).map_err(|(offset, message)| self.chosen.wrong(name, offset, format!("`{name}={text}`: {message}")))
    }
}

/// Reads `60/min`, and says what is wrong with it as for a limit.
fn pace(text: &str) -> Result<Pace, Fault> {
    match text.parse::<Limit>() {
        Ok(Limit::Quota(quota)) if quota.burst() == quota.rate().count() => {
            Ok(Pace::new(quota.rate().count(), quota.rate().period()))
        }
        Ok(Limit::Quota(_)) => Err((0, "a rate of traffic has no burst; write such as `60/min`".to_owned())),
        Ok(Limit::Block { .. } | Limit::Unlimited) => {
            Err((0, "expected a rate above zero, such as `60/min`".to_owned()))
        }
        Err(error) if text.contains('/') => Err((error.at(), error.to_string())),
        Err(error) => Err((error.at(), "expected a rate such as `60/min`".to_owned())),
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
