//! The bytes of a key that a caller brings: a text, or a list of texts.
//!
//! ```text
//! its UTF-8                                             a text
//! ff, then for each its length in 2 bytes and its UTF-8  a list of texts
//! fe, then the SHA-256 of these                         either, if it is longer than 128 bytes
//! ```
//!
//! UTF-8 has neither ff nor fe, so no text looks like a list or a hash, and no two lists have the same bytes.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::json::{Fault, Kind, Reader};

/// The longest text of a key, in characters.
pub(super) const TEXT_CHARS_MAX: usize = 512;
/// The most texts of a key.
pub(super) const TEXTS_MAX: usize = 8;
/// The longest key that is kept as it is, in bytes.
const PLAIN_BYTES_MAX: usize = 128;

const LIST: u8 = 0xff;
const HASH: u8 = 0xfe;

/// Reads a key.
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, Fault> {
    if reader.kind() != Kind::List {
        return text(reader, "a text, or a list of texts").map(of_text);
    }
    let at = reader.at();
    let mut texts = Vec::new();
    reader.list("a list of texts", |reader, place| {
        if place == TEXTS_MAX {
            return Err(reader.fault(format_args!("a key has at most {TEXTS_MAX} texts")));
        }
        text(reader, "a text").map(|text| texts.push(text))
    })?;
    match texts.is_empty() {
        true => Err(Fault::new(at, "a key that is a list has one text at least")),
        false => Ok(of_list(&texts).into()),
    }
}

fn text<'a>(reader: &mut Reader<'a>, what: &str) -> Result<Cow<'a, str>, Fault> {
    let at = reader.at();
    let text = reader.text(what)?;
    match is_short(&text) {
        true => Ok(text),
        false => Err(Fault::new(at, format_args!("a text of a key has at most {TEXT_CHARS_MAX} characters"))),
    }
}

/// Can it stand in a key?
pub(super) fn is_short(text: &str) -> bool {
    text.len() <= TEXT_CHARS_MAX || text.chars().count() <= TEXT_CHARS_MAX
}

/// The key of one text.
pub(super) fn of_text(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        text if text.len() > PLAIN_BYTES_MAX => hashed(text.as_bytes()).into(),
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

/// The key of a list of texts, none longer than [`TEXT_CHARS_MAX`].
pub(super) fn of_list(texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut key = vec![LIST];
    for text in texts.iter().map(AsRef::as_ref) {
        // A character has at most four bytes, so the length fits.
        key.extend((text.len() as u16).to_be_bytes());
        key.extend(text.as_bytes());
    }
    if key.len() > PLAIN_BYTES_MAX { hashed(&key) } else { key }
}

fn hashed(key: &[u8]) -> Vec<u8> {
    [&[HASH][..], Sha256::digest(key).as_slice()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn key(json: &str) -> Vec<u8> {
        json::read(json, read).unwrap_or_else(|fault| panic!("{json}: {fault:?}")).into_owned()
    }

    #[test]
    fn br_107_no_two_keys_look_alike() {
        let long = format!("\"{}\"", "a".repeat(PLAIN_BYTES_MAX + 1));
        let keys = [
            r#""""#,
            r#""a""#,
            r#"["a"]"#,
            r#"[""]"#,
            r#"["", ""]"#,
            r#"["a:b", "c"]"#,
            r#"["a", "b:c"]"#,
            r#""a:b:c""#,
            r#"["ab", ""]"#,
            r#"["", "ab"]"#,
            r#"["a", "b"]"#,
            r#""\u0000\u0001a""#,
            r#"["a\u0000\u0001b"]"#,
            &long,
            &format!("[{long}]"),
            &format!("[\"{}\", \"b\"]", "a".repeat(PLAIN_BYTES_MAX)),
            &format!("[\"{}\"]", "a".repeat(PLAIN_BYTES_MAX)),
        ];
        for (i, one) in keys.iter().enumerate() {
            keys[..i].iter().for_each(|other| assert_ne!(key(one), key(other), "{one} and {other}"));
        }
    }

    #[test]
    fn br_111_a_key_is_its_characters_however_they_are_written() {
        assert_eq!(key(r#""\u00e9""#), key("\"\u{e9}\""));
        assert_ne!(key("\"\u{e9}\""), key("\"e\u{301}\""));
        assert_eq!(key(r#""a\u0000 ,\r\n""#), b"a\0 ,\r\n");
        let widest = format!("\"{}\"", "\u{1f600}".repeat(TEXT_CHARS_MAX));
        assert_eq!(key(&widest).len(), 33);
    }

    #[test]
    fn a_key_is_bounded() {
        let refused = |json: &str| json::read(json, read).unwrap_err().message().to_owned();
        assert_eq!(refused("[]"), "a key that is a list has one text at least");
        assert_eq!(refused("7"), "expected a text, or a list of texts, not a number");
        let long = format!("\"{}\"", "a".repeat(TEXT_CHARS_MAX + 1));
        assert_eq!(refused(&long), "a text of a key has at most 512 characters");
        assert_eq!(refused(&format!("[{}\"\"]", "\"\",".repeat(TEXTS_MAX))), "a key has at most 8 texts");
    }
}
