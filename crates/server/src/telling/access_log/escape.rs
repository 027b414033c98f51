//! Texts that callers chose, as a line can hold them.

/// Adds `text` as nginx does: quotes, backslashes, and all that is not printable ASCII become `\xHH`. So whatever a
/// caller sends, it ends neither its field nor its line.
pub(crate) fn push_escaped(line: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 0xf));
                line.extend_from_slice(&[b'\\', b'x', DIGITS[high], DIGITS[low]]);
            }
            _ => line.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_it_a_text_stays_in_its_field() {
        for (text, expected) in [
            (&b"/a?b=c d"[..], "/a?b=c d"),
            (b"a\"b", "a\\x22b"),
            (b"a\\b", "a\\x5Cb"),
            (b"a\r\nb\t", "a\\x0D\\x0Ab\\x09"),
            (b"\x00\x1f\x7e\x7f\x80\xff", "\\x00\\x1F~\\x7F\\x80\\xFF"),
            ("\u{fc}\u{2028}".as_bytes(), "\\xC3\\xBC\\xE2\\x80\\xA8"),
        ] {
            let mut line = Vec::new();
            push_escaped(&mut line, text);
            assert_eq!(String::from_utf8(line).unwrap(), expected);
        }
    }

    #[test]
    fn every_byte_is_printable_afterwards() {
        let (all, mut line): (Vec<u8>, _) = ((0..=255).collect(), Vec::new());
        push_escaped(&mut line, &all);
        assert!(line.iter().all(|byte| (0x20..0x7f).contains(byte) && *byte != b'"'));
    }
}
