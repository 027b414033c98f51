//! What lets a script in a browser read the answer to a request to another origin (Fetch standard, CORS protocol).
//!
//! A denial never reaches the inner service, which would have said that the script may read it; so it is said here, for
//! the origins that are configured. What passes is left to the inner service, but for one thing: the fields that this
//! layer adds are named as readable beside those that the service names.

use std::fmt;
use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

use crate::{Dialect, Dialects};

/// The most origins that can be named.
pub const ORIGINS_MAX: usize = 64;

/// The origins whose scripts may read what is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// `None` for any.
    origins: Option<Box<[String]>>,
    with_credentials: bool,
}

impl Cors {
    /// The same, where scripts send cookies or other credentials along.
    ///
    /// # Errors
    /// Any origin may read: then any page could read with its visitors' credentials.
    pub fn with_credentials(self) -> Result<Self, CorsError> {
        match self.origins {
            Some(_) => Ok(Self { with_credentials: true, ..self }),
            None => Err(CorsError::CredentialsForAny),
        }
    }

    /// The origin of the request, if its scripts may read.
    pub(crate) fn origin(&self, request: &HeaderMap) -> Option<HeaderValue> {
        let origin = request.get(ORIGIN)?;
        let is_named = |origins: &[String]| origins.iter().any(|known| known.as_bytes() == origin.as_bytes());
        self.origins.as_deref().is_none_or(is_named).then(|| origin.clone())
    }

    /// Lets `origin` read an answer of this layer's own.
    pub(crate) fn write(&self, origin: Option<HeaderValue>, dialects: Dialects, answer: &mut HeaderMap) {
        if self.origins.is_some() {
            // Whoever keeps the answer must not give it to another origin.
            answer.append(VARY, HeaderValue::from_static("Origin"));
        }
        let Some(origin) = origin else { return };
        let origin = if self.origins.is_some() { origin } else { HeaderValue::from_static("*") };
        answer.entry(ACCESS_CONTROL_ALLOW_ORIGIN).or_insert(origin);
        if self.with_credentials {
            answer.entry(ACCESS_CONTROL_ALLOW_CREDENTIALS).or_insert(HeaderValue::from_static("true"));
        }
        answer.append(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After, Tidegate-Source"));
        expose(dialects, answer);
    }
}

/// Names the fields of these dialects as readable, beside those that are named already.
pub(crate) fn expose(dialects: Dialects, answer: &mut HeaderMap) {
    let draft = dialects.draft().map(|draft| match draft {
        Dialect::Draft6 => "RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset",
        Dialect::Draft7 | Dialect::Draft10 | Dialect::XRateLimit(_) => "RateLimit-Policy, RateLimit",
    });
    let custom = dialects.x_ratelimit().map(|_| "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset");
    for names in draft.into_iter().chain(custom) {
        answer.append(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(names));
    }
}

/// Why a text names no origins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorsError {
    /// It is no origin.
    NotAnOrigin(String),
    /// There are more than [`ORIGINS_MAX`].
    TooMany,
    /// Credentials, and any origin.
    CredentialsForAny,
}

impl fmt::Display for CorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnOrigin(text) => write!(
                f,
                "`{}` is no origin; write a scheme, a host and a port if it is not the usual one, such as \
                 `https://app.example`, or `*` alone for any",
                text.escape_debug()
            ),
            Self::TooMany => write!(f, "there are more than {ORIGINS_MAX} origins, the maximum"),
            Self::CredentialsForAny => {
                f.write_str("with `*` any page could read with its visitors' credentials; name the origins instead")
            }
        }
    }
}

impl std::error::Error for CorsError {}

impl FromStr for Cors {
    type Err = CorsError;

    /// Reads origins with commas between them, or `*` for any.
    ///
    /// # Errors
    /// One is none, or there are too many.
    fn from_str(text: &str) -> Result<Self, CorsError> {
        if text.trim() == "*" {
            return Ok(Self { origins: None, with_credentials: false });
        }
        let origins = text.split(',').map(origin).collect::<Result<Box<[_]>, _>>()?;
        match origins.len() {
            ..=ORIGINS_MAX => Ok(Self { origins: Some(origins), with_credentials: false }),
            _ => Err(CorsError::TooMany),
        }
    }
}

/// An origin as browsers write it: in lower case, and without the port that its scheme has anyway.
fn origin(text: &str) -> Result<String, CorsError> {
    let lower = text.trim().to_ascii_lowercase();
    let error = || CorsError::NotAnOrigin(text.trim().to_owned());
    let (scheme, rest) = lower.split_once("://").ok_or_else(error)?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(error()),
    };
    let rest = rest.strip_suffix(usual).unwrap_or(rest);
    let authority: Authority = rest.parse().map_err(|_| error())?;
    let has_port_or_none = authority.port_u16().is_some() || !rest[authority.host().len()..].contains(':');
    let is_plain =
        !authority.host().is_empty() && !rest.contains('@') && authority.as_str() == rest && has_port_or_none;
    if is_plain { Ok(format!("{scheme}://{rest}")) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let read = |text: &str| text.parse::<Cors>().map(|cors| cors.origins.map(Vec::from));
        let these = |origins: &[&str]| Ok(Some(origins.iter().map(|&origin| origin.to_owned()).collect()));
        assert_eq!(read("https://App.Example"), these(&["https://app.example"]));
        assert_eq!(
            read("https://a.example:443, http://localhost:3000,http://[::1]:80"),
            these(&["https://a.example", "http://localhost:3000", "http://[::1]"])
        );
        assert_eq!(read(" * "), Ok(None));
        for wrong in
            ["", "app.example", "https://", "https://a/", "https://a.example/x", "https://a,*", "null", "ftp://a"]
        {
            assert!(matches!(read(wrong), Err(CorsError::NotAnOrigin(_))), "{wrong}");
        }
        for wrong in ["https://me@a.example", "https://a b", "https://a.example:x"] {
            assert!(matches!(read(wrong), Err(CorsError::NotAnOrigin(_))), "{wrong}");
        }
        assert_eq!(vec!["https://a.example"; ORIGINS_MAX + 1].join(",").parse::<Cors>(), Err(CorsError::TooMany));
    }

    #[test]
    fn credentials_are_not_for_everybody() {
        let cors = |text: &str| text.parse::<Cors>().unwrap().with_credentials();
        assert!(cors("https://app.example").is_ok());
        assert_eq!(cors("*"), Err(CorsError::CredentialsForAny));
    }
}
