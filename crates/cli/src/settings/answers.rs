//! What clients are told.

use std::str::FromStr;

use clap::Args;
use tidegate_http::{Dialects, UnknownDialect};

use super::Group;
use super::field::{Field, Given};
use crate::flags;

/// What clients are told.
#[derive(Args, Clone, Default)]
pub(crate) struct Answers {
    /// What clients are told about limits: draft-10, draft-7 or draft-6; x-ratelimit, or with another kind of reset
    /// x-ratelimit:epoch, x-ratelimit:epoch-ms or x-ratelimit:rfc3339; none; or two of these with a comma between.
    /// [default: draft-10]
    #[arg(long, value_name = "DIALECTS")]
    headers: Option<Given<Told>>,
}

impl Group for Answers {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![("headers", &mut self.headers)]
    }
}

impl Answers {
    pub(crate) fn dialects(&self) -> Dialects {
        self.headers.as_ref().map_or_else(Dialects::default, |headers| headers.0)
    }
}

#[derive(Clone, Copy)]
struct Told(Dialects);

impl FromStr for Told {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        flags::dialects(text).map(Self)
    }
}
