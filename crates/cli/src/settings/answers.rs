//! What clients are told.

use std::str::FromStr;

use clap::Args;
use tidegate_http::{Cors, Dialects, UnknownDialect};

use super::Group;
use super::field::{Field, Given};
use crate::flags::{self, Wrong};

/// What clients are told.
#[derive(Args, Clone, Default)]
pub(crate) struct Answers {
    /// What clients are told about limits: draft-10, draft-7 or draft-6; x-ratelimit, or with another kind of reset
    /// x-ratelimit:epoch, x-ratelimit:epoch-ms or x-ratelimit:rfc3339; none; or two of these with a comma between.
    /// [default: draft-10]
    #[arg(long, value_name = "DIALECTS")]
    headers: Option<Given<Told>>,

    /// Sites whose scripts may read a denial, and what it and other answers say of limits: their origins, such as
    /// https://app.example, with commas between them, or * for all.
    #[arg(long, value_name = "ORIGINS")]
    cors_origins: Option<Given<Cors>>,

    /// Those scripts may send cookies and other credentials along.
    #[arg(long)]
    cors_credentials: bool,
}

impl Group for Answers {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        vec![
            ("headers", &mut self.headers),
            ("cors_origins", &mut self.cors_origins),
            ("cors_credentials", &mut self.cors_credentials),
        ]
    }
}

impl Answers {
    /// Whose scripts may read denials.
    ///
    /// # Errors
    /// Those of all sites, and with credentials.
    pub(crate) fn cors(&self) -> Result<Option<Cors>, Wrong> {
        match (&self.cors_origins, self.cors_credentials) {
            (None, true) => Err(Wrong::new("cors_credentials says nothing without cors_origins")),
            (None, false) => Ok(None),
            (Some(cors), false) => Ok(Some((**cors).clone())),
            (Some(cors), true) => {
                let cors = (**cors).clone().with_credentials();
                cors.map(Some).map_err(|error| Wrong::new(format_args!("cors_credentials: {error}")))
            }
        }
    }

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
