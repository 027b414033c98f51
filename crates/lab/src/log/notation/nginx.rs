//! nginx's notation: `$remote_addr - $remote_user [$time_local] "$request" $status`.

use super::{push_text, request_field};
use crate::log::field::{Field, Unit};
use crate::log::program::Piece;

/// Reads the notation. Any name can be a variable, so nothing in it is wrong.
pub(crate) fn nginx(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character != '$' {
            push_text(&mut pieces, character);
            continue;
        }
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, behind) = braced.unwrap_or_else(|| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest.split_at(end)
        });
        pieces.push(Piece::Field(variable(name)));
        rest = behind;
    }
    pieces
}

fn variable(name: &str) -> Field {
    match name {
        "remote_addr" => Field::Client,
        "remote_user" => Field::User,
        "time_local" | "time_iso8601" | "msec" => Field::Time,
        "request" => Field::Request,
        "request_method" => Field::Method,
        "request_uri" | "uri" | "document_uri" => Field::Target,
        "args" | "query_string" => Field::Query,
        "server_protocol" => Field::Protocol,
        "status" => Field::Status,
        "body_bytes_sent" | "bytes_sent" => Field::Bytes,
        "host" | "server_name" => Field::Host,
        "request_time" => Field::Duration(Unit::S),
        _ => match name.strip_prefix("http_") {
            Some(field) => request_field(&field.replace('_', "-")),
            None => Field::Other,
        },
    }
}
