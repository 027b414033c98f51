//! How a format writes bytes that would end a field.

use std::borrow::Cow;

/// How a format writes bytes that would end a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// `\"`, `\\`, `\n` and `\xHH`, as Apache and nginx do.
    #[default]
    Backslash,
    /// As in a JSON string.
    Json,
    /// `%20`, as CloudFront does.
    Percent,
    /// `+` for a space, as IIS does.
    Plus,
    /// Nothing is escaped, not even what ends a field, as Envoy does.
    Nothing,
}

impl Escapes {
    /// The bytes that were meant. What is no escape stays as it is.
    #[must_use]
    pub fn decode<'a>(self, raw: &'a [u8]) -> Cow<'a, [u8]> {
        let mark = match self {
            Self::Nothing => return Cow::Borrowed(raw),
            Self::Backslash | Self::Json => b'\\',
            Self::Percent => b'%',
            Self::Plus => b'+',
        };
        let Some(first) = memchr::memchr(mark, raw) else { return Cow::Borrowed(raw) };
        let mut out = raw[..first].to_vec();
        let mut rest = &raw[first..];
        while let [byte, behind @ ..] = rest {
            rest = match *byte == mark {
                true => self.escape(behind, &mut out),
                false => {
                    out.push(*byte);
                    behind
                }
            };
        }
        Cow::Owned(out)
    }

    /// Writes what the escape before `rest` stands for, and returns what is behind it.
    fn escape<'a>(self, rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        match (self, rest) {
            (Self::Plus, _) => out.push(b' '),
            (Self::Percent, [high, low, behind @ ..]) | (Self::Backslash, [b'x', high, low, behind @ ..]) => {
                if let Some(byte) = hex(*high, *low) {
                    out.push(byte);
                    return behind;
                }
                out.push(if self == Self::Percent { b'%' } else { b'\\' });
            }
            (Self::Percent, _) => out.push(b'%'),
            (Self::Json, [b'u', a, b, c, d, behind @ ..]) => return unicode([*a, *b, *c, *d], behind, out),
            (_, [byte, behind @ ..]) => {
                out.push(match byte {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    other => *other,
                });
                return behind;
            }
            (_, []) => out.push(b'\\'),
        }
        rest
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// A `\uXXXX`, or two that are one character together.
fn unicode<'a>(digits: [u8; 4], behind: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let unit = |[a, b, c, d]: [u8; 4]| Some(u16::from_be_bytes([hex(a, b)?, hex(c, d)?]));
    let Some(first) = unit(digits) else { return behind };
    let (second, after) = match behind {
        [b'\\', b'u', a, b, c, d, after @ ..] if (0xd800..0xdc00).contains(&first) => (unit([*a, *b, *c, *d]), after),
        _ => (None, behind),
    };
    let units = [first, second.unwrap_or(0)];
    let units = if second.is_some() { &units[..] } else { &units[..1] };
    for character in char::decode_utf16(units.iter().copied()) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(escapes: Escapes, raw: &str, expect: &[u8]) {
        assert_eq!(&*escapes.decode(raw.as_bytes()), expect, "{raw}");
    }

    #[test]
    fn what_was_escaped_is_read_back() {
        check(Escapes::Backslash, "plain", b"plain");
        check(Escapes::Backslash, r#"10\" \x41\\"#, b"10\" A\\");
        check(Escapes::Backslash, r"\xfF\xg1\", b"\xff\\xg1\\");
        check(Escapes::Json, r"a\u00e9\ud83d\ude00\ud800\/", "aé😀\u{fffd}/".as_bytes());
        check(Escapes::Percent, "a%20b%zz%", b"a b%zz%");
        check(Escapes::Plus, "a+b", b"a b");
    }
}
