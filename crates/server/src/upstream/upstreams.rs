//! Which upstream a request is for, by its host and its path.
//!
//! Hosts and paths are compared in the form in which policies compare them, so that no way of writing a path leads past
//! a policy to the upstream behind it. What is passed on is the path as the client wrote it.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use tidegate_policy::{HostPattern, HostPatternError, normal_path};

use crate::{Upstream, UpstreamError};

/// The most upstreams that a proxy has.
const UPSTREAMS_MAX: usize = 256;

/// An upstream, and the requests that it is for: `[HOST][/PATH]=URL`, or the plain URL for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    host: Option<HostPattern>,
    /// Whole segments; empty for all paths.
    path: String,
    upstream: Upstream,
}

/// Why a text does not name a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DestinationError {
    /// What stands behind the equals sign, or the whole, is no upstream.
    Upstream(UpstreamError),
    /// What stands before it is no host.
    Host(HostPatternError),
    /// What stands before it is no path that requests can have.
    Path {
        /// The path.
        path: String,
    },
    /// Nothing stands before it.
    Empty,
}

impl fmt::Display for DestinationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream(error) => error.fmt(f),
            Self::Host(error) => error.fmt(f),
            Self::Path { path } => write!(f, "`{path}` is no plain path; write it like `/static`, without `*` or `?`"),
            Self::Empty => {
                f.write_str("there is neither host nor path before `=`; for all requests write the URL alone")
            }
        }
    }
}

impl std::error::Error for DestinationError {}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let is_url = |head: &str| head.contains("://") || head.starts_with("unix:");
        let (head, url) = match text.split_once('=').filter(|(head, _)| !is_url(head)) {
            Some(("", _)) => return Err(DestinationError::Empty),
            Some(both) => both,
            None => ("", text),
        };
        let (host, path) = head.split_at(head.find('/').unwrap_or(head.len()));
        let host = (!host.is_empty()).then(|| host.parse()).transpose().map_err(DestinationError::Host)?;
        let upstream = url.parse().map_err(DestinationError::Upstream)?;
        Ok(Self { host, path: prefix(path)?, upstream })
    }
}

/// The normal form of a prefix, without a slash at its end.
fn prefix(path: &str) -> Result<String, DestinationError> {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"*?#\"<>\\^`{|}".contains(&byte));
    if !is_plain {
        return Err(DestinationError::Path { path: path.to_owned() });
    }
    Ok(normal_path(path).trim_end_matches('/').to_owned())
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}")?;
        }
        write!(f, "{}", self.path)?;
        match self.is_for_all() {
            true => write!(f, "{}", self.upstream),
            false => write!(f, "={}", self.upstream),
        }
    }
}

impl Destination {
    /// The upstream.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    fn is_for_all(&self) -> bool {
        self.host.is_none() && self.path.is_empty()
    }

    /// Is it for this host and this path, which is normal?
    fn fits(&self, host: &str, path: &str) -> bool {
        let below = path.strip_prefix(self.path.as_str());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.path.is_empty())
            && self.host.as_ref().is_none_or(|pattern| pattern.fits(host))
    }

    /// The order in which destinations are tried: a host before a wildcard before none, then the longer first.
    fn order(&self) -> impl Ord + use<> {
        let host = self.host.as_ref().map(HostPattern::to_string).unwrap_or_default();
        let kind = match host.as_str() {
            "" => 2,
            below if below.starts_with('*') => 1,
            _ => 0,
        };
        (kind, Reverse(host.len()), Reverse(self.path.len()))
    }
}

/// The upstreams of a proxy, at least one, the most special first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams(Vec<Destination>);

/// Why destinations do not make a proxy's upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamsError {
    /// There are none.
    None,
    /// There are too many.
    TooMany,
    /// Two are for the same requests.
    Twice {
        /// What both are for.
        both: String,
    },
}

impl fmt::Display for UpstreamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is no upstream"),
            Self::TooMany => write!(f, "there are more than {UPSTREAMS_MAX} upstreams"),
            Self::Twice { both } => write!(f, "two upstreams are for {both}; name one"),
        }
    }
}

impl std::error::Error for UpstreamsError {}

impl From<Upstream> for Upstreams {
    /// The one for all requests.
    fn from(upstream: Upstream) -> Self {
        Self(vec![Destination { host: None, path: String::new(), upstream }])
    }
}

impl Upstreams {
    /// These, in whatever order.
    ///
    /// # Errors
    /// There is none, there are too many, or two are for the same requests.
    pub fn new(mut destinations: Vec<Destination>) -> Result<Self, UpstreamsError> {
        if destinations.is_empty() {
            return Err(UpstreamsError::None);
        }
        if destinations.len() > UPSTREAMS_MAX {
            return Err(UpstreamsError::TooMany);
        }
        destinations.sort_by_cached_key(Destination::order);
        for (at, one) in destinations.iter().enumerate() {
            if destinations[..at].iter().any(|other| (&other.host, &other.path) == (&one.host, &one.path)) {
                let what = one.host.as_ref().map(HostPattern::to_string).unwrap_or_default() + &one.path;
                let both = if what.is_empty() { "all requests".to_owned() } else { format!("`{what}`") };
                return Err(UpstreamsError::Twice { both });
            }
        }
        Ok(Self(destinations))
    }

