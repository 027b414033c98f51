//! One setting: a value with the text that it was given as, or several.

use std::fmt::Display;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

/// A value, and the text that it was given as.
#[derive(Clone)]
pub(crate) struct Given<T> {
    value: T,
    text: String,
}

impl<T: FromStr> FromStr for Given<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { value: text.parse()?, text: text.to_owned() })
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A setting, whatever it is a setting of.
pub(super) trait Field {
    /// Reads a text of the file. A flag stands before it, but the text is still held to what is taken.
    fn fill(&mut self, text: &str) -> Result<(), String>;

    /// The text that says it; `None` if nothing does.
    fn text(&self) -> Option<String>;
}

fn read<T: FromStr<Err: Display>>(text: &str) -> Result<Given<T>, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

impl<T: FromStr<Err: Display>> Field for Option<Given<T>> {
    fn fill(&mut self, text: &str) -> Result<(), String> {
        let read = read(text)?;
        self.get_or_insert(read);
        Ok(())
    }

    fn text(&self) -> Option<String> {
        self.as_ref().map(|given| given.text.clone())
    }
}

/// A flag that can be repeated; in the file a list, whose texts come with commas between them.
impl<T: FromStr<Err: Display>> Field for Vec<Given<T>> {
    fn fill(&mut self, text: &str) -> Result<(), String> {
        let all = text.split(',').map(|text| read(text.trim())).collect::<Result<Self, _>>()?;
        if self.is_empty() {
            *self = all;
        }
        Ok(())
    }

    fn text(&self) -> Option<String> {
        let texts: Vec<_> = self.iter().map(|given| given.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join(","))
    }
}

/// A flag that is there or not; in the file `true` or `false`.
impl Field for bool {
    fn fill(&mut self, text: &str) -> Result<(), String> {
        *self |= text.parse::<Self>().map_err(|_| "expected true or false".to_owned())?;
        Ok(())
    }

    fn text(&self) -> Option<String> {
        self.then(|| self.to_string())
    }
}

/// Whole seconds within bounds.
#[derive(Clone, Copy)]
pub(super) struct Seconds<const FROM: u64, const TO: u64>(u64);

impl<const FROM: u64, const TO: u64> Seconds<FROM, TO> {
    pub(super) const fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl<const FROM: u64, const TO: u64> FromStr for Seconds<FROM, TO> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().filter(|seconds| (FROM..=TO).contains(seconds));
        seconds.map(Self).ok_or_else(|| format!("expected a whole number of seconds from {FROM} to {TO}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_stands_before_the_file_which_is_read_all_the_same() {
        let mut one: Option<Given<u8>> = None;
        one.fill("3").unwrap();
        one.fill("4").unwrap();
        assert_eq!((one.text().as_deref(), one.fill("x").is_err()), (Some("3"), true));
        let mut many: Vec<Given<u8>> = Vec::new();
        assert_eq!(many.text(), None);
        many.fill("1, 2").unwrap();
        many.fill("3").unwrap();
        assert_eq!((many.text().as_deref(), many.fill("3,x").is_err()), (Some("1,2"), true));
        let mut flag = false;
        assert_eq!(flag.text(), None);
        flag.fill("true").unwrap();
        flag.fill("false").unwrap();
        assert_eq!((flag.text().as_deref(), flag.fill("yes").is_err()), (Some("true"), true));
    }
}
