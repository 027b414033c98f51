//! Conditions as people write them: comparisons, joined by `and`, `or`, `not` and parentheses.
//!
//! ```text
//! condition = all { "or" all }
//! all       = one { "and" one }
//! one       = "not" one | "(" condition ")" | name operator value
//! operator  = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~"
//! value     = a word without spaces, parentheses and quotes, or a text in quotes
//! ```
//!
//! What a name is, and what it can be compared with, is decided by whoever asks. A mistake points at its column.

use std::fmt;

/// The deepest nesting of parentheses and `not`.
const DEPTH_MAX: usize = 32;

/// A condition over comparisons of type `C`.
#[derive(Clone, Debug)]
pub(crate) enum Condition<C> {
    Is(C),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl<C> Condition<C> {
    /// Does it hold, if `is` says whether a comparison does?
    pub(crate) fn holds(&self, is: &mut impl FnMut(&C) -> bool) -> bool {
        match self {
            Self::Is(comparison) => is(comparison),
            Self::Not(inner) => !inner.holds(is),
            Self::All(all) => all.iter().all(|one| one.holds(is)),
            Self::Any(any) => any.iter().any(|one| one.holds(is)),
        }
    }
}

/// How two things are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
    Matches,
    MatchesNot,
}

impl Operator {
    const ALL: [(&'static str, Self); 9] = [
        ("==", Self::Is),
        ("!=", Self::IsNot),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("!~", Self::MatchesNot),
        ("=", Self::Is),
        ("<", Self::Below),
        (">", Self::Above),
        ("~", Self::Matches),
    ];

    /// Does it hold between two things that stand in this order? It is none of the two that match.
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Is | Self::Matches => order.is_eq(),
            Self::IsNot | Self::MatchesNot => order.is_ne(),
            Self::Below => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Above => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// A part of the text, and where it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    at: usize,
}

/// A condition cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    text: String,
    /// From 1, in characters.
    column: usize,
    message: String,
}

impl ConditionError {
    /// Where the mistake is, in characters from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, column, message } = self;
        write!(f, "column {column}: {message}\n  {text}\n  {:>column$}", "^")
    }
}

impl std::error::Error for ConditionError {}

/// Reads a condition; `compare` makes a comparison, or says which word is wrong and why.
pub(crate) fn read<'a, C>(
    text: &'a str,
    compare: impl Fn(Word<'a>, Operator, Word<'a>) -> Result<C, (Word<'a>, String)>,
) -> Result<Condition<C>, ConditionError> {
    let mut reader = Reader { text, at: 0, compare };
    let condition = reader.any(0).and_then(|condition| match reader.here() {
        Word { at, .. } if at == text.len() => Ok(condition),
        here => {
            let rest = &text[here.at..];
            let much = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            Err((here, format!("`{much}` is too much here; expected `and` or `or`")))
        }
    });
    condition.map_err(|(word, message)| ConditionError {
        text: text.to_owned(),
        column: text[..word.at].chars().count() + 1,
        message,
    })
}

struct Reader<'a, F> {
    text: &'a str,
    at: usize,
    compare: F,
}

type Read<'a, T> = Result<T, (Word<'a>, String)>;

impl<'a, C, F> Reader<'a, F>
where
    F: Fn(Word<'a>, Operator, Word<'a>) -> Result<C, (Word<'a>, String)>,
{
    fn any(&mut self, depth: usize) -> Read<'a, Condition<C>> {
        let mut any = vec![self.all(depth)?];
        while self.takes("or") {
            any.push(self.all(depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Any(any) })
    }

    fn all(&mut self, depth: usize) -> Read<'a, Condition<C>> {
        let mut all = vec![self.one(depth)?];
        while self.takes("and") {
            all.push(self.one(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::All(all) })
    }

    fn one(&mut self, depth: usize) -> Read<'a, Condition<C>> {
        if depth > DEPTH_MAX {
            return Err((self.here(), format!("nested deeper than {DEPTH_MAX}")));
        }
        if self.takes("not") {
            return Ok(Condition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes("(") {
            let inner = self.any(depth + 1)?;
            return if self.takes(")") { Ok(inner) } else { Err((self.here(), "expected `)`".to_owned())) };
        }
        let name = self.word()?;
        if name.text.is_empty() {
            return Err((name, "a comparison is missing".to_owned()));
        }
        let operator = self.operator()?;
        let value = self.word_until(&['(', ')', '"', '\''])?;
        if value.text.is_empty() && !self.text[value.at..].starts_with(['"', '\'']) {
            return Err((value, "a value is missing".to_owned()));
        }
        (self.compare)(name, operator, value).map(Condition::Is)
    }

    fn here(&mut self) -> Word<'a> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        Word { text: "", at: self.at }
    }

    fn operator(&mut self) -> Read<'a, Operator> {
        let here = self.here();
        let rest = &self.text[self.at..];
        let found = Operator::ALL.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (sign, operator) = found.ok_or((here, "expected one of = != < <= > >= ~ !~".to_owned()))?;
        self.at += sign.len();
        Ok(operator)
    }

    /// Is this the next word? Then it is taken.
    fn takes(&mut self, word: &str) -> bool {
        let before = self.here().at;
        let is_it = match word {
            "(" | ")" => {
                let is_it = self.text[before..].starts_with(word);
                self.at += usize::from(is_it);
                return is_it;
            }
            _ => self.word().is_ok_and(|found| found.text.eq_ignore_ascii_case(word)),
        };
        if !is_it {
            self.at = before;
        }
        is_it
    }

    /// The next word; a text in quotes is one. Empty at the end, and before what is no word.
    fn word(&mut self) -> Read<'a, Word<'a>> {
        self.word_until(&['=', '!', '<', '>', '~', '(', ')', '"', '\''])
    }

    /// The next word, which ends at a space or before one of these.
    fn word_until(&mut self, ends: &[char]) -> Read<'a, Word<'a>> {
        let at = self.here().at;
        let rest = &self.text[at..];
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        if let Some(quote) = quote {
            let end = rest[1..].find(quote).ok_or((Word { text: "", at }, format!("this {quote} is not closed")))?;
            self.at = at + end + 2;
            return Ok(Word { text: &rest[1..=end], at });
        }
        let end = rest.find(|c: char| c.is_whitespace() || ends.contains(&c)).unwrap_or(rest.len());
        self.at = at + end;
        Ok(Word { text: &rest[..end], at })
    }
}
