//! Several logs as one stream.
//!
//! Logs that were rotated follow each other, logs of several servers run beside each other, and people name them in any
//! order. So the next line is always taken from the log whose newest line so far is the oldest: each log is read as far
//! as the others are, and those that began later wait. What is out of order within a log stays so; [`Reorder`] sets it
//! right.
//!
//! [`Reorder`]: crate::log::Reorder

use std::fmt;
use std::io;

use crate::log::{Fault, Format, Known, LINES_LOOKED_AT, Line, Lines, NextLine, Parsed, Parser, Place, Source, detect};

/// The most bytes of a line that a message shows.
const SHOWN_BYTES_MAX: usize = 120;

/// One log, and how far it has been read.
pub struct Feed {
    name: String,
    format: Option<Format>,
    lines: Lines<Source>,
    parser: Parser,
    /// The newest second so far; zero before the first request.
    newest_s: u64,
    /// How many lines were read.
    line: u64,
    is_at_end: bool,
}

impl Feed {
    /// A log in this format, or if none is given, in the one that its first lines are in.
    ///
    /// # Errors
    /// It cannot be read, or its format is not known.
    pub fn new(source: Source, format: Option<&Format>, place: impl Into<Place>) -> Result<Self, UnknownFormat> {
        let name = source.name().to_owned();
        let mut lines = Lines::new(source);
        let format = match format {
            Some(format) => Some(format.clone()),
            None => found(&name, &mut lines)?,
        };
        // Of an empty log nothing is read, in whichever format.
        let parser = Parser::new(format.as_ref().unwrap_or(&Format::Known(Known::Combined)), place);
        Ok(Self { name, format, lines, parser, newest_s: 0, line: 0, is_at_end: false })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place that its times were taken to be from, if any named no zone.
    #[must_use]
    pub fn assumed_place(&self) -> Option<&Place> {
        self.parser.assumed_place()
    }

    /// The format that it is read in; `None` if it is empty, and none was asked for.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }
}

/// The format that the first lines of a log are in; `None` if it has no lines but empty ones.
fn found(name: &str, lines: &mut Lines<Source>) -> Result<Option<Format>, UnknownFormat> {
    let unknown = |what: String| UnknownFormat { name: name.to_owned(), what };
    let first = lines.first(LINES_LOOKED_AT).map_err(|error| unknown(format!("cannot be read: {error}")))?;
    if let Some(format) = detect(first.clone()) {
        return Ok(Some(format));
    }
    let mut written = first.clone().filter(|line| !line.is_empty() && line[0] != b'#');
    let Some(line) = written.next() else {
        let has_fields = first.clone().any(|line| line.starts_with(b"#Fields:"));
        return Ok(has_fields.then_some(Format::Known(Known::W3c)));
    };
    let shown = line[..line.len().min(SHOWN_BYTES_MAX)].escape_ascii();
    let hint = "name the format by --format, or write it down as the server's configuration has it";
    Err(unknown(format!("is of no known format; it begins with\n  {shown}\n{hint}")))
}

/// What was read next, and where.
#[derive(Debug)]
pub struct Read<'l, 'a> {
    /// The place of the log among the logs.
    pub log: u16,
    /// The number of the line in it, from 1.
    pub line: u64,
    /// The newest second of the stream: that of the log which is least far.
    pub newest_s: u64,
    /// What was read.
    pub outcome: Outcome<'l, 'a>,
}

/// What was read.
#[derive(Debug)]
pub enum Outcome<'l, 'a> {
    /// A request.
    Request(&'l Line<'a>),
    /// An empty line, or a comment.
    Nothing,
    /// A line that cannot be read.
    Fault(Fault<'a>),
    /// A line that is too long, by its beginning.
    TooLong(&'a [u8]),
    /// The log cannot be read on; what was read of it stays.
    Broken(io::Error),
}

/// Several logs as one stream.
pub struct Feeds {
    feeds: Vec<Feed>,
    /// The one that is read at present.
    at: usize,
    /// It is read until it is newer than this, when another one is the oldest.
    until_s: u64,
}

impl Feeds {
    /// These logs.
    #[must_use]
    pub fn new(feeds: Vec<Feed>) -> Self {
        let mut all = Self { feeds, at: 0, until_s: 0 };
        all.choose();
        all
    }

    /// The logs, in the order in which they were named.
    #[must_use]
    pub fn as_slice(&self) -> &[Feed] {
        &self.feeds
    }

    /// Reads on, and calls `with` with what was read. `None` at the end of all logs.
    #[inline]
    pub fn next<R>(&mut self, with: impl FnOnce(Read<'_, '_>) -> R) -> Option<R> {
        loop {
            let at = self.at;
            let feed = self.feeds.get_mut(at).filter(|feed| !feed.is_at_end)?;
            let line = feed.line + 1;
            let mut request = Line::default();
            let outcome = match feed.lines.next_line() {
                Ok(NextLine::Line(line)) => match feed.parser.read(line, &mut request) {
                    Parsed::Request => {
                        feed.newest_s = feed.newest_s.max(request.time.unix_s);
                        Outcome::Request(&request)
                    }
                    Parsed::Nothing => Outcome::Nothing,
                    Parsed::Fault(fault) => Outcome::Fault(fault),
                },
                Ok(NextLine::TooLong(start)) => Outcome::TooLong(start),
                Ok(NextLine::End) => {
                    feed.is_at_end = true;
                    self.choose();
                    continue;
                }
                Err(error) => {
                    feed.is_at_end = true;
                    Outcome::Broken(error)
                }
            };
            feed.line = line;
            let is_behind = feed.newest_s > self.until_s || feed.is_at_end;
            let newest_s = feed.newest_s.min(self.until_s);
            // There are at most `FILES_MAX` logs.
            let result = with(Read { log: at as u16, line, newest_s, outcome });
            if is_behind {
                self.choose();
            }
            return Some(result);
        }
    }

    /// Chooses the log whose newest line is the oldest; of equals the first.
    fn choose(&mut self) {
        let open = || self.feeds.iter().enumerate().filter(|(_, feed)| !feed.is_at_end);
        let Some((at, _)) = open().min_by_key(|(_, feed)| feed.newest_s) else { return };
        let others = open().filter(|(other, _)| *other != at).map(|(_, feed)| feed.newest_s);
        self.until_s = others.min().unwrap_or(u64::MAX);
        self.at = at;
    }
}

/// The format of a log is not known, or it cannot be read.
#[derive(Debug)]
pub struct UnknownFormat {
    name: String,
    what: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.what)
    }
}

impl std::error::Error for UnknownFormat {}
