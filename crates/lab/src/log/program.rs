//! A format of text: fields, and the text between them.
//!
//! Whatever notation a format is written in, it becomes a list of steps, and reading a line is walking along it once.
//! A field ends where the text behind it begins, and what that text is decides how the end is looked for.

use crate::log::field::{Field, Values};
use crate::log::near::near;
use crate::log::stamp::Clock;
use crate::log::{Escapes, Fault, Line};

/// How far into a line the prefix of a syslog is looked for, in bytes.
const SYSLOG_BYTES_MAX: usize = 160;

/// A piece of a format, as the notations give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Field(Field),
}

/// One step along a line: a field, and the text behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    field: Field,
    stop: Stop,
    text: Text,
}

/// A text that a line must have at a place. Most are a byte or three, which are compared as one number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text {
    text: Box<str>,
    /// The first eight bytes of the text, and ones where it has any.
    word: u64,
    mask: u64,
}

impl Text {
    fn new(text: &str) -> Self {
        let mut word = [0; 8];
        let count = text.len().min(8);
        word[..count].copy_from_slice(&text.as_bytes()[..count]);
        let mask = if count == 8 { u64::MAX } else { (1 << (8 * count)) - 1 };
        Self { text: text.into(), word: u64::from_le_bytes(word), mask }
    }

    /// What stands behind this text, if a line goes on with it.
    #[inline]
    fn behind<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        match rest.first_chunk::<8>() {
            Some(eight) if self.text.len() <= 8 => {
                (u64::from_le_bytes(*eight) & self.mask == self.word).then(|| &rest[self.text.len()..])
            }
            _ => rest.strip_prefix(self.text.as_bytes()),
        }
    }
}

/// Where a field ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Before this byte.
    Byte(u8),
    /// Before a quotation mark that no backslash escapes.
    Quote,
    /// Before the text behind it, whole: nothing is escaped, and values have quotation marks in them.
    Text,
    /// Before ` [` and a digit: names of users have spaces.
    Bracket,
    /// Before a space, or at the end of the line.
    Word,
}

/// A format of text, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What a line begins with.
    head: Text,
    steps: Vec<Step>,
    /// So many fields a line must have; it may end behind them.
    required: usize,
    /// Behind so many fields it is known who asked when, and what came of it: a text in quotes that is not closed there
    /// ends with the line.
    known: usize,
    /// May the prefix of a syslog stand before it?
    has_prefix: bool,
    /// How its values are escaped.
    escapes: Escapes,
}

impl Program {
    /// Compiles the pieces, all of which a line must have.
    pub(crate) fn new(pieces: Vec<Piece>) -> Self {
        let pieces = with_joined_time(joined(pieces));
        let text = |at: usize| match pieces.get(at) {
            Some(Piece::Text(text)) => text.as_str(),
            _ => "",
        };
        let mut steps = Vec::with_capacity(pieces.len() / 2 + 1);
        for (at, piece) in pieces.iter().enumerate() {
            if let Piece::Field(field) = piece {
                let before = at.checked_sub(1).map_or("", text);
                steps.push(Step {
                    field: *field,
                    stop: stop(*field, before, text(at + 1)),
                    text: Text::new(text(at + 1)),
                });
            }
        }
        let known = steps.iter().rposition(|step| is_needed(step.field)).map_or(0, |at| at + 1);
        Self {
            head: Text::new(text(0)),
            required: steps.len(),
            known,
            steps,
            has_prefix: false,
            escapes: Escapes::Backslash,
        }
    }

    /// The same; a line may end behind its first `fields` fields.
    pub(crate) fn with_required(self, fields: usize) -> Self {
        Self { required: fields, ..self }
    }

    /// The same; the prefix of a syslog may stand before it.
    pub(crate) fn with_prefix(self) -> Self {
        Self { has_prefix: true, ..self }
    }

    /// The same; quotation marks are not escaped, and fields end where all of the text behind them stands.
    pub(crate) fn with_bare_quotes(mut self) -> Self {
        for step in self.steps.iter_mut().filter(|step| step.stop == Stop::Quote) {
            step.stop = Stop::Text;
        }
        Self { escapes: Escapes::Nothing, ..self }
    }

    /// Does it have a field of this kind?
    pub(crate) fn has(&self, kind: impl Fn(Field) -> bool) -> bool {
        self.steps.iter().any(|step| kind(step.field))
    }

    /// How the values of its lines are escaped.
    pub(crate) const fn escapes(&self) -> Escapes {
        self.escapes
    }

