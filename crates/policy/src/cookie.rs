//! Cookies as requests carry them (RFC 6265, section 4.2): pairs separated by semicolons, on one line or several.

use crate::Attributes;

/// The most pairs that are searched for a name; what stands behind them is not seen.
const PAIRS_MAX: usize = 256;

/// The value of the first cookie of this name, over all lines; quotes are part of it.
pub(crate) fn value<'a, A: Attributes + ?Sized>(attributes: &'a A, name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    let mut pairs_left = PAIRS_MAX;
    attributes.header_lines("cookie", &mut |line| {
        for pair in line.split(|byte| *byte == b';').take(pairs_left) {
            pairs_left -= 1;
            found = found.or_else(|| value_of(pair, name));
        }
    });
    found
}

fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (before, after) = (&pair[..equals], &pair[equals + 1..]);
    (before.trim_ascii() == name.as_bytes()).then(|| after.trim_ascii())
}
