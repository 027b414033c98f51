//! Which format a log is in, told from its first lines.

use crate::log::{Format, Known, Line, Parsed, Parser, Zone};

/// The most lines that are looked at.
pub const LINES_LOOKED_AT: usize = 200;

/// The format that reads the most of these lines; of equals, the one that says the most. `None` if none reads any.
#[must_use]
pub fn detect<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Format> {
    let read = |known: &Known| {
        let mut parser = Parser::new(&Format::Known(*known), Zone::UTC);
        let lines = lines.clone().take(LINES_LOOKED_AT);
        lines.filter(|line| parser.read(line, &mut Line::default()) == Parsed::Request).count()
    };
    let counted = Known::ALL.iter().filter(|known| fits(**known, lines.clone())).map(|known| (read(known), known));
    // Of equals the last of the reversed, which is the first.
    let (count, known) = counted.rev().max_by_key(|(count, _)| *count)?;
    (count > 0).then_some(Format::Known(*known))
}

/// Two formats differ in their head alone.
fn fits<'a>(known: Known, mut lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let is_cloudfront = |line: &[u8]| line.starts_with(b"#Fields:") && memchr::memmem::find(line, b"x-edge-").is_some();
    match known {
        Known::CloudFront => lines.any(is_cloudfront),
        _ => true,
    }
}
