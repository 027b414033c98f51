//! Access logs: from files in many formats to the requests that they tell of.
//!
//! A line's bytes become a borrowed [`Line`], or a [`Fault`] that says what was expected. Formats of text are programs
//! of fields and the text between them (`program`), whichever notation they were written in; JSON is read by the
//! names of its fields. Read `line` first, then `program`, `format`, `parser`, then `source` and `lines`, which get lines out of
//! files, and `feed` and `reorder`, which put them in the order of time.

mod calendar;
mod client;
mod detect;
mod escapes;
mod fault;
mod feed;
mod field;
mod format;
mod json;
mod json_names;
mod line;
mod lines;
mod near;
mod notation;
mod parser;
mod place;
mod program;
mod reorder;
mod source;
mod stamp;
mod w3c;

pub use calendar::{Utc, Zone, ZoneError};
pub use client::{Origin, origin};
pub use detect::{LINES_LOOKED_AT, detect};
pub use escapes::Escapes;
pub use fault::Fault;
pub use feed::{Feed, Feeds, Outcome, Read, UnknownFormat};
pub use format::{Format, FormatError, Known};
pub use line::Line;
pub use lines::{LINE_BYTES_MAX, Lines, NextLine};
pub use parser::{Parsed, Parser};
pub use place::{Place, PlaceError};
pub use reorder::{Bound, Reorder, Slot};
pub use source::{FILES_MAX, Source, SourceError};
pub use stamp::{Stamp, moment};

#[cfg(test)]
mod tests;
