//! Foreign bytes, fit to be read.

use std::fmt::{self, Write};

/// The most bytes that are shown of one value.
const SHOWN_BYTES_MAX: usize = 160;

/// Shows bytes so that they can stand in a log line, a message or a terminal: control characters and what is not
/// UTF-8 are escaped, so are quotes and backslashes, and what is long is cut.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        for chunk in shown.utf8_chunks() {
            chunk.valid().chars().try_for_each(|c| write_escaped(f, c))?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_str(if shown.len() < self.0.len() { "..." } else { "" })
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\'' => f.write_char(c),
        // Escapes what has no glyph of its own too: separators of lines and marks that turn the writing direction.
        _ => write!(f, "{}", c.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        assert_eq!(Printable(bytes).to_string(), expect);
    }

    #[test]
    fn control_bytes_are_never_raw() {
        check(b"plain 'text'", "plain 'text'");
        check(b"a\r\nb\x00\x1b[31m", r"a\r\nb\0\u{1b}[31m");
        check(b"\xff\xfe", r"\xff\xfe");
        check("jos\u{e9} \u{2028}\u{202e}".as_bytes(), r"josé \u{2028}\u{202e}");
        check(b"\"\\", r#"\"\\"#);
    }

    #[test]
    fn long_values_are_cut() {
        check(&[b'a'; 200], &format!("{}...", "a".repeat(160)));
    }
}
