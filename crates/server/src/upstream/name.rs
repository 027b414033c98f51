//! The name of an upstream.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::HeaderValue;
use http::uri::{Authority, Uri};

/// The longest path of a unix socket, in bytes; the kernel takes no longer one.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What a request without a host names towards an upstream that has none either.
const NAMELESS: &str = "localhost";

/// Where requests are passed on to.
///
/// - `http://host:port`: HTTP/1.1.
/// - `https://host:port`: HTTP/2 or HTTP/1.1 over TLS, as the upstream chooses.
/// - `h2c://host:port`: HTTP/2 on clear text, by prior knowledge.
/// - `unix:/path`: HTTP/1.1 over a unix socket.
///
/// All but the last take a path, which is put before each request's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    place: Place,
    speaks: Speaks,
    host: HeaderValue,
    prefix: String,
}

/// Where an upstream listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A host and a port.
    Net { host: String, port: u16, authority: Authority },
    /// A unix socket.
    Unix(PathBuf),
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// HTTP/1.1 on clear text.
    Http1,
    /// HTTP/2 on clear text.
    Http2,
    /// What it chooses, over TLS.
    Tls,
}

/// Which host an upstream is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostTold {
    /// The one that the client named.
    #[default]
    Client,
    /// The upstream's own, as its URL has it.
    Upstream,
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
    /// Its scheme is none that is spoken to upstreams.
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// It holds what cannot be passed on with each request: a user or a query.
    Extra {
        /// The part that is too much.
        part: &'static str,
    },
    /// It names no unix socket.
    Socket {
        /// The text.
        text: String,
    },
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUrl { text } => write!(f, "`{text}` is no upstream; write it like `http://127.0.0.1:9000`"),
            Self::Scheme { scheme } => {
                let scheme = scheme.as_str();
                let instead = match scheme {
                    "grpc" | "h2" => "`h2c`, or `https` with TLS",
                    "grpcs" | "wss" => "`https`",
                    "ws" => "`http`",
                    _ => "`http`, `https`, `h2c` or `unix:/path`",
                };
                write!(f, "an upstream over `{scheme}` is not supported; use {instead}")
            }
            Self::Extra { part } => write!(f, "an upstream takes no {part}"),
            Self::Socket { text } => write!(
                f,
                "`{text}` is no unix socket; write it like `unix:/run/api.sock`, with at most {SOCKET_PATH_BYTES_MAX} bytes"
            ),
        }
    }
}

impl Error for UpstreamError {}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        match text.strip_prefix("unix:") {
            Some(path) => Self::on_socket(path).ok_or_else(|| UpstreamError::Socket { text: text.to_owned() }),
            None => Self::on_net(text),
        }
    }
}

impl Upstream {
    fn on_socket(path: &str) -> Option<Self> {
        let is_path = path.starts_with('/') && path.len() <= SOCKET_PATH_BYTES_MAX && !path.contains('\0');
        is_path.then(|| Self {
            place: Place::Unix(PathBuf::from(path)),
            speaks: Speaks::Http1,
            host: HeaderValue::from_static(NAMELESS),
            prefix: String::new(),
        })
    }

    fn on_net(text: &str) -> Result<Self, UpstreamError> {
        let not_a_url = || UpstreamError::NotAUrl { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| not_a_url())?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(not_a_url)?;
        let scheme = uri.scheme_str().ok_or_else(not_a_url)?.to_ascii_lowercase();
        let speaks = match scheme.as_str() {
            "http" => Speaks::Http1,
            "https" => Speaks::Tls,
            "h2c" => Speaks::Http2,
            _ => return Err(UpstreamError::Scheme { scheme }),
        };
        if authority.as_str().contains('@') {
            return Err(UpstreamError::Extra { part: "user" });
        }
        if uri.query().is_some() {
            return Err(UpstreamError::Extra { part: "query" });
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if speaks == Speaks::Tls { 443 } else { 80 });
        Ok(Self {
            host: HeaderValue::from_str(authority.as_str()).map_err(|_| not_a_url())?,
            place: Place::Net { host, port, authority: authority.clone() },
            speaks,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Where to connect.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn speaks(&self) -> Speaks {
        self.speaks
    }

    /// Is it reached over TLS?
    #[must_use]
    pub fn is_over_tls(&self) -> bool {
        self.speaks == Speaks::Tls
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

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.speaks {
            Speaks::Http1 => "http",
            Speaks::Http2 => "h2c",
            Speaks::Tls => "https",
        };
        match &self.place {
            Place::Net { authority, .. } => write!(f, "{scheme}://{authority}{}", self.prefix),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_upstream_is_refused_with_the_reason() {
        let check = |text: &str| text.parse::<Upstream>().map_or_else(|error| error.to_string(), |up| up.to_string());
        let long = format!("unix:/{}", "a".repeat(SOCKET_PATH_BYTES_MAX));
        for (text, expected) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("http://[::1]:9000/", "http://[::1]:9000"),
            ("HTTP://Api.Internal/base/", "http://Api.Internal/base"),
            ("https://a", "https://a"),
            ("h2c://a:50051", "h2c://a:50051"),
            ("unix:/run/api.sock", "unix:/run/api.sock"),
            ("ftp://a", "an upstream over `ftp` is not supported; use `http`, `https`, `h2c` or `unix:/path`"),
            ("grpc://a", "an upstream over `grpc` is not supported; use `h2c`, or `https` with TLS"),
            ("wss://a", "an upstream over `wss` is not supported; use `https`"),
            ("http://me:secret@a", "an upstream takes no user"),
            ("http://a/?b=c", "an upstream takes no query"),
            ("127.0.0.1:9000", "`127.0.0.1:9000` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("localhost", "`localhost` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("http://", "`http://` is no upstream; write it like `http://127.0.0.1:9000`"),
            ("", "`` is no upstream; write it like `http://127.0.0.1:9000`"),
        ] {
            assert_eq!(check(text), expected);
        }
        for text in ["unix:", "unix:run/api.sock", &long] {
            assert_eq!(
                check(text),
                format!("`{text}` is no unix socket; write it like `unix:/run/api.sock`, with at most 107 bytes")
            );
        }
    }
}
