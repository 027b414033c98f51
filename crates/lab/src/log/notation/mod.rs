//! The notations in which a format of text can be written: ours, nginx's, Apache's and goaccess's.
//!
//! Each becomes the same pieces, a list of fields and texts.

mod apache;
mod goaccess;
mod nginx;
mod plain;

pub(crate) use apache::apache;
pub(crate) use goaccess::{goaccess, is_likely};
pub(crate) use nginx::nginx;
pub(crate) use plain::plain;

use crate::log::program::Piece;

/// Adds one byte of text.
fn push_text(pieces: &mut Vec<Piece>, character: char) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push(character),
        _ => pieces.push(Piece::Text(character.to_string())),
    }
}

/// What a request field of this name is, in lower case.
fn request_field(name: &str) -> crate::log::field::Field {
    use crate::log::field::Field;
    match name {
        "referer" => Field::Referer,
        "user-agent" => Field::Agent,
        "x-forwarded-for" => Field::Forwarded,
        "host" => Field::Host,
        _ => Field::Other,
    }
}
