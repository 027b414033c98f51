//! A path in the form in which it is compared.
//!
//! Escapes of unreserved characters are decoded, those that stay are written in upper case (RFC 3986, section 6.2.2),
//! and then dot segments are removed (section 5.2.4), so `/healthz/%2e%2e/api` is `/api`. Everything else stays as it
//! is: case, doubled slashes, `;parameters`.

use std::borrow::Cow;

/// The path in its normal form, which borrows if it was in that form. What does not begin with a slash, such as the
/// `*` of `OPTIONS *`, is no path and stays as it is.
#[must_use]
pub fn normal_path(path: &str) -> Cow<'_, str> {
    if path.is_empty() {
        return Cow::Borrowed("/");
    }
    if !path.starts_with('/') {
        return Cow::Borrowed(path);
    }
    if is_normal(path.as_bytes()) {
        return Cow::Borrowed(path);
    }
    let decoded = if path.contains('%') { Cow::Owned(decoded(path)) } else { Cow::Borrowed(path) };
    match has_dot_segment(&decoded) {
        true => Cow::Owned(without_dot_segments(&decoded)),
        false => decoded,
    }
}

/// Is there nothing to do? One look at each byte, for most paths.
fn is_normal(path: &[u8]) -> bool {
    let mut before = 0;
    path.iter().all(|byte| {
        let plain = *byte != b'%' && !(*byte == b'.' && before == b'/');
        before = *byte;
        plain
    })
}

/// Segment `number` of a normal path; the first is 1. `None` if there is none, or it is empty.
pub(crate) fn segment(path: &str, number: usize) -> Option<&str> {
    path.strip_prefix('/')?.split('/').nth(number.checked_sub(1)?).filter(|segment| !segment.is_empty())
}

/// A path of valid escapes only; others stay as they are. So does an escape behind a `%` that begins none, if what it
/// stands for would make it one: what was decoded is not decoded again.
fn decoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let (mut rest, mut stray) = (path, None);
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        rest = behind;
        match escape(behind.as_bytes()) {
            Some(byte) if is_unreserved(byte) && !stray.is_some_and(|at| completes(byte, &out[at..])) => {
                out.push(char::from(byte));
            }
            Some(byte) => out.push_str(&format!("%{byte:02X}")),
            None => {
                out.push('%');
                stray = Some(out.len());
                continue;
            }
        }
        rest = &behind[2..];
    }
    out.push_str(rest);
    out
}

/// Is `byte` a digit that an escape could need, of which nothing or one digit is there?
fn completes(byte: u8, behind_percent: &str) -> bool {
    byte.is_ascii_hexdigit() && behind_percent.len() < 2 && behind_percent.bytes().all(|it| it.is_ascii_hexdigit())
}

fn escape(behind: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
    // Two digits of 16 make a byte.
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| segment == "." || segment == "..")
}

fn without_dot_segments(path: &str) -> String {
    let mut kept = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment == ".." {
            kept.pop();
        }
        match segment {
            // At the end a dot segment leaves the slash before it.
            "." | ".." if segments.peek().is_none() => kept.push(""),
            "." | ".." => {}
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for (path, expect) in [
            ("", "/"),
            ("/", "/"),
            ("*", "*"),
            ("a/../%41", "a/../%41"),
            ("/a/b", "/a/b"),
            ("/A//b;v=1/", "/A//b;v=1/"),
            ("/a/./b/.", "/a/b/"),
            ("/a/../b/..", "/"),
            ("/a/b/../..", "/"),
            ("/../../a", "/a"),
            ("/a//../b", "/a/b"),
            ("/.hidden/..more", "/.hidden/..more"),
            ("/%7Euser/%41", "/~user/A"),
            ("/a%2fb%2Fc", "/a%2Fb%2Fc"),
            ("/%zz%4", "/%zz%4"),
            ("/%%41", "/%%41"),
            ("/%%41B", "/%%41B"),
            ("/%c%61/%cx%61", "/%c%61/%cxa"),
            ("/%%32%65", "/%%32e"),
            ("/%%7e%2f%61", "/%~%2Fa"),
            ("/healthz/../api", "/api"),
            ("/healthz/%2e%2E/api", "/api"),
            ("/healthz/.%2e/api", "/api"),
            ("/%252e%252e/api", "/%252e%252e/api"),
        ] {
            assert_eq!(normal_path(path), expect, "{path}");
            assert_eq!(normal_path(expect), expect, "a normal path stays as it is");
        }
        assert!(matches!(normal_path("/a/.b/c"), Cow::Borrowed(_)));
    }

    #[test]
    fn segments_are_counted_from_one() {
        assert_eq!([0, 1, 2, 3, 4].map(|n| segment("/v1//x", n)), [None, Some("v1"), None, Some("x"), None]);
        assert_eq!([segment("/", 1), segment("*", 1)], [None, None]);
    }
}
