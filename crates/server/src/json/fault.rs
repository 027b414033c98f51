//! What is wrong with a text, and where.

use std::fmt::{self, Display};

/// What is wrong with a text. Boxed, since nearly nothing is wrong, and each value that is read makes room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(Box<Wrong>);

/// At which byte of the text, in which of its fields, and what was likely meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    at: usize,
    /// The way to the field, from the outermost: a JSON Pointer (RFC 6901). Empty if it is the whole.
    pointer: String,
    message: String,
    /// Is each part of it right, and the whole not?
    is_conflict: bool,
}

impl Fault {
    #[cold]
    pub(crate) fn new(at: usize, message: impl Display) -> Self {
        Self(Box::new(Wrong { at, pointer: String::new(), message: message.to_string(), is_conflict: false }))
    }

    /// Of parts that are right, and contradict each other.
    pub(crate) fn conflict(at: usize, message: impl Display) -> Self {
        let mut fault = Self::new(at, message);
        fault.0.is_conflict = true;
        fault
    }

    pub(crate) const fn is_conflict(&self) -> bool {
        self.0.is_conflict
    }

    /// The same, within this field or place of what it was found in.
    #[cold]
    pub(crate) fn within(mut self, step: impl Display) -> Self {
        let step = step.to_string().replace('~', "~0").replace('/', "~1");
        self.0.pointer.insert_str(0, &format!("/{step}"));
        self
    }

    pub(crate) fn pointer(&self) -> &str {
        &self.0.pointer
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Line and column, both from 1, in characters.
    pub(crate) fn place(&self, text: &str) -> Place {
        let before = &text[..text.floor_char_boundary(self.0.at)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
