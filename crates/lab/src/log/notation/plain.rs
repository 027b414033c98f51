//! Our own notation: `{client} - {user} [{time}] "{request}" {status} {bytes}`.

use super::push_text;
use crate::log::field::{Field, Unit};
use crate::log::program::Piece;

/// The names of the fields.
const NAMES: &[(&str, Field)] = &[
    ("-", Field::Other),
    ("time", Field::Time),
    ("client", Field::Client),
    ("forwarded-client", Field::ForwardedClient),
    ("forwarded", Field::Forwarded),
    ("user", Field::User),
    ("request", Field::Request),
    ("method", Field::Method),
    ("target", Field::Target),
    ("query", Field::Query),
    ("protocol", Field::Protocol),
    ("status", Field::Status),
    ("bytes", Field::Bytes),
    ("referer", Field::Referer),
    ("agent", Field::Agent),
    ("host", Field::Host),
    ("duration-s", Field::Duration(Unit::S)),
    ("duration-ms", Field::Duration(Unit::Ms)),
    ("duration-us", Field::Duration(Unit::Us)),
    ("timers", Field::Timers),
];

/// Reads the notation; what is wrong is said in words.
pub(crate) fn plain(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let field = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        match field {
            Some((name, behind)) => {
                let known = NAMES.iter().find(|(known, _)| *known == name);
                let names = || NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                let (_, field) = known.ok_or_else(|| format!("there is no field `{name}`; there are {}", names()))?;
                pieces.push(Piece::Field(*field));
                rest = behind;
            }
            None => {
                push_text(&mut pieces, character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    Ok(pieces)
}
