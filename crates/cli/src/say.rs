//! What the program says: answers on standard output, and to its operator on standard error.
//!
//! Colour is left out where it does not belong: no terminal, `NO_COLOR`, `TERM=dumb`. A proxy whose operator no longer
//! listens serves on, so nothing that is told on standard error can fail.

use std::fmt::{Arguments, Display};
use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const FAIL: Style = AnsiColor::Red.on_default().bold();

/// The width of the names in front of entries.
const NAME_WIDTH: usize = 10;

/// Prints an answer, at once: whoever reads it may stop early, and then hears of it as an error.
pub(crate) fn answer(text: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).context("cannot print the answer")
}

pub(crate) fn title(text: &str) {
    tell(format_args!("{BOLD}{text}{BOLD:#}"));
}

/// A name and what belongs to it; further lines of it are set below the first.
pub(crate) fn entry(name: &str, what: &dyn Display) {
    let indented = what.to_string().trim_end().replace('\n', &format!("\n{:1$}", "", NAME_WIDTH + 1));
    tell(format_args!("  {DIM}{name:<NAME_WIDTH$}{DIM:#} {indented}"));
}

pub(crate) fn line(text: &str) {
    tell(format_args!("{text}"));
}

pub(crate) fn warning(text: &str) {
    tell(format_args!("{WARN}warning:{WARN:#} {text}"));
}

pub(crate) fn error(text: &dyn Display) {
    tell(format_args!("{FAIL}error:{FAIL:#} {text}"));
}

fn tell(text: Arguments<'_>) {
    // Nobody is left to be told that nobody listens.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}