    /// Reads a line into `out`, which is a blank one.
    #[inline]
    pub(crate) fn run<'a>(&'a self, line: &'a [u8], clock: &mut Clock, out: &mut Line<'a>) -> Result<(), Fault<'a>> {
        let mut rest = if self.has_prefix { without_syslog(line) } else { line };
        rest = self.head.behind(rest).ok_or(Fault::new(&self.head.text, rest))?;
        let mut values = Values::new(out);
        for (at, Step { field, stop, text }) in self.steps.iter().enumerate() {
            let Some(end) = stop.end(*field, text, rest) else {
                // The line was cut off here.
                if *stop == Stop::Quote && at >= self.known {
                    values.take(*field, rest, clock)?;
                    break;
                }
                return Err(Fault::new(name(*field), rest));
            };
            values.take(*field, &rest[..end], clock)?;
            match text.behind(&rest[end..]) {
                Some(behind) => rest = behind,
                None if at + 1 >= self.required => break,
                None => return Err(Fault::new(&text.text, &rest[end..])),
            }
        }
        values.finish(clock)
    }
}

impl Stop {
    /// How long the field is that begins here.
    #[inline]
    fn end(self, field: Field, text: &Text, rest: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(b' ') if field == Field::Time => time_before_space(rest),
            Self::Byte(byte) => near(byte, rest),
            Self::Quote => quote(rest),
            Self::Text => memchr::memmem::find(rest, text.text.as_bytes()),
            Self::Bracket => {
                let opens =
                    |at: &usize| rest[..*at].ends_with(b" ") && rest.get(at + 1).is_some_and(u8::is_ascii_digit);
                let first = near(b'[', rest)?;
                if opens(&first) {
                    return Some(first - 1);
                }
                memchr::memchr_iter(b'[', rest).find(opens).map(|at| at - 1)
            }
            Self::Word if field == Field::Time => Some(time_before_space(rest).unwrap_or(rest.len())),
            Self::Word => Some(memchr::memchr(b' ', rest).unwrap_or(rest.len())),
        }
    }
}

/// The place of the first quotation mark that is not escaped. An escaped backslash before it escapes nothing.
#[inline]
fn quote(rest: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', rest).find(|at| {
        let backslashes = rest[..*at].iter().rev().take_while(|byte| **byte == b'\\').count();
        backslashes % 2 == 0
    })
}

/// A time that is not in brackets can have a space before its zone, or between day and hour.
fn time_before_space(rest: &[u8]) -> Option<usize> {
    let mut spaces = memchr::memchr_iter(b' ', rest);
    let first = spaces.next()?;
    let goes_on = match rest.get(first + 1..)? {
        [b'+' | b'-', zone @ ..] => zone.len() >= 4 && zone[..4].iter().all(u8::is_ascii_digit),
        [a, b, b':', ..] => first == 10 && a.is_ascii_digit() && b.is_ascii_digit(),
        _ => false,
    };
    if goes_on { Some(spaces.next().unwrap_or(rest.len())) } else { Some(first) }
}

/// The line behind `<134>Nov 29 15:04:28 lb haproxy[123]: `, if it begins like that.
fn without_syslog(line: &[u8]) -> &[u8] {
    let head = &line[..line.len().min(SYSLOG_BYTES_MAX)];
    let is_prefix = matches!(head, [b'<', b'0'..=b'9', ..])
        || matches!(head, [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..])
        || matches!(head, [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..]);
    match memchr::memmem::find(head, b"]: ") {
        Some(at) if is_prefix => &line[at + 3..],
        _ => line,
    }
}

/// Where a field ends that stands between these texts.
fn stop(field: Field, before: &str, behind: &str) -> Stop {
    match behind.as_bytes() {
        [b'"', ..] if before.ends_with('"') => Stop::Quote,
        [b' ', b'[', ..] if field == Field::User => Stop::Bracket,
        [byte, ..] => Stop::Byte(*byte),
        [] => Stop::Word,
    }
}

/// Must a line have it to be a request?
const fn is_needed(field: Field) -> bool {
    matches!(
        field,
        Field::Time
            | Field::Date
            | Field::TimeOfDay
            | Field::Client
            | Field::ForwardedClient
            | Field::Request
            | Field::Target
            | Field::Status
    )
}

/// Texts that follow each other become one, and empty ones none.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (out.last_mut(), piece) {
            (_, Piece::Text(text)) if text.is_empty() => {}
            (Some(Piece::Text(last)), Piece::Text(text)) => last.push_str(&text),
            (_, piece) => out.push(piece),
        }
    }
    out
}

/// `[date:time other]` is one time with its zone.
fn with_joined_time(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let is = |piece: &Piece, text: &str| matches!(piece, Piece::Text(found) if found == text);
    let found = pieces.windows(5).position(|five| {
        five[0] == Piece::Field(Field::Date)
            && is(&five[1], ":")
            && five[2] == Piece::Field(Field::TimeOfDay)
            && is(&five[3], " ")
            && five[4] == Piece::Field(Field::Other)
    });
    if let Some(at) = found {
        pieces.splice(at..at + 5, [Piece::Field(Field::Time)]);
    }
    pieces
}

/// What messages call a field.
const fn name(field: Field) -> &'static str {
    match field {
        Field::Time | Field::Date | Field::TimeOfDay => "time",
        Field::Client | Field::ForwardedClient => "client address",
        Field::Request => "request",
        Field::Status => "status",
        Field::Bytes => "size in bytes",
        Field::Referer => "referer",
        Field::Agent => "user agent",
        _ => "another field",
    }
}
