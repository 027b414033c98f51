//! The words of an expression, and where each stands.

use super::CelError;

/// A word of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Name(&'a str),
    Text(String),
    Whole(i64),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// A word, and the byte at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) word: Word<'a>,
}

/// The signs that are read; of two that begin alike the longer one stands first.
const SIGNS: [&str; 17] = ["==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "-", "(", ")", "[", "]", ",", ".", ":"];

/// What CEL has beyond that, and what it is called.
const REFUSED: [(&str, &str); 8] = [
    ("//", "a comment"),
    ("+", "arithmetic"),
    ("*", "arithmetic"),
    ("/", "arithmetic"),
    ("%", "arithmetic"),
    ("?", "a choice by `?`"),
    ("{", "a map"),
    ("`", "a name in backquotes"),
];

/// The words of `text`.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, CelError> {
    let (mut all, mut at) = (Vec::new(), 0);
    loop {
        let rest = text[at..].trim_start();
        at = text.len() - rest.len();
        if rest.is_empty() {
            return Ok(all);
        }
        let (word, bytes) = word(rest, at)?;
        all.push(Token { at, word });
        at += bytes;
    }
}

/// The word that `rest` begins with, and its length in bytes.
fn word(rest: &str, at: usize) -> Result<(Word<'_>, usize), CelError> {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '\'' | '"' => text(rest, first, at),
        '0'..='9' => whole(rest, at),
        'a'..='z' | 'A'..='Z' | '_' => name(rest, at),
        _ => {
            if let Some((_, what)) = REFUSED.iter().find(|(sign, _)| rest.starts_with(sign)) {
                return Err(CelError::refused(at, what));
            }
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            sign.map(|sign| (Word::Sign(sign), sign.len())).ok_or_else(|| match first {
                '=' => CelError::new(at, "`=` compares nothing; write `==`"),
                '&' | '|' => CelError::new(at, format_args!("write `{first}{first}`")),
                _ => CelError::new(at, format_args!("`{}` is no sign of CEL", first.escape_debug())),
            })
        }
    }
}

fn name(rest: &str, at: usize) -> Result<(Word<'_>, usize), CelError> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let bytes = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
    if rest[bytes..].starts_with(['\'', '"']) && bytes <= 2 {
        return Err(CelError::refused(at, "a text with letters in front of its quotes"));
    }
    Ok((Word::Name(&rest[..bytes]), bytes))
}

fn whole(rest: &str, at: usize) -> Result<(Word<'_>, usize), CelError> {
    let bytes = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let behind = &rest[bytes..];
    if behind.starts_with(|c: char| c.is_ascii_alphabetic())
        || behind.strip_prefix('.').is_some_and(|fraction| fraction.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Err(CelError::refused(at, "a number that is no plain whole one"));
    }
    let number = rest[..bytes].parse().map_err(|_| CelError::new(at, "the number is too large"))?;
    Ok((Word::Whole(number), bytes))
}

/// A text in quotes; `quote` is the first of them.
fn text(rest: &str, quote: char, at: usize) -> Result<(Word<'_>, usize), CelError> {
    if rest[1..].starts_with([quote; 2].iter().collect::<String>().as_str()) {
        return Err(CelError::refused(at, "a text in triple quotes"));
    }
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => text.push(match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(plain @ ('\\' | '\'' | '"')) => plain,
                _ => return Err(CelError::refused(at + i, "an escape other than \\\\, \\', \\\", \\n, \\r and \\t")),
            }),
            '\n' | '\r' => break,
            _ if c == quote => return Ok((Word::Text(text), i + 1)),
            _ => text.push(c),
        }
    }
    Err(CelError::new(at, "the text does not end; a quote is missing"))
}
