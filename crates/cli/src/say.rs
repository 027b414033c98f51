//! What the program tells its operator, on standard error.
//!
//! Colour is left out where it does not belong: no terminal, `NO_COLOR`, `TERM=dumb`.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const FAIL: Style = AnsiColor::Red.on_default().bold();

/// The width of the names in front of entries.
const NAME_WIDTH: usize = 10;

pub(crate) fn title(text: &str) {
    anstream::eprintln!("{BOLD}{text}{BOLD:#}");
}

/// A name and what belongs to it; further lines of it are set below the first.
pub(crate) fn entry(name: &str, what: &dyn Display) {
    let indented = what.to_string().trim_end().replace('\n', &format!("\n{:1$}", "", NAME_WIDTH + 1));
    anstream::eprintln!("  {DIM}{name:<NAME_WIDTH$}{DIM:#} {indented}");
}

pub(crate) fn line(text: &str) {
    anstream::eprintln!("{text}");
}

pub(crate) fn warning(text: &str) {
    anstream::eprintln!("{WARN}warning:{WARN:#} {text}");
}

pub(crate) fn error(text: &dyn Display) {
    anstream::eprintln!("{FAIL}error:{FAIL:#} {text}");
}
