//! W3C extended logs, as IIS and CloudFront write them: a line that begins with `#Fields:` names what follows.
//!
//! It can come again, with other fields, in the middle of a file. IIS writes `+` for a space and milliseconds;
//! CloudFront separates by tabs, escapes by percent signs and counts seconds.

use crate::log::Escapes;
use crate::log::field::{Field, Unit};
use crate::log::program::{Piece, Program};

/// The fields of the lines that follow.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    pub(crate) program: Program,
    pub(crate) escapes: Escapes,
}

impl Fields {
    /// Reads what stands behind `#Fields:`.
    pub(crate) fn new(names: &str) -> Self {
        let is_cloudfront = names.contains("x-edge-");
        let names = names.split_ascii_whitespace();
        let fields: Vec<_> = names.map(|name| field(name, is_cloudfront)).collect();
        let separator = if is_cloudfront { "\t" } else { " " };
        let mut pieces = Vec::new();
        for field in fields {
            if !pieces.is_empty() {
                pieces.push(Piece::Text(separator.to_owned()));
            }
            pieces.push(Piece::Field(field));
        }
        let escapes = if is_cloudfront { Escapes::Percent } else { Escapes::Plus };
        Self { program: Program::new(pieces), escapes }
    }
}

fn field(name: &str, is_cloudfront: bool) -> Field {
    match name.to_ascii_lowercase().as_str() {
        "date" => Field::Date,
        "time" => Field::TimeOfDay,
        "c-ip" => Field::Client,
        "cs-username" => Field::User,
        "cs-method" => Field::Method,
        "cs-uri-stem" => Field::Target,
        "cs-uri-query" => Field::Query,
        "cs-version" | "cs-protocol-version" => Field::Protocol,
        "sc-status" => Field::Status,
        "sc-bytes" => Field::Bytes,
        "cs(referer)" => Field::Referer,
        "cs(user-agent)" => Field::Agent,
        "cs(host)" if is_cloudfront => Field::Other,
        "x-host-header" | "cs-host" | "cs(host)" => Field::Host,
        "x-forwarded-for" | "cs(x-forwarded-for)" => Field::Forwarded,
        "time-taken" if is_cloudfront => Field::Duration(Unit::S),
        "time-taken" => Field::Duration(Unit::Ms),
        _ => Field::Other,
    }
}
