//! How a caller wants its answer: what a denial does to the status, and whether header fields tell of limits too.
//!
//! The body says all of it to a caller who acts on the answer. One that hands the answer on, such as a gateway with a
//! script, wants the status and the fields that its own client knows; it asks for them, and nobody else pays for them.

use http::request::Parts;
use tidegate_http::Dialects;

use super::query;
use super::refusal::Refusal;

/// How a caller wants its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) on_denial: OnDenial,
    /// The dialects in which fields tell of limits, if they do.
    pub(super) dialects: Option<Dialects>,
}

/// What a denial does to the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OnDenial {
    /// Nothing: the call was answered.
    #[default]
    Ignore,
    /// It is 429, or 503 if the limits could not be asked.
    Say,
}

impl Manner {
    /// What the parameters say. Fields are in the server's `dialects`.
    pub(super) fn asked(parts: &Parts, dialects: Dialects) -> Result<Self, Refusal> {
        let mut manner = Self::default();
        let Some(query) = parts.uri.query() else { return Ok(manner) };
        for (name, value) in query::read(Some(query), &["status", "fields"], &[])? {
            match (name, &*value) {
                ("status", "200") | ("fields", "false") => {}
                ("status", "429") => manner.on_denial = OnDenial::Say,
                ("fields", "true") => manner.dialects = Some(dialects),
                ("status", _) => return Err(Refusal::parameter(name, "a denial has the status 200 or 429")),
                _ => return Err(Refusal::parameter(name, "there are fields, or not: true or false")),
            }
        }
        Ok(manner)
    }
}
