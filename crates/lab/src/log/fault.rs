//! Why a line is no request.

use std::fmt;

/// The most bytes of a line that a message shows.
const SHOWN_BYTES_MAX: usize = 60;

/// What was expected, and what stood there. It allocates nothing, since every line of a file may have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault<'a> {
    /// What was expected: `status`, `"`.
    pub expected: &'a str,
    /// What stood there.
    pub got: &'a [u8],
}

impl<'a> Fault<'a> {
    pub(crate) const fn new(expected: &'a str, got: &'a [u8]) -> Self {
        Self { expected, got }
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.got[..self.got.len().min(SHOWN_BYTES_MAX)];
        let more = if shown.len() < self.got.len() { "..." } else { "" };
        match shown {
            [] => write!(f, "{} expected, and the line ends", self.expected),
            _ => write!(f, "{} expected, got {}{more}", self.expected, shown.escape_ascii()),
        }
    }
}
