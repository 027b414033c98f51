//! Names of header fields, cookies and claims, which whoever configures a limit writes.

use std::fmt;
use std::str::FromStr;

use crate::Printable;

/// The longest name of a field or cookie, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The name of a header field, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldName(String);

/// The name of a cookie; its case counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CookieName(String);

/// The name of a claim that a trusted layer has verified; its case counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimName(String);

impl ClaimName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FieldName {
    /// The name, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CookieName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FieldName {
    type Err = NameError;

    /// Reads the name of a field, in any case.
    ///
    /// # Errors
    /// It is empty, longer than [`NAME_BYTES_MAX`], or not a token (RFC 9110, section 5.6.2).
    fn from_str(text: &str) -> Result<Self, NameError> {
        token(text).map(|name| Self(name.to_ascii_lowercase()))
    }
}

impl FromStr for CookieName {
    type Err = NameError;

    /// Reads the name of a cookie.
    ///
    /// # Errors
    /// It is empty, longer than [`NAME_BYTES_MAX`], or not a token (RFC 6265, section 4.1.1).
    fn from_str(text: &str) -> Result<Self, NameError> {
        token(text).map(|name| Self(name.to_owned()))
    }
}

impl FromStr for ClaimName {
    type Err = NameError;

    /// Reads the name of a claim.
    ///
    /// # Errors
    /// It is empty, longer than [`NAME_BYTES_MAX`], or has characters that names of fields do not have either.
    fn from_str(text: &str) -> Result<Self, NameError> {
        token(text).map(|name| Self(name.to_owned()))
    }
}

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CookieName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was written.
    Empty,
    /// More than [`NAME_BYTES_MAX`] bytes.
    TooLong,
    /// A character that names do not have.
    Character(char),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the name is empty"),
            Self::TooLong => write!(f, "the name is longer than {NAME_BYTES_MAX} bytes"),
            Self::Character(c) => {
                let mut utf8 = [0; 4];
                let shown = Printable(c.encode_utf8(&mut utf8).as_bytes());
                write!(f, "`{shown}` cannot stand in a name; only letters, digits and !#$%&'*+-.^_`|~ can")
            }
        }
    }
}

impl std::error::Error for NameError {}

pub(crate) fn token(text: &str) -> Result<&str, NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    match text.chars().find(|c| !is_token_character(*c)) {
        Some(c) => Err(NameError::Character(c)),
        None => Ok(text),
    }
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
