//! Whom a proxy speaks for, where it asks about a request instead of passing it on.
//!
//! A proxy that passes a request on appends the address of its own client to `X-Forwarded-For`, and stands behind that
//! entry with its connection. One that asks stands behind it likewise: the last entry is the peer, as the proxy saw it,
//! and what stands further left is what that peer said.

use crate::{Peer, forwarded, node};

/// How nginx writes the address of a client that came over a unix socket.
const UNIX: &[u8] = b"unix:";

/// The last entry of a list of addresses, taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastHop<'a> {
    /// Whom it names; `None` if it is no address.
    pub peer: Option<Peer>,
    /// The list without it.
    pub before: &'a [u8],
}

impl<'a> LastHop<'a> {
    /// The last entry of this line. `None` if there is none, or only empty ones.
    #[must_use]
    pub fn of(line: &'a [u8]) -> Option<Self> {
        let (entry, before) = forwarded::last(line, b',')?;
        let peer = match entry {
            UNIX => Some(Peer::Unix),
            entry => node::address(entry).map(Peer::Ip),
        };
        Some(Self { peer, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: Option<(&str, &str)>) {
        let hop = LastHop::of(line.as_bytes());
        let peer = |hop: &LastHop<'_>| match hop.peer {
            Some(Peer::Ip(ip)) => ip.to_string(),
            Some(Peer::Unix) => "unix".to_owned(),
            None => "none".to_owned(),
        };
        let shown = hop.map(|hop| (peer(&hop), String::from_utf8_lossy(hop.before).into_owned()));
        assert_eq!(shown, expect.map(|(peer, before)| (peer.to_owned(), before.to_owned())), "{line}");
    }

    #[test]
    fn the_last_entry_is_the_peer_and_the_others_stay() {
        check("203.0.113.7", Some(("203.0.113.7", "")));
        check("198.51.100.1, 203.0.113.7", Some(("203.0.113.7", "198.51.100.1")));
        check("a, b, [2001:db8::9]:443 ", Some(("2001:db8::9", "a, b")));
        check(", 203.0.113.7 ,,", Some(("203.0.113.7", "")));
        check("203.0.113.7, unix:", Some(("unix", "203.0.113.7")));
        check("203.0.113.7, unknown", Some(("none", "203.0.113.7")));
        check("", None);
        check(" , ,", None);
    }

    #[test]
    fn an_open_quote_further_left_takes_nothing_away() {
        check("\"forged, 203.0.113.7", Some(("203.0.113.7", "\"forged")));
    }
}
