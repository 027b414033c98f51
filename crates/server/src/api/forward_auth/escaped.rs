//! The target of a request, as a proxy passes it on, which may be laxer about its bytes than we are.

use std::fmt::Write as _;

use http::uri::PathAndQuery;

/// The target with those bytes escaped that may not stand in one (RFC 3986, section 2), which means the same.
pub(super) fn escaped(target: &[u8]) -> Option<PathAndQuery> {
    if let Ok(target) = PathAndQuery::try_from(target) {
        return Some(target);
    }
    let mut text = String::with_capacity(target.len() + 16);
    for byte in target {
        match byte {
            b'!' | b'#'..=b';' | b'=' | b'?'..=b'_' | b'a'..=b'z' | b'|' | b'~' => text.push(char::from(*byte)),
            // Writing to a text cannot fail.
            _ => write!(text, "%{byte:02X}").unwrap_or_default(),
        }
    }
    PathAndQuery::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_stand_in_a_target_is_escaped() {
        for (target, expect) in [
            (&b"/api/x?y=%20z"[..], "/api/x?y=%20z"),
            (b"/a<b>`c", "/a%3Cb%3E%60c"),
            (b"/a b", "/a%20b"),
            (b"/caf\xc3\xa9\x01", "/caf%C3%A9%01"),
        ] {
            assert_eq!(escaped(target).unwrap().as_str(), expect);
        }
    }
}
