//! Which hosts are meant: `api.example.org`, `*.example.org`.

use std::fmt;
use std::str::FromStr;

use crate::Printable;

/// The longest host, in bytes; a longer one is no host that a pattern means.
pub(crate) const HOST_BYTES_MAX: usize = 255;

/// A host, or all hosts below one. Case, port and a dot at the end do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    /// In lower case.
    pub(crate) name: String,
    /// Are the hosts below it meant, and not itself?
    pub(crate) is_below: bool,
}

impl HostPattern {
    /// Does it mean this host?
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        let mut room = [0; HOST_BYTES_MAX];
        let Some(host) = plain(host, &mut room) else { return false };
        match self.is_below {
            true => host.strip_suffix(self.name.as_bytes()).is_some_and(|head| head.len() > 1 && head.ends_with(b".")),
            false => host == self.name.as_bytes(),
        }
    }

    /// Is there a host that both mean?
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_within = |one: &Self, other: &Self| {
            let head = one.name.strip_suffix(&other.name);
            head.is_some_and(|head| (one.is_below && head.is_empty()) || (head.len() > 1 && head.ends_with('.')))
        };
        match (self.is_below, other.is_below) {
            (false, false) => self.name == other.name,
            (true, true) => is_within(self, other) || is_within(other, self),
            (false, true) => is_within(self, other),
            (true, false) => is_within(other, self),
        }
    }
}

/// The host as it is compared: in lower case, without port and last dot. `None` if it is too long.
pub(crate) fn plain<'a>(host: &str, room: &'a mut [u8; HOST_BYTES_MAX]) -> Option<&'a [u8]> {
    let port_at = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    let host = port_at.map_or(host, |at| &host[..at]);
    let host = host.strip_suffix('.').unwrap_or(host);
    let room = room.get_mut(..host.len())?;
    room.copy_from_slice(host.as_bytes());
    room.make_ascii_lowercase();
    Some(room)
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    /// Reads a host, in any case.
    ///
    /// # Errors
    /// It has a scheme, a port, a path, `*` elsewhere than in front, or characters that hosts do not have.
    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let (name, is_below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        let is_v6 = name.starts_with('[') && name.ends_with(']');
        let is_character = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b) || (is_v6 && b"[:]".contains(&b));
        let name = name.strip_suffix('.').unwrap_or(name);
        match name.is_empty() || name.len() > HOST_BYTES_MAX || !name.bytes().all(is_character) {
            true => Err(HostPatternError(text.to_owned())),
            false => Ok(Self { name: name.to_ascii_lowercase(), is_below }),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_below { "*." } else { "" }, self.name)
    }
}

/// The text is no host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPatternError(String);

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Printable(self.0.as_bytes());
        let bare = self.0.split_once("://").map_or(self.0.as_str(), |(_, behind)| behind);
        let bare = bare.split(['/', ':']).next().unwrap_or_default();
        match bare != self.0 && bare.parse::<HostPattern>().is_ok() {
            true => write!(f, "`{text}` is more than a host; did you mean `{bare}`?"),
            false => write!(f, "`{text}` is no host; write `api.example.org`, or `*.example.org` for all below it"),
        }
    }
}

impl std::error::Error for HostPatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_these_hosts() {
        let fits = |pattern: &str, host: &str| pattern.parse::<HostPattern>().unwrap().fits(host);
        for host in ["api.example.org", "API.Example.org", "api.example.org:8080", "api.example.org."] {
            assert!(fits("Api.example.org", host), "{host}");
        }
        assert!(!fits("api.example.org", "example.org") && !fits("api.example.org", ""));
        assert!(fits("*.example.org", "a.example.org") && fits("*.example.org", "a.b.example.org:80"));
        assert!(!fits("*.example.org", "example.org") && !fits("*.example.org", "badexample.org"));
        assert!(!fits("*.example.org", ".example.org"));
        assert!(fits("[::1]", "[::1]:8080") && fits("[::1]", "[::1]") && fits("127.0.0.1", "127.0.0.1:80"));
        assert!(!fits("a.example.org", &"a".repeat(300)));
    }

    #[test]
    fn hosts_that_overlap_are_known() {
        let pattern = |text: &str| text.parse::<HostPattern>().unwrap();
        for (one, other, expect) in [
            ("a.org", "A.org", true),
            ("a.org", "b.org", false),
            ("*.a.org", "a.org", false),
            ("*.a.org", "x.a.org", true),
            ("*.a.org", "xa.org", false),
            ("*.a.org", "*.x.a.org", true),
            ("*.a.org", "*.a.org", true),
            ("*.a.org", "*.ba.org", false),
        ] {
            assert_eq!(pattern(one).overlaps(&pattern(other)), expect, "{one} {other}");
            assert_eq!(pattern(other).overlaps(&pattern(one)), expect, "{other} {one}");
        }
    }

    #[test]
    fn errors_name_what_was_meant() {
        let error = |text: &str| text.parse::<HostPattern>().unwrap_err().to_string();
        assert_eq!(error("https://a.org/x"), "`https://a.org/x` is more than a host; did you mean `a.org`?");
        assert_eq!(error("a.org:80"), "`a.org:80` is more than a host; did you mean `a.org`?");
        assert_eq!(error("a.*"), "`a.*` is no host; write `api.example.org`, or `*.example.org` for all below it");
        assert!("".parse::<HostPattern>().is_err());
    }
}
