//! The syntax of forwarding fields: lists, read from the right, and the elements of `Forwarded` (RFC 7239).
//!
//! The right end of a list was written by the proxies that stand nearest, the left end by whoever sent the request.
//! Reading from the right, nothing that stands further left can change how an element is read: an open quote in a
//! forged element swallows what is left of it, never what a proxy appended.

/// The longest element that is searched for its beginning, in bytes; a longer one is malformed.
const ELEMENT_BYTES_MAX: usize = 1024;

/// The elements of a list, the last one first.
pub(crate) fn from_right(list: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let list = rest?;
        let (before, element) = match last_separator(list, separator) {
            Some(at) => (Some(&list[..at]), &list[at + 1..]),
            None => (None, list),
        };
        rest = before;
        Some(element.trim_ascii())
    })
}

/// The last element that is not empty, and what stands before it.
pub(crate) fn last(list: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let mut rest = Some(list);
    while let Some(list) = rest {
        let (before, element) = match last_separator(list, separator) {
            Some(at) => (Some(&list[..at]), &list[at + 1..]),
            None => (None, list),
        };
        match element.trim_ascii() {
            [] => rest = before,
            element => return Some((element, before.unwrap_or_default())),
        }
    }
    None
}

/// The node of an element's `for` parameter, without its quotes. `None` if it has none, or two, or is malformed.
///
/// Escapes within the quotes are taken as malformed: no address needs one.
pub(crate) fn for_node(element: &[u8]) -> Option<&[u8]> {
    if element.len() > ELEMENT_BYTES_MAX {
        return None;
    }
    let mut node = None;
    for pair in from_right(element, b';').filter(|pair| !pair.is_empty()) {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        if name.eq_ignore_ascii_case(b"for") && node.replace(value).is_some() {
            return None;
        }
    }
    node.map(unquoted)
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value)
}

/// The last separator that stands outside of quotes.
fn last_separator(list: &[u8], separator: u8) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in list.iter().enumerate().rev().take(ELEMENT_BYTES_MAX + 1) {
        match *byte {
            b'"' if !is_escaped(list, at) => quoted = !quoted,
            byte if byte == separator && !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Is the byte at `at` behind an odd number of backslashes?
fn is_escaped(list: &[u8], at: usize) -> bool {
    let backslashes = list[..at].iter().rev().take(ELEMENT_BYTES_MAX).take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expect: &[&str]) {
        let elements: Vec<_> = from_right(list.as_bytes(), b',').map(|e| std::str::from_utf8(e).unwrap()).collect();
        assert_eq!(elements, expect, "{list}");
    }

    #[test]
    fn lists_are_read_from_the_right() {
        check("", &[""]);
        check("a, b ,\tc", &["c", "b", "a"]);
        check(",a,,", &["", "", "a", ""]);
        check(r#"a, "b, c""#, &[r#""b, c""#, "a"]);
        check(r#"a, "b\", c""#, &[r#""b\", c""#, "a"]);
        check(r#"a", b"#, &["b", "a\""]);
        check(r#"a, "b, c"#, &["c", r#"a, "b"#]);
    }

    #[test]
    fn a_long_element_is_not_searched_to_its_end() {
        let list = format!("a,{}", "b".repeat(ELEMENT_BYTES_MAX + 1));
        check(&list, &[&list]);
        assert_eq!(for_node(list.as_bytes()), None);
    }

    #[track_caller]
    fn check_node(element: &str, expect: Option<&str>) {
        assert_eq!(for_node(element.as_bytes()), expect.map(str::as_bytes), "{element}");
    }

    #[test]
    fn the_for_parameter_is_found() {
        check_node("for=192.0.2.43", Some("192.0.2.43"));
        check_node("FOR=\"[2001:db8:cafe::17]:4711\"", Some("[2001:db8:cafe::17]:4711"));
        check_node("proto=http;by=203.0.113.43;For=192.0.2.60", Some("192.0.2.60"));
        check_node("for=192.0.2.60; host=\"a;for=1.2.3.4\";", Some("192.0.2.60"));
        check_node("for=unknown", Some("unknown"));
        check_node("for=\"192.0.2.60", Some("\"192.0.2.60"));
        check_node("proto=http", None);
        check_node("for=192.0.2.60;for=192.0.2.61", None);
        check_node("192.0.2.60", None);
        check_node("", None);
    }
}
