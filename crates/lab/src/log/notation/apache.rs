//! Apache's notation: `%h %l %u %t "%r" %>s %b`.

use super::{push_text, request_field};
use crate::log::field::{Field, Unit};
use crate::log::program::Piece;

/// Reads the notation; what is wrong is said in words.
pub(crate) fn apache(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match (character, rest.chars().next()) {
            // As the configuration of a server quotes them.
            ('\\', Some(escaped @ ('"' | '\\' | 't'))) => {
                push_text(&mut pieces, if escaped == 't' { '\t' } else { escaped });
                rest = &rest[1..];
            }
            ('%', Some('%')) => {
                push_text(&mut pieces, '%');
                rest = &rest[1..];
            }
            ('%', _) => rest = directive(rest, &mut pieces)?,
            _ => push_text(&mut pieces, character),
        }
    }
    Ok(pieces)
}

/// Reads what stands behind a `%`: conditions, a name in braces, a letter.
fn directive<'a>(text: &'a str, pieces: &mut Vec<Piece>) -> Result<&'a str, String> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
    let (name, rest) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or("a `{` is not closed")?,
        None => ("", rest),
    };
    let rest = rest.trim_start_matches(['<', '>']);
    let mut characters = rest.chars();
    let letter = characters.next().ok_or("a `%` stands at the end")?;
    if !letter.is_ascii_alphabetic() {
        return Err(format!("`%{letter}` is no directive; a `%` itself is written `%%`"));
    }
    let field = match (letter, name) {
        ('t', "") => {
            let bracketed = [Piece::Text("[".to_owned()), Piece::Field(Field::Time), Piece::Text("]".to_owned())];
            pieces.extend(bracketed);
            return Ok(characters.as_str());
        }
        ('h' | 'a', _) => Field::Client,
        ('u', _) => Field::User,
        ('t', _) => Field::Time,
        ('r', _) => Field::Request,
        ('m', _) => Field::Method,
        ('U', _) => Field::Target,
        ('H', _) => Field::Protocol,
        ('s', _) => Field::Status,
        ('b' | 'B' | 'O', _) => Field::Bytes,
        ('v' | 'V', _) => Field::Host,
        ('D', _) | ('T', "us") => Field::Duration(Unit::Us),
        ('T', "ms") => Field::Duration(Unit::Ms),
        ('T', _) => Field::Duration(Unit::S),
        ('i', name) => request_field(&name.to_ascii_lowercase()),
        _ => Field::Other,
    };
    pieces.push(Piece::Field(field));
    Ok(characters.as_str())
}
