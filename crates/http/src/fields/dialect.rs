//! The dialects, and sets of them.

use std::fmt;
use std::str::FromStr;

/// A way in which header fields tell of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `RateLimit-Policy: "name";q=60;w=60` and `RateLimit: "name";r=50;t=30`: the IETF draft
    /// `draft-ietf-httpapi-ratelimit-headers`, revision 10 (8 and 9 read the same).
    Draft10,
    /// `RateLimit-Policy: 60;w=60` and `RateLimit: limit=60, remaining=50, reset=30`: revision 7.
    Draft7,
    /// `RateLimit-Policy: 60;w=60` and `RateLimit-Limit`, `-Remaining`, `-Reset`: revisions 3 to 6.
    Draft6,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`: a custom, whose `Reset` everybody writes in another way.
    XRateLimit(Reset),
}

/// What a field with a point in time says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds since 1970.
    Epoch,
    /// Milliseconds since 1970.
    EpochMillis,
    /// A date (RFC 3339), in UTC and whole seconds.
    Rfc3339,
}

const NAMES: [(Dialect, &str); 7] = [
    (Dialect::Draft10, "draft-10"),
    (Dialect::Draft7, "draft-7"),
    (Dialect::Draft6, "draft-6"),
    (Dialect::XRateLimit(Reset::Delta), "x-ratelimit"),
    (Dialect::XRateLimit(Reset::Epoch), "x-ratelimit:epoch"),
    (Dialect::XRateLimit(Reset::EpochMillis), "x-ratelimit:epoch-ms"),
    (Dialect::XRateLimit(Reset::Rfc3339), "x-ratelimit:rfc3339"),
];

impl Dialect {
    /// The name that flags and configuration files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(dialect, _)| *dialect == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(dialect, _)| *dialect).ok_or(UnknownDialect)
    }
}

/// The name is not one of a [`Dialect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownDialect;

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of")?;
        for (i, (_, name)) in NAMES.iter().enumerate() {
            write!(f, "{} `{name}`", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownDialect {}

/// The dialects that are spoken at once: at most one revision of the draft, since they share names, and at most one
/// kind of `X-RateLimit`. By default revision 10 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialects {
    draft: Option<Dialect>,
    x_ratelimit: Option<Reset>,
}

impl Dialects {
    /// No dialect. Denials still carry `Retry-After`.
    pub const NONE: Self = Self { draft: None, x_ratelimit: None };

    /// These and `dialect`, in place of one that shares its names.
    #[must_use]
    pub const fn with(self, dialect: Dialect) -> Self {
        match dialect {
            Dialect::XRateLimit(reset) => Self { x_ratelimit: Some(reset), ..self },
            Dialect::Draft10 | Dialect::Draft7 | Dialect::Draft6 => Self { draft: Some(dialect), ..self },
        }
    }

    pub(crate) const fn draft(self) -> Option<Dialect> {
        self.draft
    }

    pub(crate) const fn x_ratelimit(self) -> Option<Reset> {
        self.x_ratelimit
    }
}

impl Default for Dialects {
    fn default() -> Self {
        Self::NONE.with(Dialect::Draft10)
    }
}

impl From<Dialect> for Dialects {
    fn from(dialect: Dialect) -> Self {
        Self::NONE.with(dialect)
    }
}

impl FromIterator<Dialect> for Dialects {
    fn from_iter<I: IntoIterator<Item = Dialect>>(dialects: I) -> Self {
        dialects.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (dialect, name) in NAMES {
            assert_eq!((dialect.to_string().as_str(), name.parse()), (name, Ok(dialect)));
        }
        assert!(
            "draft-9".parse::<Dialect>().unwrap_err().to_string().starts_with("expected one of `draft-10`, `draft-7`")
        );
    }

    #[test]
    fn dialects_that_share_names_are_not_spoken_at_once() {
        let all: Dialects = NAMES.iter().map(|(dialect, _)| *dialect).collect();
        assert_eq!(all, Dialects::from(Dialect::Draft6).with(Dialect::XRateLimit(Reset::Rfc3339)));
    }
}
