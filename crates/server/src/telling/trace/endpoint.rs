//! Where spans are sent.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, Scheme};

/// A collector, as `http://host:port`, with an optional path that is put before `/v1/traces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEndpoint {
    pub(super) authority: Authority,
    pub(super) path: String,
}

impl OtlpEndpoint {
    /// Where to connect.
    pub(super) fn socket(&self) -> (&str, u16) {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        (host, self.authority.port_u16().unwrap_or(4318))
    }
}

impl FromStr for OtlpEndpoint {
    type Err = OtlpEndpointError;

    fn from_str(text: &str) -> Result<Self, OtlpEndpointError> {
        let uri: Uri = text.parse().map_err(|_| OtlpEndpointError)?;
        let is_plain =
            |it: &&Authority| !it.host().is_empty() && !it.as_str().contains('@') && !it.as_str().ends_with(':');
        let authority = uri.authority().filter(is_plain);
        match (uri.scheme(), authority, uri.query()) {
            (Some(scheme), Some(authority), None) if *scheme == Scheme::HTTP => {
                let path = format!("{}/v1/traces", uri.path().trim_end_matches('/'));
                Ok(Self { authority: authority.clone(), path })
            }
            _ => Err(OtlpEndpointError),
        }
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// The text names no collector that spans can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpEndpointError;

impl fmt::Display for OtlpEndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a collector's address over plain HTTP, such as http://127.0.0.1:4318")
    }
}

impl std::error::Error for OtlpEndpointError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_where_a_collector_listens() {
        let check = |text: &str| text.parse::<OtlpEndpoint>().map_or_else(|_| String::new(), |it| it.to_string());
        for (text, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("https://collector", ""),
            ("http://me:secret@collector", ""),
            ("http://collector?a", ""),
            ("http://collector:", ""),
            ("collector:4318", ""),
            ("", ""),
        ] {
            assert_eq!(check(text), expected);
        }
        assert_eq!("http://[::1]".parse::<OtlpEndpoint>().unwrap().socket(), ("::1", 4318));
    }
}
