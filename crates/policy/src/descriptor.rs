//! What a caller says of a request in its own words: a list of entries, which is how Envoy describes one.
//!
//! A call brings a domain and several such lists, called descriptors. Rules that were written for other services match
//! them as they stand there; policies see them as [`Described`].

use std::net::IpAddr;

use crate::{Attributes, Peer};

/// One entry of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What it speaks of; never empty in a call that was let in.
    pub key: &'a str,
    /// What it says, which may be nothing.
    pub value: &'a str,
}

/// A descriptor as policies see it.
///
/// The domain is the host. Each entry is a claim of its name, since whoever may ask was let in by the operator and what
/// it says counts as verified; and it is a header field of its name too, so that a policy can match it. The entries
/// `remote_address`, `method` and `path` are what they say.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// The domain of the call.
    pub domain: &'a str,
    /// The descriptor.
    pub entries: &'a [Entry<'a>],
    /// Who asks, for a descriptor that does not name an address.
    pub asker: Peer,
    /// When it was asked, in seconds since the epoch of Unix, if that is known.
    pub unix_s: Option<u64>,
}

impl<'a> Described<'a> {
    fn value(&self, key: &str) -> Option<&'a str> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.value)
    }
}

impl Attributes for Described<'_> {
    fn peer(&self) -> Peer {
        let named = self.value("remote_address").and_then(|text| text.parse::<IpAddr>().ok());
        named.map_or(self.asker, Peer::Ip)
    }

    fn method(&self) -> &str {
        self.value("method").unwrap_or_default()
    }

    fn path(&self) -> &str {
        let path = self.value("path").unwrap_or("/");
        path.split_once('?').map_or(path, |(path, _)| path)
    }

    fn host(&self) -> Option<&str> {
        Some(self.domain)
    }

    fn header_lines<'b>(&'b self, name: &str, each: &mut dyn FnMut(&'b [u8])) {
        self.entries.iter().filter(|entry| entry.key == name).for_each(|entry| each(entry.value.as_bytes()));
    }

    fn claim(&self, name: &str) -> Option<&[u8]> {
        self.value(name).map(str::as_bytes)
    }

    fn unix_s(&self) -> Option<u64> {
        self.unix_s
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn entries_are_claims_and_some_are_what_they_say() {
        let entries = [
            Entry { key: "remote_address", value: "192.0.2.7" },
            Entry { key: "path", value: "/a/b?c=d" },
            Entry { key: "user", value: "ann" },
        ];
        let asker = Peer::Ip(Ipv4Addr::LOCALHOST.into());
        let described = Described { domain: "edge", entries: &entries, asker, unix_s: None };
        assert_eq!(described.peer(), Peer::Ip(Ipv4Addr::new(192, 0, 2, 7).into()));
        assert_eq!((described.host(), described.path(), described.method()), (Some("edge"), "/a/b", ""));
        assert_eq!((described.claim("user"), described.claim("plan")), (Some(&b"ann"[..]), None));
        let mut lines = Vec::new();
        described.header_lines("user", &mut |line| lines.push(line));
        assert_eq!(lines, [b"ann"]);
        assert_eq!(Described { entries: &entries[1..], ..described }.peer(), asker);
    }
}
