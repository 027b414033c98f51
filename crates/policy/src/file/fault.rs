//! What is wrong with a file, where, and what was likely meant. All of it at once.

use std::fmt;
use std::ops::Range;

use crate::Printable;

/// How many faults are shown; the others are counted.
const SHOWN_MAX: usize = 50;
/// How many faults are kept with their places; the others are counted.
const KEPT_MAX: usize = 1_000;
/// The longest line that is shown, in characters.
const LINE_MAX: usize = 160;

/// One thing that is wrong, at some bytes of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(span: &Range<usize>, message: impl fmt::Display) -> Self {
        Self { span: span.clone(), message: message.to_string() }
    }
}

/// Everything that is wrong with a file. Its text is one paragraph for each fault: file, line and column, what is
/// wrong, and the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    name: String,
    faults: Vec<ConfigFault>,
    /// How many there are beyond those.
    not_kept: usize,
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// The line; the first is 1.
    pub line: usize,
    /// The column in characters; the first is 1.
    pub column: usize,
    /// What is wrong, and what was likely meant.
    pub message: String,
    /// The line as it stands in the file, and how many characters from the column on are meant.
    shown: Option<(String, usize)>,
}

impl ConfigError {
    /// Faults of a text, in its order.
    pub(crate) fn new(name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.span.start, fault.span.end));
        faults.dedup();
        let not_kept = faults.len().saturating_sub(KEPT_MAX);
        faults.truncate(KEPT_MAX);
        let starts: Vec<_> = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let faults = faults.into_iter().map(|fault| ConfigFault::new(text, &starts, fault)).collect();
        Self { name: name.to_owned(), faults, not_kept }
    }

    /// The faults, in the order of the file: the first thousand, if there are more.
    #[must_use]
    pub fn faults(&self) -> &[ConfigFault] {
        &self.faults
    }
}

impl ConfigFault {
    /// `starts` are the places where lines begin.
    fn new(text: &str, starts: &[usize], fault: Fault) -> Self {
        let start = text.floor_char_boundary(fault.span.start.min(text.len()));
        let line = starts.partition_point(|line_start| *line_start <= start);
        let line_start = starts[line - 1];
        let whole = text[line_start..].lines().next().unwrap_or_default();
        let column = text[line_start..start].chars().count() + 1;
        let end = text.ceil_char_boundary(fault.span.end.clamp(start, text.len()));
        let meant = text[start..end].lines().next().unwrap_or_default().chars().count().max(1);
        let is_short = whole.len() <= 4 * LINE_MAX && whole.chars().count() <= LINE_MAX;
        let is_shown = is_short && !whole.trim().is_empty();
        Self { line, column, message: fault.message, shown: is_shown.then(|| (whole.to_owned(), meant)) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Printable(self.name.as_bytes());
        for (i, fault) in self.faults.iter().take(SHOWN_MAX).enumerate() {
            let ConfigFault { line, column, message, shown } = fault;
            write!(f, "{}{name}:{line}:{column}: {message}", if i == 0 { "" } else { "\n" })?;
            if let Some((text, meant)) = shown {
                let (number, marks) = (line.to_string(), "^".repeat(*meant));
                let clean = |c: char| if c.is_control() { ' ' } else { c };
                let text: String = text.chars().map(clean).collect();
                write!(f, "\n  {number} | {text}\n  {0:1$} | {0:2$}{marks}", "", number.len(), column - 1)?;
            }
        }
        match (self.faults.len() + self.not_kept).checked_sub(SHOWN_MAX) {
            Some(more @ 1..) => write!(f, "\nand {more} more"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}
