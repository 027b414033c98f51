//! Writing short texts for fields and bodies, without raw foreign characters and without an allocation.

use http::HeaderValue;

/// The longest text of one field, in bytes: a name, two numbers of 20 digits, and what stands around them.
const TEXT_BYTES_MAX: usize = 112;

/// A field's value, written on the stack. What does not fit is left out; [`TEXT_BYTES_MAX`] is chosen so that all fits.
pub(crate) struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; TEXT_BYTES_MAX], length: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
        }
    }

    pub(crate) fn push_number(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    pub(crate) fn value(&self) -> HeaderValue {
        // Only what is printed here gets here, all of it ASCII.
        HeaderValue::from_bytes(&self.bytes[..self.length]).unwrap_or(HeaderValue::from_static(""))
    }
}

/// A number as a field's value.
pub(crate) fn number(number: u64) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).unwrap_or(HeaderValue::from_static("0"))
}

/// `text` as a String of structured fields (RFC 9651, section 3.3.3), at most `bytes_max` bytes without the quotes.
///
/// Such a string holds printable ASCII only; other bytes are written as `%` and two digits.
pub(crate) fn sf_string(text: &str, bytes_max: usize) -> String {
    let mut string = String::from('"');
    for byte in text.bytes() {
        let escaped = match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => percent(byte),
        };
        if string.len() + escaped.len() > bytes_max + 1 {
            break;
        }
        string.push_str(&escaped);
    }
    string + "\""
}

/// `%` and the two digits of a byte.
pub(crate) fn percent(byte: u8) -> String {
    format!("%{byte:02X}")
}

/// Adds `text` to a JSON document, in quotes. What is not printable ASCII is escaped, so that the document is ASCII.
pub(crate) fn push_json(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    // The bytes before an odd one are ASCII, so it begins a character.
    while let Some((plain, odd)) = rest.bytes().position(is_odd).and_then(|at| rest.split_at_checked(at)) {
        json.push_str(plain);
        let mut chars = odd.chars();
        chars.next().into_iter().for_each(|c| push_escaped(json, c));
        rest = chars.as_str();
    }
    json.push_str(rest);
    json.push('"');
}

fn is_odd(byte: u8) -> bool {
    !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\')
}

fn push_escaped(json: &mut String, c: char) {
    match c {
        '"' | '\\' => json.extend(['\\', c]),
        _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| json.push_str(&format!("\\u{unit:04x}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_structured_fields_are_printable() {
        let sf = |text| sf_string(text, 64);
        assert_eq!(sf("per-user"), r#""per-user""#);
        assert_eq!(sf(r#"a "b" \c"#), r#""a \"b\" \\c""#);
        assert_eq!(sf("a\r\nb\0\u{1b}[31m\u{e9}"), r#""a%0D%0Ab%00%1B[31m%C3%A9""#);
        assert_eq!(sf_string("aaaa\"", 5), r#""aaaa""#, "an escape is never cut in two");
        assert_eq!(sf_string("aaaaaa", 5), r#""aaaaa""#);
    }

    #[test]
    fn json_is_ascii() {
        let json = |text| {
            let mut json = String::new();
            push_json(&mut json, text);
            json
        };
        assert_eq!(json("a\"\\\r\n\u{7f}\u{2028}\u{1f600}"), r#""a\"\\\u000d\u000a\u007f\u2028\ud83d\ude00""#);
    }

    #[test]
    fn a_text_that_is_full_leaves_out_what_is_too_long() {
        let mut text = Text::new();
        text.push(&[b'a'; TEXT_BYTES_MAX - 1]);
        text.push(b"bc");
        text.push_number(7);
        let value = text.value();
        assert_eq!((value.len(), value.as_bytes().last()), (TEXT_BYTES_MAX, Some(&b'7')));
    }
}
