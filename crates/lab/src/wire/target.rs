//! What is called: a URL, and whose host that is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

/// The URL of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(super) is_tls: bool,
    /// A name, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// What stands in the Host field.
    pub(super) authority: String,
    /// The path and the query.
    pub(super) path: String,
}

/// Why a text is no URL that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// It is no URL.
    NoUrl,
    /// It begins neither with `http://` nor with `https://`.
    Scheme,
    /// It bears a name and a password, which would end up in logs.
    UserInfo,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUrl => f.write_str("expected a URL such as http://127.0.0.1:8080/api"),
            Self::Scheme => f.write_str("expected http:// or https:// in front of the host"),
            Self::UserInfo => {
                f.write_str("a name and password do not belong in the URL; use --header 'authorization: ...'")
            }
        }
    }
}

impl std::error::Error for TargetError {}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let uri: Uri = text.parse().map_err(|_| TargetError::NoUrl)?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(TargetError::Scheme),
        };
        let authority = uri.authority().ok_or(TargetError::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::UserInfo);
        }
        // Not by `Authority::port`, which takes a port that is too large for none.
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':').filter(|port| !port.is_empty())
        {
            Some(port) => port.parse().map_err(|_| TargetError::NoUrl)?,
            None if is_tls => 443,
            None => 80,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { is_tls, host, port, authority: authority.to_string(), path })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Is this an address of this machine alone? One that was mapped into IPv6 counts as what it is.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target: Target = "http://127.0.0.1:8080/api?x=1".parse().unwrap();
        assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("127.0.0.1", 8080, "/api?x=1"));
        let target: Target = "https://[::1]".parse().unwrap();
        assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("::1", 443, "/"));
        assert_eq!(target.to_string(), "https://[::1]/");
        assert_eq!("http://name".parse::<Target>().unwrap().port, 80);
    }

    #[test]
    fn what_is_no_url_is_refused_with_a_hint() {
        let refused = |text: &str| text.parse::<Target>().unwrap_err();
        assert_eq!(refused("127.0.0.1:8080"), TargetError::Scheme);
        assert_eq!(refused("/api"), TargetError::Scheme);
        assert_eq!(refused("ftp://host/"), TargetError::Scheme);
        assert_eq!(refused("http://"), TargetError::NoUrl);
        assert_eq!(refused("http://host:99999/"), TargetError::NoUrl);
        assert_eq!(refused("http://me:secret@host/"), TargetError::UserInfo);
    }

    #[test]
    fn the_loopback_is_known_in_each_of_its_forms() {
        let is = |text: &str| is_loopback(text.parse().unwrap());
        assert!(is("127.0.0.1") && is("127.9.8.7") && is("::1") && is("::ffff:127.0.0.1"));
        assert!(!is("10.0.0.1") && !is("0.0.0.0") && !is("::") && !is("::ffff:10.0.0.1"));
    }
}
