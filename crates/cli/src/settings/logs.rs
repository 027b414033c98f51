//! What is told of requests, and how the program speaks of itself.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use tidegate_server::{AccessLogSetup, LogFormat, LogTarget};

use super::Group;
use super::field::{Field, Given};
use crate::say::{self, Form, Level};

/// What is told of requests, and how the program speaks of itself.
#[derive(Args, Clone, Default)]
pub(crate) struct Logs {
    /// Where each request is told of, with what was decided on it: a file, which can be moved away at any time; - for
    /// standard output; or off. [default: off]
    #[arg(long, value_name = "PATH")]
    access_log: Option<Given<Place>>,

    /// How it is told: combined, with the decision behind the standard fields; common; or json.
    /// [default: combined]
    #[arg(long, value_name = "FORMAT")]
    access_log_format: Option<Given<LogFormat>>,

    /// What the program says of itself on standard error: text for people, or json, one object a line.
    /// [default: text]
    #[arg(long, value_name = "FORMAT")]
    log: Option<Given<Form>>,

    /// How much it says: error, warning or info. [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<Given<Level>>,
}

impl Group for Logs {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("access_log", &mut self.access_log),
            ("access_log_format", &mut self.access_log_format),
            ("log", &mut self.log),
            ("log_level", &mut self.log_level),
        ]
    }
}

impl Logs {
    /// Has the program speak as it is told to from now on.
    pub(crate) fn set_voice(&self) {
        let (form, level) = (self.log.as_deref().copied(), self.log_level.as_deref().copied());
        say::speak(form.unwrap_or_default(), level.unwrap_or_default());
    }

    /// Where each request is told of.
    pub(crate) fn access_log(&self) -> anyhow::Result<Option<AccessLogSetup>> {
        let target = match self.access_log.as_deref() {
            None | Some(Place::Off) => return Ok(None),
            Some(Place::Stdout) => LogTarget::stdout(),
            Some(Place::File(path)) => {
                LogTarget::file(path).with_context(|| format!("cannot write the access log to {}", path.display()))?
            }
        };
        let format = self.access_log_format.as_deref().copied().unwrap_or_default();
        Ok(Some(AccessLogSetup { target, format }))
    }

    /// Where the access log is, for people; `None` if it is off.
    pub(crate) fn place(&self) -> Option<String> {
        let format = self.access_log_format.as_deref().copied().unwrap_or_default().name();
        match self.access_log.as_deref()? {
            Place::Off => None,
            Place::Stdout => Some(format!("{format}, on standard output")),
            Place::File(path) => Some(format!("{format}, in {}", path.display())),
        }
    }
}

/// Where the access log goes.
#[derive(Clone)]
enum Place {
    Off,
    Stdout,
    File(PathBuf),
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "" => Err("expected the path of a file, - for standard output, or off"),
            "off" => Ok(Self::Off),
            "-" => Ok(Self::Stdout),
            path => Ok(Self::File(path.into())),
        }
    }
}
