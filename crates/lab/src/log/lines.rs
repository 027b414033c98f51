//! Lines out of bytes.

use std::io::{self, Read};

/// The longest line that is read, in bytes; a longer one is passed over, and counted.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// What is kept of a line that is passed over, in bytes.
const PASSED_BYTES: usize = 80;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextLine<'a> {
    /// A line, without its end: `\n`, or `\r\n`.
    Line(&'a [u8]),
    /// The beginning of a line that is longer than [`LINE_BYTES_MAX`].
    TooLong(&'a [u8]),
    /// There are no more.
    End,
}

/// The lines of a source.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// What of the buffer is filled and not yet given out.
    start: usize,
    end: usize,
    is_at_end: bool,
    /// Why nothing more can be read; told once what was read before is given out.
    failed: Option<io::Error>,
    /// The beginning of the last line that was too long.
    passed: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// The lines of `source`.
    pub fn new(source: R) -> Self {
        let buffer = vec![0; READ_BYTES];
        Self { source, buffer, start: 0, end: 0, is_at_end: false, failed: None, passed: Vec::new() }
    }

    /// The next line. The last one need not have an end.
    ///
    /// # Errors
    /// The source cannot be read on. All lines before were given out; what stands of the last one is not.
    #[inline]
    pub fn next_line(&mut self) -> io::Result<NextLine<'_>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let from = self.start;
                self.start += searched + at + 1;
                return Ok(NextLine::Line(without_return(&self.buffer[from..self.start - 1])));
            }
            searched = self.end - self.start;
            if searched > LINE_BYTES_MAX {
                return self.pass_over();
            }
            if self.is_at_end {
                let from = std::mem::replace(&mut self.start, self.end);
                let line = without_return(&self.buffer[from..self.end]);
                return Ok(if searched == 0 { NextLine::End } else { NextLine::Line(line) });
            }
            self.fill()?;
        }
    }

    /// The first lines, at most about so many, without taking them. A last one that is not read to its end is left out,
    /// unless it is the only one.
    ///
    /// # Errors
    /// The source cannot be read at all.
    pub fn first(&mut self, count: usize) -> io::Result<impl Iterator<Item = &[u8]> + Clone + use<'_, R>> {
        let ends = |buffer: &[u8]| memchr::memchr_iter(b'\n', buffer).count();
        while self.end < READ_BYTES && !self.is_at_end && ends(&self.buffer[self.start..self.end]) < count {
            match self.fill() {
                Err(error) if self.end == self.start => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
                Ok(()) => {}
            }
        }
        let seen = &self.buffer[self.start..self.end];
        let whole = if self.is_at_end { None } else { memchr::memrchr(b'\n', seen) };
        Ok(seen[..whole.unwrap_or(seen.len())].split(|byte| *byte == b'\n').map(without_return))
    }

    fn fill(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Passes over the rest of a line that is too long; what is kept of it is its beginning.
    fn pass_over(&mut self) -> io::Result<NextLine<'_>> {
        self.passed.clear();
        self.passed.extend_from_slice(&self.buffer[self.start..self.start + PASSED_BYTES]);
        loop {
            self.start = self.end;
            self.fill()?;
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                break;
            }
            if self.is_at_end {
                self.start = self.end;
                break;
            }
        }
        Ok(NextLine::TooLong(&self.passed))
    }
}

#[inline]
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a byte or two at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(2).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(source: impl Read) -> Vec<String> {
        let mut lines = Lines::new(source);
        let mut out = Vec::new();
        loop {
            match lines.next_line().unwrap() {
                NextLine::Line(line) => out.push(String::from_utf8(line.to_vec()).unwrap()),
                NextLine::TooLong(start) => out.push(format!("too long, {} bytes shown", start.len())),
                NextLine::End => return out,
            }
        }
    }

    #[test]
    fn lines_end_as_they_will() {
        for text in [&b"a\nbc\r\n\nlast"[..], b"a\nbc\n\nlast\n"] {
            assert_eq!(all(text), ["a", "bc", "", "last"]);
            assert_eq!(all(Slowly(text)), ["a", "bc", "", "last"]);
        }
        assert_eq!(all(&b""[..]), [""; 0]);
        assert_eq!(all(&b"\n"[..]), [""]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_those_behind_it_are_read() {
        let mut text = vec![b'x'; 10 << 20];
        text.extend_from_slice(b"\nnext\n");
        text.extend_from_slice(&vec![b'y'; LINE_BYTES_MAX]);
        let lines = all(&text[..]);
        assert_eq!(lines[..2], ["too long, 80 bytes shown", "next"]);
        assert_eq!(lines[2].len(), LINE_BYTES_MAX);
        text.push(b'y');
        text.push(b'y');
        assert_eq!(all(&text[..])[2], "too long, 80 bytes shown");
    }

    #[test]
    fn the_first_lines_are_seen_without_being_taken() {
        let mut lines = Lines::new(Slowly(b"a\r\nb"));
        assert_eq!(lines.first(200).unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(lines.next_line().unwrap(), NextLine::Line(b"a"));
        // Of a slow source no more is waited for than is asked for.
        let mut lines = Lines::new(Slowly(b"a\nb\nc\nd\n"));
        assert_eq!(lines.first(2).unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
    }

    #[test]
    fn what_was_read_before_a_failure_is_given_out() {
        struct Breaks(bool);
        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                buffer[..4].copy_from_slice(b"a\nb\n");
                Ok(4)
            }
        }
        let mut lines = Lines::new(Breaks(false));
        assert_eq!(lines.first(200).unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
        for line in [b"a", b"b"] {
            assert_eq!(lines.next_line().unwrap(), NextLine::Line(line));
        }
        assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(Lines::new(Breaks(true)).first(200).is_err());
    }
}
