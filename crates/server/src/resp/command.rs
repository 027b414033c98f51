//! Commands as they come: arrays of texts, or words on a line.
//!
//! What is announced is believed only as far as it has come: a header that promises two thousand million elements
//! costs as much as any other line. Whatever a command is made of has a bound, and what is beyond it ends the
//! connection with a reply that says so, since nobody knows where the next command would begin.

use std::fmt;

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;

/// Words of one command.
pub(super) const WORDS_MAX: usize = 1_024;
/// The length of a command: of all its words. Bytes.
pub(super) const BYTES_MAX: usize = 256 * 1024;
/// The same before the client has said the password.
pub(super) const STRANGER_BYTES_MAX: usize = 16 * 1024;
/// The length of a line: a header, or a command in words. Bytes.
pub(super) const LINE_MAX: usize = 64 * 1024;
/// The length of a header: a letter and a number.
const HEADER_MAX: usize = 32;

/// The words of a command, its name first. It has one at least.
pub(super) type Words = Vec<Bytes>;

/// What is no command. Its `Display` is the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// A number of words that is none, or beyond [`WORDS_MAX`].
    Count,
    /// A length that is none, or makes the command too long.
    Length,
    /// Something other than `$` where a word should begin.
    NoWord(u8),
    /// A line that does not end.
    Line,
    /// Quotes that are not closed.
    Quotes,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => write!(f, "Protocol error: invalid multibulk length (at most {WORDS_MAX})"),
            Self::Length => write!(f, "Protocol error: invalid bulk length (a command has at most {BYTES_MAX} bytes)"),
            Self::NoWord(byte) => write!(f, "Protocol error: expected '$', got '{}'", byte.escape_ascii()),
            Self::Line => write!(f, "Protocol error: too big inline request (at most {LINE_MAX})"),
            Self::Quotes => f.write_str("Protocol error: unbalanced quotes in request"),
        }
    }
}

/// Reads commands from bytes as they come. It goes on where it was, so nothing is read twice.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The words of the command that is under way.
    words: Words,
    /// How many are still to come, of a command that is under way.
    missing: usize,
    /// The length of the word that is under way.
    length: Option<usize>,
    /// How many bytes of a line were looked at already.
    looked: usize,
    /// The bytes that the command may still have.
    room: usize,
}

impl Reader {
    /// The next command that is whole; `None` if more must come first.
    ///
    /// # Errors
    /// What has come is no command.
    pub(super) fn next(&mut self, bytes: &mut BytesMut, bytes_max: usize) -> Result<Option<Words>, Unreadable> {
        loop {
            if self.missing > 0 {
                match self.word(bytes)? {
                    Some(word) => self.words.push(word),
                    None => return Ok(None),
                }
                self.missing -= 1;
            } else {
                match bytes.first() {
                    None => return Ok(None),
                    Some(b'*') => match self.number(bytes, Unreadable::Count)? {
                        None => return Ok(None),
                        // Redis takes an array of nothing for nothing.
                        Some(..=0) => continue,
                        Some(count) => {
                            self.missing = bounded(count, WORDS_MAX).ok_or(Unreadable::Count)?;
                            self.room = bytes_max;
                            continue;
                        }
                    },
                    Some(_) => match self.line(bytes, LINE_MAX.min(bytes_max), Unreadable::Line)? {
                        None => return Ok(None),
                        Some(line) => self.words = split(&line)?,
                    },
                }
            }
            if self.missing == 0 && !self.words.is_empty() {
                return Ok(Some(std::mem::take(&mut self.words)));
            }
        }
    }

    /// Is no command under way, as far as it was taken from the bytes?
    pub(super) fn is_between(&self) -> bool {
        self.missing == 0 && self.looked == 0
    }

    /// One word of an array.
    fn word(&mut self, bytes: &mut BytesMut) -> Result<Option<Bytes>, Unreadable> {
        let length = match (self.length, bytes.first()) {
            (Some(length), _) => length,
            (None, None) => return Ok(None),
            (None, Some(b'$')) => match self.number(bytes, Unreadable::Length)? {
                None => return Ok(None),
                Some(length) => {
                    let length = bounded(length, self.room).ok_or(Unreadable::Length)?;
                    self.room -= length;
                    length
                }
            },
            (None, Some(byte)) => return Err(Unreadable::NoWord(*byte)),
        };
        self.length = Some(length);
        if bytes.len() < length + 2 {
            return Ok(None);
        }
        self.length = None;
        let word = bytes.split_to(length).freeze();
        bytes.advance(2);
        Ok(Some(word))
    }

    /// The number in a header.
    fn number(&mut self, bytes: &mut BytesMut, otherwise: Unreadable) -> Result<Option<i64>, Unreadable> {
        let Some(line) = self.line(bytes, HEADER_MAX, otherwise)? else { return Ok(None) };
        let number = std::str::from_utf8(&line[1..]).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or(otherwise)
    }

    /// A line, without its end.
    fn line(&mut self, bytes: &mut BytesMut, most: usize, otherwise: Unreadable) -> Result<Option<Bytes>, Unreadable> {
        match memchr(b'\n', &bytes[self.looked..]) {
            Some(i) if self.looked + i <= most => {
                let mut line = bytes.split_to(std::mem::take(&mut self.looked) + i + 1).freeze();
                line.truncate(line.len() - 1);
                if line.ends_with(b"\r") {
                    line.truncate(line.len() - 1);
                }
                Ok(Some(line))
            }
            Some(_) => Err(otherwise),
            None if bytes.len() > most => Err(otherwise),
            None => {
                self.looked = bytes.len();
                Ok(None)
            }
        }
    }
}

