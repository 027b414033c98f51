//! A pattern as it is written: `name:param=value,...`. A mistake points at its column.

use std::fmt;
use std::str::FromStr;

use super::params::Params;
use super::{Ground, Pattern, Random, Traffic, patterns};
use crate::words::near;

/// What all patterns know.
const COMMON: [(&str, &str); 2] =
    [("clients", "how many clients, unless --clients says it"), ("cost", "tokens that each request takes (1)")];

/// A pattern that was chosen, with the parameters that were given.
#[derive(Clone, Debug)]
pub struct Chosen {
    pattern: &'static Pattern,
    text: String,
    given: Vec<Given>,
}

/// A parameter that was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    param: String,
    value: String,
    /// Where the value begins in the text, in bytes.
    at: usize,
}

/// A pattern that cannot be built. Its `Display` says why, and what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    message: String,
    /// The text, and the column of the mistake in characters, from 1; `None` of what was not written but is so by
    /// default.
    place: Option<(String, usize)>,
}

impl Chosen {
    /// The pattern.
    #[must_use]
    pub const fn pattern(&self) -> &'static Pattern {
        self.pattern
    }

    /// The traffic, with chance of its own.
    ///
    /// # Errors
    /// A value is not what its parameter takes, or the traffic would take more memory than is given to it.
    pub fn build(&self, ground: &Ground, random: Random) -> Result<Box<dyn Traffic>, PatternError> {
        (self.pattern.build)(&mut Params::new(self, ground, random))
    }

    pub(super) fn given(&self, param: &str) -> Option<&str> {
        self.given.iter().find(|given| given.param == param).map(|given| given.value.as_str())
    }

    /// What is wrong with the value of a parameter, so many bytes behind its beginning.
    pub(super) fn wrong(&self, param: &str, offset: usize, message: String) -> PatternError {
        let given = self.given.iter().find(|given| given.param == param);
        match given {
            Some(given) => PatternError::at(&self.text, given.at + offset, message),
            None => PatternError { message: format!("pattern `{}`: {message}", self.pattern.name), place: None },
        }
    }
}

impl FromStr for Chosen {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let pattern = patterns::ALL.into_iter().find(|pattern| pattern.name == name.trim());
        let names = || patterns::ALL.into_iter().map(|pattern| pattern.name);
        let pattern = pattern.ok_or_else(|| {
            PatternError::at(text, 0, unknown(&format!("there is no pattern `{}`", name.trim()), name.trim(), names()))
        })?;
        let mut chosen = Self { pattern, text: text.to_owned(), given: Vec::new() };
        let mut at = text.len() - rest.len();
        for pair in rest.split(',') {
            if !pair.trim().is_empty() {
                chosen.take(pair, at)?;
            }
            at += pair.len() + 1;
        }
        Ok(chosen)
    }
}

impl Chosen {
    /// Takes `param=value`, which begins at this byte of the text.
    fn take(&mut self, pair: &str, at: usize) -> Result<(), PatternError> {
        let at = at + (pair.len() - pair.trim_start().len());
        let pair = pair.trim();
        let name = self.pattern.name;
        let wrong = |message| Err(PatternError::at(&self.text, at, message));
        let (param, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (value_at, param) = (at + pair.len() - value.trim_start().len(), param.trim());
        let known = || self.pattern.knows().map(|(known, _)| *known);
        if known().all(|known| known != param) {
            return wrong(unknown(&format!("pattern `{name}` has no `{param}`"), param, known()));
        }
        if value.trim().is_empty() {
            return wrong(format!("`{param}` of pattern `{name}` says no value; write `{param}=VALUE`"));
        }
        if self.given(param).is_some() {
            return wrong(format!("pattern `{name}` is given `{param}` twice"));
        }
        self.given.push(Given { param: param.to_owned(), value: value.trim().to_owned(), at: value_at });
        Ok(())
    }
}

/// What is not known, what was likely meant, and what there is.
fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let meant = near(word, known.clone()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let known: Vec<_> = known.collect();
    match meant.is_empty() {
        true => format!("{what}; there are {}", known.join(", ")),
        false => format!("{what}{meant} There are {}", known.join(", ")),
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pattern.name)?;
        for (i, Given { param, value, .. }) in self.given.iter().enumerate() {
            write!(f, "{}{param}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl Pattern {
    /// All parameters that it takes, with what they mean.
    pub fn knows(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> + Clone + use<> {
        self.params.iter().chain(COMMON.iter())
    }
}

impl PatternError {
    /// At this byte of a text.
    fn at(text: &str, at: usize, message: String) -> Self {
        let column = text[..text.floor_char_boundary(at)].chars().count() + 1;
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        Self { message, place: Some((text.chars().map(clean).collect(), column)) }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((text, column)) => write!(f, "column {column}: {}\n  {text}\n  {:>column$}", self.message, "^"),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for PatternError {}
