//! Replies, in either version of the protocol.

use bytes::{BufMut as _, BytesMut};

/// Writes replies. What differs between the versions is a map, and what is not there.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) bytes: BytesMut,
    /// Has the client asked for the third version?
    pub(super) is_third: bool,
}

impl Replies {
    pub(super) fn new() -> Self {
        Self { bytes: BytesMut::new(), is_third: false }
    }

    pub(super) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error. What a client sent may be part of it, so no line may end within.
    pub(super) fn error(&mut self, text: &str) {
        let is_plain = !text.contains(['\r', '\n']);
        match is_plain {
            true => self.line(b'-', text),
            false => self.line(b'-', &text.replace(['\r', '\n'], " ")),
        }
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    pub(super) fn bulk(&mut self, text: &[u8]) {
        self.number(b'$', i64::try_from(text.len()).unwrap_or(i64::MAX));
        self.bytes.put_slice(text);
        self.bytes.put_slice(b"\r\n");
    }

    /// What is not there.
    pub(super) fn nothing(&mut self) {
        self.bytes.put_slice(if self.is_third { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The head of an array of so many.
    pub(super) fn array(&mut self, length: usize) {
        self.number(b'*', i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// The head of a map of so many pairs.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.is_third {
            true => self.number(b'%', i64::try_from(pairs).unwrap_or(i64::MAX)),
            false => self.array(2 * pairs),
        }
    }

    pub(super) fn integers(&mut self, numbers: &[i64]) {
        self.array(numbers.len());
        numbers.iter().for_each(|number| self.integer(*number));
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.bytes.put_u8(kind);
        self.bytes.put_slice(text.as_bytes());
        self.bytes.put_slice(b"\r\n");
    }

    fn number(&mut self, kind: u8, number: i64) {
        /// The longest 64-bit number with its sign.
        const DIGITS_MAX: usize = 20;
        let (mut digits, mut at, mut rest) = ([0; DIGITS_MAX], DIGITS_MAX, number.unsigned_abs());
        loop {
            at -= 1;
            // A remainder of ten fits.
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.put_u8(kind);
        if number < 0 {
            self.bytes.put_u8(b'-');
        }
        self.bytes.put_slice(&digits[at..]);
        self.bytes.put_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_third: bool, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies { is_third, ..Replies::new() };
        write(&mut replies);
        String::from_utf8(replies.bytes.to_vec()).unwrap()
    }

    #[test]
    fn replies_are_those_of_the_protocol() {
        assert_eq!(written(false, |to| to.simple("OK")), "+OK\r\n");
        assert_eq!(written(false, |to| to.bulk(b"a\r\nb")), "$4\r\na\r\nb\r\n");
        assert_eq!(written(false, Replies::nothing), "$-1\r\n");
        assert_eq!(written(true, Replies::nothing), "_\r\n");
        assert_eq!(written(false, |to| to.map(2)), "*4\r\n");
        assert_eq!(written(true, |to| to.map(2)), "%2\r\n");
        let numbers = [0, -1, i64::MAX, i64::MIN];
        let expected = "*4\r\n:0\r\n:-1\r\n:9223372036854775807\r\n:-9223372036854775808\r\n";
        assert_eq!(written(false, |to| to.integers(&numbers)), expected);
    }

    #[test]
    fn an_error_is_one_line_whatever_is_in_it() {
        assert_eq!(written(false, |to| to.error("ERR a\r\n+OK")), "-ERR a  +OK\r\n");
    }
}