fn bounded(number: i64, most: usize) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number <= most)
}

/// The words of a line, of which each may stand in quotes as Redis takes them.
fn split(line: &Bytes) -> Result<Words, Unreadable> {
    let mut words = Words::new();
    let mut rest = line.clone();
    loop {
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        rest.advance(blanks);
        match rest.first() {
            None => return Ok(words),
            Some(_) if words.len() == WORDS_MAX => return Err(Unreadable::Count),
            Some(&quote @ (b'"' | b'\'')) => {
                let (word, taken) = quoted(&rest[1..], quote).ok_or(Unreadable::Quotes)?;
                words.push(word);
                rest.advance(1 + taken);
                if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    return Err(Unreadable::Quotes);
                }
            }
            Some(_) => {
                let length = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                words.push(rest.split_to(length));
            }
        }
    }
}

/// What stands between quotes, and how many bytes that took with the closing one.
fn quoted(text: &[u8], quote: u8) -> Option<(Bytes, usize)> {
    let mut word = Vec::new();
    let mut at = 0;
    loop {
        match (*text.get(at)?, text.get(at + 1)) {
            (byte, _) if byte == quote => return Some((word.into(), at + 1)),
            (b'\\', Some(b'x')) if quote == b'"' && hex(text, at + 2).is_some() => {
                word.extend(hex(text, at + 2));
                at += 4;
            }
            (b'\\', Some(next)) if quote == b'"' => {
                word.push(match next {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 2;
            }
            (b'\\', Some(b'\'')) => {
                word.push(b'\'');
                at += 2;
            }
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn hex(text: &[u8], at: usize) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(at..at + 2)?).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands of these bytes, which come in pieces of this size.
    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Words>, Unreadable> {
        let (mut reader, mut buffer, mut commands) = (Reader::default(), BytesMut::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some(words) = reader.next(&mut buffer, BYTES_MAX)? {
                commands.push(words);
            }
        }
        Ok(commands)
    }

    fn words(texts: &[&[u8]]) -> Words {
        texts.iter().map(|text| Bytes::copy_from_slice(text)).collect()
    }

    #[test]
    fn br_190_commands_are_read_however_they_are_cut() {
        let bytes = b"*2\r\n$4\r\nPING\r\n$5\r\na\r\nbc\r\nPING  x\r\n\r\n*0\r\n*1\r\n$0\r\n\r\nQUIT\n";
        let expected = [words(&[b"PING", b"a\r\nbc"]), words(&[b"PING", b"x"]), words(&[b""]), words(&[b"QUIT"])];
        for piece in 1..=bytes.len() {
            assert_eq!(read(bytes, piece).unwrap(), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn br_190_long_words_and_deep_pipelines_are_read() {
        let key = vec![b'k'; 100 * 1024];
        let long = [b"*2\r\n$4\r\nPING\r\n$102400\r\n", &key[..], b"\r\n"].concat();
        assert_eq!(read(&long, 1_460).unwrap(), [words(&[b"PING", &key])]);
        let pipeline = b"*1\r\n$4\r\nPING\r\n".repeat(100_000);
        assert_eq!(read(&pipeline, 64 * 1024).unwrap().len(), 100_000);
    }

    #[test]
    fn what_is_announced_costs_nothing_until_it_comes() {
        let mut reader = Reader::default();
        let mut buffer = BytesMut::from(&b"*2147483648\r\n"[..]);
        assert_eq!(reader.next(&mut buffer, BYTES_MAX), Err(Unreadable::Count));
        let mut reader = Reader::default();
        let mut buffer = BytesMut::from(&b"*1024\r\n$262144\r\n"[..]);
        assert_eq!(reader.next(&mut buffer, BYTES_MAX), Ok(None));
        assert!(buffer.capacity() < 1_024 && reader.words.capacity() == 0);
    }

    #[test]
    fn what_is_no_command_is_refused_by_name() {
        let refused = |bytes: &[u8]| read(bytes, 7).unwrap_err();
        assert_eq!(refused(b"*1025\r\n"), Unreadable::Count);
        assert_eq!(refused(b"*x\r\n"), Unreadable::Count);
        assert_eq!(refused(b"*1\r\n$262145\r\n"), Unreadable::Length);
        let half = [&b"$131072\r\n"[..], &[b'x'; 131_072], b"\r\n"].concat();
        assert!(read(&[&b"*2\r\n"[..], &half, &half].concat(), 4_096).is_ok());
        assert_eq!(refused(&[&b"*3\r\n"[..], &half, &half, b"$1\r\n"].concat()), Unreadable::Length);
        assert_eq!(refused(b"*1\r\n$-1\r\n"), Unreadable::Length);
        assert_eq!(refused(b"*1\r\n:1\r\n"), Unreadable::NoWord(b':'));
        assert_eq!(refused(&[b'*'; 100]), Unreadable::Count);
        assert_eq!(refused(&vec![b'x'; LINE_MAX + 2]), Unreadable::Line);
        assert_eq!(refused(b"PING \"x\r\n"), Unreadable::Quotes);
        assert_eq!(refused(b"PING \"x\"y\r\n"), Unreadable::Quotes);
        assert_eq!(Unreadable::NoWord(b'\n').to_string(), "Protocol error: expected '$', got '\\n'");
    }

    #[test]
    fn quotes_on_a_line_are_those_of_redis() {
        let line = br#"SET "a b\n\x41\"" 'it\'s \n' plain"#;
        let expected = words(&[b"SET", b"a b\nA\"", b"it's \\n", b"plain"]);
        assert_eq!(read(&[&line[..], b"\r\n"].concat(), 3).unwrap(), [expected]);
    }
}
