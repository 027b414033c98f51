//! Commands as they come: arrays of texts, or words on a line.
//!
//! What is announced is believed only as far as it has come: a header that promises two thousand million elements
//! costs as much as any other line. Whatever a command is made of has a bound, and what is beyond it ends the
//! connection with a reply that says so, since nobody knows where the next command would begin.

use std::fmt;
use std::ops::Range;

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

/// Words of which a client that rests keeps the room.
const WORDS_KEPT: usize = 16;

/// The words of a command, its name first, where they stand. There is none if a client sent nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    places: &'a [Range<usize>],
    text: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        // The places were found in this text.
        self.places.iter().map(move |place| self.text.get(place.clone()).unwrap_or_default())
    }
}

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

/// Reads commands from bytes as they come. It goes on where it was, so nothing is looked at twice, and copies nothing
/// but words in quotes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Where the words are of the command that is under way, from its first byte on.
    places: Vec<Range<usize>>,
    /// How many are still to come.
    missing: usize,
    /// The length of the word that is under way.
    length: Option<usize>,
    /// How many bytes of the command were read.
    read: usize,
    /// How many bytes behind them were looked at already, of a line that has not ended.
    looked: usize,
    /// The bytes that the command may still have.
    room: usize,
    /// The words of a line, out of their quotes.
    line_text: Vec<u8>,
    /// Was the command handed out, so that another begins?
    is_handed_out: bool,
}

impl Reader {
    /// The command with which these bytes begin, and how many of them it takes; `None` if more must come first. Who calls
    /// again hands in the same bytes and what has come behind them, or what follows the command.
    ///
    /// # Errors
    /// What has come is no command.
    pub(super) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        bytes_max: usize,
    ) -> Result<Option<(Words<'a>, usize)>, Unreadable> {
        self.begin();
        let is_array = match bytes.first() {
            None => return Ok(None),
            Some(byte) => *byte == b'*',
        };
        let is_whole = match is_array {
            true => self.array(bytes, bytes_max)?,
            false => self.words_of_line(bytes, bytes_max)?,
        };
        if !is_whole {
            return Ok(None);
        }
        self.is_handed_out = true;
        let text = if is_array { bytes } else { &self.line_text };
        Ok(Some((Words { places: &self.places, text }, self.read)))
    }

    /// Is no command under way?
    pub(super) fn is_between(&self) -> bool {
        self.is_handed_out || (self.read == 0 && self.looked == 0)
    }

    /// Forgets the command that was handed out.
    fn begin(&mut self) {
        if !self.is_handed_out {
            return;
        }
        self.places.clear();
        if self.places.capacity() > WORDS_KEPT {
            self.places = Vec::new();
        }
        if !self.line_text.is_empty() {
            self.line_text = Vec::new();
        }
        (self.read, self.is_handed_out) = (0, false);
    }

    /// Reads an array of words; whether it is whole.
    fn array(&mut self, bytes: &[u8], bytes_max: usize) -> Result<bool, Unreadable> {
        if self.read == 0 {
            let Some(count) = self.number(bytes, Unreadable::Count)? else { return Ok(false) };
            // Redis takes an array of nothing, or of less, for nothing.
            self.missing = bounded(count.max(0), WORDS_MAX).ok_or(Unreadable::Count)?;
            self.room = bytes_max;
        }
        while self.missing > 0 {
            match self.word(bytes)? {
                Some(place) => self.places.push(place),
                None => return Ok(false),
            }
            self.missing -= 1;
        }
        Ok(true)
    }

    /// One word of an array.
    fn word(&mut self, bytes: &[u8]) -> Result<Option<Range<usize>>, Unreadable> {
        let length = match (self.length, bytes.get(self.read)) {
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
        if bytes.len() - self.read < length + 2 {
            return Ok(None);
        }
        self.length = None;
        let place = self.read..self.read + length;
        self.read += length + 2;
        Ok(Some(place))
    }

    /// The number in a header.
    fn number(&mut self, bytes: &[u8], otherwise: Unreadable) -> Result<Option<i64>, Unreadable> {
        let Some(line) = self.line(bytes, HEADER_MAX, otherwise)? else { return Ok(None) };
        let number = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        number.map(Some).ok_or(otherwise)
    }

    /// Reads the words of a line; whether it has ended.
    fn words_of_line(&mut self, bytes: &[u8], bytes_max: usize) -> Result<bool, Unreadable> {
        let Some(line) = self.line(bytes, LINE_MAX.min(bytes_max), Unreadable::Line)? else { return Ok(false) };
        split(line, &mut self.line_text, &mut self.places)?;
        Ok(true)
    }

    /// A line, without its end.
    fn line<'b>(
        &mut self,
        bytes: &'b [u8],
        most: usize,
        otherwise: Unreadable,
    ) -> Result<Option<&'b [u8]>, Unreadable> {
        let rest = bytes.get(self.read..).unwrap_or_default();
        match memchr(b'\n', rest.get(self.looked..).unwrap_or_default()) {
            Some(i) if self.looked + i <= most => {
                let end = std::mem::take(&mut self.looked) + i;
                self.read += end + 1;
                let line = rest.get(..end).unwrap_or_default();
                Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
            }
            Some(_) => Err(otherwise),
            None if rest.len() > most => Err(otherwise),
            None => {
                self.looked = rest.len();
                Ok(None)
            }
        }
    }
}

