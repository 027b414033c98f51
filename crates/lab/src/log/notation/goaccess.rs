//! goaccess's notation: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`.

use super::push_text;
use crate::log::field::{Field, Unit};
use crate::log::program::Piece;

/// Does the text have what only this notation has?
pub(crate) fn is_likely(text: &str) -> bool {
    ["%^", "%d", "%x"].iter().any(|mark| text.contains(mark)) && !text.contains("%{")
}

/// Reads the notation; what is wrong is said in words.
pub(crate) fn goaccess(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('t') => push_text(&mut pieces, '\t'),
                Some(other) => push_text(&mut pieces, other),
                None => push_text(&mut pieces, '\\'),
            },
            '%' => {
                let letter = characters.next().ok_or("a `%` stands at the end")?;
                match letter {
                    '%' => push_text(&mut pieces, '%'),
                    _ => pieces.push(Piece::Field(specifier(letter)?)),
                }
            }
            '~' => return Err("`~` of goaccess's notation is not understood here".to_owned()),
            _ => push_text(&mut pieces, character),
        }
    }
    Ok(pieces)
}

fn specifier(letter: char) -> Result<Field, String> {
    Ok(match letter {
        'x' => Field::Time,
        'd' => Field::Date,
        't' => Field::TimeOfDay,
        'h' => Field::Client,
        'e' => Field::User,
        'v' => Field::Host,
        'r' => Field::Request,
        'm' => Field::Method,
        'U' => Field::Target,
        'q' => Field::Query,
        'H' => Field::Protocol,
        's' => Field::Status,
        'b' => Field::Bytes,
        'R' => Field::Referer,
        'u' => Field::Agent,
        'T' => Field::Duration(Unit::S),
        'L' => Field::Duration(Unit::Ms),
        'D' => Field::Duration(Unit::Us),
        'n' => Field::Duration(Unit::Ns),
        '^' | 'C' | 'K' | 'k' | 'M' => Field::Other,
        other => return Err(format!("goaccess's notation has no `%{other}`")),
    })
}
