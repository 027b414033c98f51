//! The client's address: whom to believe when somebody says for whom he speaks.
//!
//! Each proxy appends the address of its peer to a field, so the right end of the field is the nearest hop. Starting
//! from the peer of our own socket, the walk goes on to the left as long as the hop that it stands on is trusted: what
//! a trusted hop appended is true, what stands left of an untrusted one is whatever that one wished to write. An entry
//! that is no address ends the walk at the last hop that is known.
//!
//! So nothing that an untrusted sender writes changes which client it is. If every hop is trusted, the leftmost is
//! the client.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::{Attributes, Client, FieldName, Grouping, Keys, NameError, Trust, forwarded, key::Tag, node};

/// The most entries of the field that are walked, empty ones included.
pub const ENTRIES_MAX: usize = 64;
/// The most lines of the field that are read, the last ones.
pub const LINES_MAX: usize = 16;

/// Where proxies leave the address of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressField {
    /// `X-Forwarded-For`, a list of addresses.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239), a list of elements with a `for` parameter.
    Forwarded,
    /// A network's own field, such as `CF-Connecting-IP`; written like `X-Forwarded-For`, usually with one address.
    Single(FieldName),
}

impl AddressField {
    /// The field's name, in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::Single(name) => name.as_str(),
        }
    }

    fn address(&self, entry: &[u8]) -> Option<IpAddr> {
        match self {
            Self::Forwarded => forwarded::for_node(entry).and_then(node::address),
            Self::XForwardedFor | Self::Single(_) => node::address(entry),
        }
    }
}

impl FromStr for AddressField {
    type Err = NameError;

    /// Reads the name of the field, in any case.
    ///
    /// # Errors
    /// It cannot be the name of a field.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let name: FieldName = text.parse()?;
        Ok(match name.as_str() {
            "x-forwarded-for" => Self::XForwardedFor,
            "forwarded" => Self::Forwarded,
            _ => Self::Single(name),
        })
    }
}

impl fmt::Display for AddressField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How to find the address of the client. By default it is the peer's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddress {
    /// Who is believed.
    pub trust: Trust,
    /// Which one field is believed.
    pub field: AddressField,
    /// Which clients count as one.
    pub grouping: Grouping,
}

impl ClientAddress {
    /// The client of a request, not yet grouped.
    pub fn of<A: Attributes + ?Sized>(&self, attributes: &A) -> Client {
        let peer = Client::from(attributes.peer());
        if !self.trust.trusts(peer) {
            return peer;
        }
        let lines = LastLines::of(attributes, self.field.name());
        self.walk(peer, lines.entries_from_right())
    }

    /// The key of a request that is limited by client alone: the client, grouped. Earlier keys are dropped.
    pub fn key<'k, A: Attributes + ?Sized>(&self, attributes: &A, keys: &'k mut Keys) -> &'k [u8] {
        keys.clear();
        keys.push_client(Tag::Client, self.of(attributes), &self.grouping);
        keys.finish();
        keys.key(0)
    }

    fn walk<'a>(&self, peer: Client, entries: impl Iterator<Item = &'a [u8]>) -> Client {
        let mut hop = peer;
        for entry in entries.take(ENTRIES_MAX).filter(|entry| !entry.is_empty()) {
            let Some(ip) = self.field.address(entry) else { return hop };
            hop = Client::Ip(ip);
            if !self.trust.trusts(hop) {
                return hop;
            }
        }
        hop
    }
}

/// The last lines of a field, at most [`LINES_MAX`], in a ring.
struct LastLines<'a> {
    ring: [&'a [u8]; LINES_MAX],
    /// How many lines were seen in all.
    seen: usize,
}

impl<'a> LastLines<'a> {
    fn of<A: Attributes + ?Sized>(attributes: &'a A, name: &str) -> Self {
        let mut lines = Self { ring: [&[]; LINES_MAX], seen: 0 };
        attributes.header_lines(name, &mut |line| {
            lines.ring[lines.seen % LINES_MAX] = line;
            lines.seen += 1;
        });
        lines
    }

    fn entries_from_right(&self) -> impl Iterator<Item = &'a [u8]> {
        let kept = self.seen.saturating_sub(LINES_MAX)..self.seen;
        kept.rev().map(|i| self.ring[i % LINES_MAX]).flat_map(|line| forwarded::from_right(line, b','))
    }
}