fn bounded(number: i64, most: usize) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number <= most)
}

/// Puts the words of a line into `text`, and where each is into `places`. A word may stand in quotes as Redis takes them.
fn split(line: &[u8], text: &mut Vec<u8>, places: &mut Vec<Range<usize>>) -> Result<(), Unreadable> {
    let mut rest = line.trim_ascii_start();
    while let Some(first) = rest.first() {
        if places.len() == WORDS_MAX {
            return Err(Unreadable::Count);
        }
        let begin = text.len();
        let taken = match first {
            quote @ (b'"' | b'\'') => {
                let taken = 1 + quoted(&rest[1..], *quote, text).ok_or(Unreadable::Quotes)?;
                if rest.get(taken).is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    return Err(Unreadable::Quotes);
                }
                taken
            }
            _ => {
                let length = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                text.extend_from_slice(&rest[..length]);
                length
            }
        };
        places.push(begin..text.len());
        rest = rest[taken..].trim_ascii_start();
    }
    Ok(())
}

/// Adds what stands between quotes to `word`, and says how many bytes that took with the closing one.
fn quoted(text: &[u8], quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match (*text.get(at)?, text.get(at + 1)) {
            (byte, _) if byte == quote => return Some(at + 1),
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

    type Command = Vec<Vec<u8>>;

    /// All commands of these bytes, which come in pieces of this size; those of nothing are left out.
    fn read(bytes: &[u8], piece: usize) -> Result<Vec<Command>, Unreadable> {
        let (mut reader, mut buffer, mut commands) = (Reader::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            let mut taken = 0;
            while let Some((words, used)) = reader.next(&buffer[taken..], BYTES_MAX)? {
                commands.extend(Some(words.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()).filter(|it| !it.is_empty()));
                taken += used;
            }
            buffer.drain(..taken);
        }
        Ok(commands)
    }

    fn words(texts: &[&[u8]]) -> Command {
        texts.iter().map(|text| text.to_vec()).collect()
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
        assert_eq!(reader.next(b"*2147483648\r\n", BYTES_MAX).unwrap_err(), Unreadable::Count);
        let mut reader = Reader::default();
        assert!(reader.next(b"*1024\r\n$262144\r\n", BYTES_MAX).unwrap().is_none());
        assert_eq!(reader.places.capacity(), 0);
    }

    #[test]
    fn a_client_that_rests_keeps_little() {
        let mut reader = Reader::default();
        let long =
            b"*1024\r\n$1\r\nx\r\n".iter().chain(b"$0\r\n\r\n".repeat(1_023).iter()).copied().collect::<Vec<_>>();
        assert_eq!(
            reader.next(&long, BYTES_MAX).unwrap().map(|(words, used)| (words.iter().count(), used)),
            Some((1_024, long.len()))
        );
        assert!(reader.next(b"", BYTES_MAX).unwrap().is_none());
        assert!(reader.places.capacity() <= WORDS_KEPT && reader.is_between());
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