    /// All of them, the most special first.
    #[must_use]
    pub fn as_slice(&self) -> &[Destination] {
        &self.0
    }

    /// The place in the slice of the one that a request is for, by its host and its path as the client wrote them.
    pub(crate) fn choose(&self, host: &str, path: &str) -> Option<usize> {
        match self.0.as_slice() {
            [only] if only.is_for_all() => Some(0),
            all => {
                let path = normal_path(path);
                all.iter().position(|one| one.fits(host, &path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Destination {
        text.parse().unwrap()
    }

    #[test]
    fn a_destination_is_read_and_said_again() {
        let check = |text: &str| text.parse::<Destination>().map_or_else(|e| e.to_string(), |d| d.to_string());
        for (text, expected) in [
            ("http://a", "http://a"),
            ("http://a/x=y", "http://a/x=y"),
            ("unix:/run/a=b.sock", "unix:/run/a=b.sock"),
            ("/static=http://a", "/static=http://a"),
            ("/static/=http://a", "/static=http://a"),
            ("/%7Ea/./b/=http://a", "/~a/b=http://a"),
            ("API.example.org=http://a", "api.example.org=http://a"),
            ("*.example.org/v1=h2c://a", "*.example.org/v1=h2c://a"),
            ("/=http://a", "http://a"),
            ("=http://a", "there is neither host nor path before `=`; for all requests write the URL alone"),
            ("/a*=http://a", "`/a*` is no plain path; write it like `/static`, without `*` or `?`"),
            ("a.org:80/=http://a", "`a.org:80` is more than a host; did you mean `a.org`?"),
            ("/a=b", "`b` is no upstream; write it like `http://127.0.0.1:9000`"),
        ] {
            assert_eq!(check(text), expected, "{text}");
        }
    }

    #[test]
    fn the_most_special_one_is_chosen() {
        let all = [
            "http://rest",
            "/v1=http://v1",
            "/v1/deep=http://deep",
            "*.example.org=http://below",
            "*.a.example.org=http://lower",
            "api.example.org/v1=http://api-v1",
        ];
        let upstreams = Upstreams::new(all.map(destination).to_vec()).unwrap();
        let chosen = |host: &str, path: &str| {
            let at = upstreams.choose(host, path).unwrap();
            upstreams.as_slice()[at].upstream().to_string()
        };
        for (host, path, expected) in [
            ("x", "/", "http://rest"),
            ("x", "*", "http://rest"),
            ("x", "/v1", "http://v1"),
            ("x", "/v1/", "http://v1"),
            ("x", "/v1/deep/er", "http://deep"),
            ("x", "/v1/deeper", "http://v1"),
            ("x", "/v10", "http://rest"),
            ("x", "/V1", "http://rest"),
            ("x", "//v1", "http://rest"),
            ("x", "/a/../v1/x", "http://v1"),
            ("x", "/v1/../a", "http://rest"),
            ("x", "/v1/%2e%2e/a", "http://rest"),
            ("x", "/%761/x", "http://v1"),
            ("x", "/v1%2Fdeep", "http://rest"),
            ("x", "/v1;a/deep", "http://rest"),
            ("api.example.org", "/v1/x", "http://api-v1"),
            ("API.EXAMPLE.ORG.:8080", "/v1/x", "http://api-v1"),
            ("api.example.org", "/v2", "http://below"),
            ("b.example.org", "/v1", "http://below"),
            ("b.a.example.org", "/v1", "http://lower"),
            ("example.org", "/", "http://rest"),
        ] {
            assert_eq!(chosen(host, path), expected, "{host} {path}");
        }
    }

    #[test]
    fn what_fits_nothing_has_no_upstream() {
        let upstreams = Upstreams::new(vec![destination("/a=http://a"), destination("h.org=http://h")]).unwrap();
        assert_eq!((upstreams.choose("x", "/a/b"), upstreams.choose("h.org", "/")), (Some(1), Some(0)));
        assert_eq!((upstreams.choose("x", "/b"), upstreams.choose("x", "*")), (None, None));
    }

    #[test]
    fn upstreams_that_are_none_too_many_or_doubled_are_refused() {
        let new = |texts: &[&str]| Upstreams::new(texts.iter().map(|text| destination(text)).collect());
        let error = |texts: &[&str]| new(texts).unwrap_err().to_string();
        assert_eq!(error(&[]), "there is no upstream");
        assert_eq!(error(&["http://a", "/=http://b"]), "two upstreams are for all requests; name one");
        assert_eq!(error(&["A.org/x=http://a", "a.org/x/=http://b"]), "two upstreams are for `a.org/x`; name one");
        let many: Vec<_> = (0..=UPSTREAMS_MAX).map(|i| destination(&format!("/{i}=http://a"))).collect();
        assert_eq!(Upstreams::new(many).unwrap_err(), UpstreamsError::TooMany);
    }
}
