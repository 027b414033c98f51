//! The name of an upstream.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use http::HeaderValue;
use http::uri::{Authority, Scheme, Uri};

/// Where requests are passed on to: `http://host:port`, with an optional path that is put before each request's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    authority: Authority,
    host: HeaderValue,
    prefix: String,
}

/// Why a text does not name an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It is not a URL with a host.
    NotAUrl {
        /// The text.
        text: String,
    },
    /// Its scheme is not `http`.
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// It holds what cannot be passed on with each request: a user or a query.
    Extra {
        /// The part that is too much.
        part: &'static str,
    },
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUrl { text } => write!(f, "`{text}` is no upstream; write it like `http://127.0.0.1:9000`"),
            Self::Scheme { scheme } => write!(f, "an upstream over `{scheme}` is not supported; use `http`"),
            Self::Extra { part } => write!(f, "an upstream takes no {part}"),
        }
    }
}

impl Error for UpstreamError {}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let not_a_url = || UpstreamError::NotAUrl { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| not_a_url())?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(not_a_url)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) => return Err(UpstreamError::Scheme { scheme: scheme.to_string() }),
            None => return Err(not_a_url()),
        }
        if authority.as_str().contains('@') {
            return Err(UpstreamError::Extra { part: "user" });
        }
        if uri.query().is_some() {
            return Err(UpstreamError::Extra { part: "query" });
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| not_a_url())?;
        Ok(Self { authority: authority.clone(), host, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

impl Upstream {
    /// Where to connect.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Its host and port as a field value.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// The path that comes before each request's; empty, or without a slash at its end.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_upstream_is_refused_with_the_reason() {
        let check = |text: &str| text.parse::<Upstream>().map_or_else(|error| error.to_string(), |up| up.to_string());
        for (text, expected) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("http://[::1]:9000/", "http://[::1]:9000"),
            ("HTTP://Api.Internal/base/", "http://Api.Internal/base"),
            ("https://a", "an upstream over `https` is not supported; use `http`"),
            ("ftp://a", "an upstream over `ftp` is not supported; use `http`"),
            ("http://me:secret@a", "an upstream takes no user"),
            ("http://a/?b=c", "an upstream takes no query"),
            ("127.0.0.1:9000", "`127.0.0.1:9000` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("localhost", "`localhost` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("http://", "`http://` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("", "`` is no upstream; write it like `http://127.0.0.1:9000`"),
        ] {
            assert_eq!(check(text), expected);
        }
    }
}
