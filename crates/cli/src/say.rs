//! What the program says: answers on standard output, and to its operator on standard error.
//!
//! Its operator is a person, or a machine that reads one JSON object a line. Colour is left out where it does not
//! belong: no terminal, `NO_COLOR`, `TERM=dumb`. A proxy whose operator no longer listens serves on, so nothing that is
//! told on standard error can fail.

use std::fmt::{Arguments, Display};
use std::io::{IsTerminal, Write as _};
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use serde_json::{Map, Value, json};
use tidegate::{CivilTime, Clock as _, SystemClock};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const FAIL: Style = AnsiColor::Red.on_default().bold();

/// The width of the names in front of entries.
const NAME_WIDTH: usize = 10;

/// How the program speaks of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    #[default]
    Text,
    /// For machines: one object a line.
    Json,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// It failed.
    Error,
    /// It goes on, and somebody should know.
    Warning,
    /// It is as it should be.
    #[default]
    Info,
}

static FORM: AtomicU8 = AtomicU8::new(Form::Text as u8);
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Speaks so from now on, and of nothing that matters less.
pub(crate) fn speak(form: Form, level: Level) {
    FORM.store(form as u8, Relaxed);
    LEVEL.store(level as u8, Relaxed);
}

impl FromStr for Form {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("expected text or json"),
        }
    }
}

impl FromStr for Level {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "error" => Ok(Self::Error),
            "warning" | "warn" => Ok(Self::Warning),
            "info" => Ok(Self::Info),
            _ => Err("expected error, warning or info"),
        }
    }
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Prints an answer, at once: whoever reads it may stop early, and then hears of it as an error.
pub(crate) fn answer(text: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).context("cannot print the answer")
}

/// Prints an answer that is styled, without its styles where they do not belong.
pub(crate) fn styled(text: &str) -> anyhow::Result<()> {
    let out = std::io::stdout();
    let is_plain = !out.is_terminal() || anstream::AutoStream::choice(&out) == anstream::ColorChoice::Never;
    match is_plain {
        true => answer(anstream::adapter::strip_str(text).to_string().as_bytes()),
        false => answer(text.as_bytes()),
    }
}

/// Says how far something is that takes long: on a terminal in one line that changes, and nowhere else.
pub(crate) fn progress(text: &str) {
    let mut err = std::io::stderr().lock();
    if err.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        // Back to the begin, and what stood there is gone.
        let _ = write!(err, "\r\x1b[2K{text}");
        let _ = err.flush();
    }
}

/// A title and what belongs to it, each under a name. To a machine they are one message and its fields.
#[derive(Default)]
pub(crate) struct Page {
    title: String,
    entries: Vec<(String, String)>,
}

impl Page {
    pub(crate) fn new(title: String) -> Self {
        Self { title, entries: Vec::new() }
    }

    /// Adds what stands under a name; an empty name goes on with the entry before it.
    pub(crate) fn entry(&mut self, name: &str, what: &dyn Display) {
        self.entries.push((name.to_owned(), what.to_string().trim_end().to_owned()));
    }

    pub(crate) fn say(self) {
        if is_json() {
            return message(Level::Info, &self.title, fields(self.entries));
        }
        tell(Level::Info, format_args!("{BOLD}{}{BOLD:#}", self.title));
        for (name, what) in self.entries {
            // Further lines are set below the first.
            let indented = what.replace('\n', &format!("\n{:1$}", "", NAME_WIDTH + 1));
            tell(Level::Info, format_args!("  {DIM}{name:<NAME_WIDTH$}{DIM:#} {indented}"));
        }
    }
}

/// Entries as fields; what has no name goes on with the one before it.
fn fields(entries: Vec<(String, String)>) -> Map<String, Value> {
    let mut named: Vec<(String, String)> = Vec::new();
    for (name, what) in entries {
        match named.last_mut() {
            Some((_, last)) if name.is_empty() => last.extend(["\n", &what]),
            _ => named.push((name, what)),
        }
    }
    named.into_iter().map(|(name, what)| (name, Value::from(what))).collect()
}

pub(crate) fn line(text: &str) {
    say(Level::Info, text, format_args!("{text}"));
}

pub(crate) fn warning(text: &str) {
    say(Level::Warning, text, format_args!("{WARN}warning:{WARN:#} {text}"));
}

pub(crate) fn error(text: &dyn Display) {
    say(Level::Error, &text.to_string(), format_args!("{FAIL}error:{FAIL:#} {text}"));
}

fn is_json() -> bool {
    FORM.load(Relaxed) == Form::Json as u8
}

fn say(level: Level, plain: &str, styled: Arguments<'_>) {
    match is_json() {
        true => message(level, plain, Map::new()),
        false => tell(level, styled),
    }
}

/// One object, on one line.
fn message(level: Level, text: &str, fields: Map<String, Value>) {
    let time = format!("{:.6}", CivilTime::of(SystemClock::new().now()));
    let object = json!({ "time": time, "level": level.name(), "message": text, "fields": fields });
    tell(level, format_args!("{object}"));
}

fn tell(level: Level, text: Arguments<'_>) {
    if level as u8 <= LEVEL.load(Relaxed) {
        // Nobody is left to be told that nobody listens.
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}
