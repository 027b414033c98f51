//! Who a request is from, and whom one counts as the same.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Peer, node};

/// The address a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// An address: IPv4 where it was wrapped into IPv6, and not yet grouped.
    Ip(IpAddr),
    /// Someone behind a unix socket. They all are one client.
    Unix,
}

impl From<Peer> for Client {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Ip(ip) => Self::Ip(node::unmapped(ip)),
            Peer::Unix => Self::Unix,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// How much of an address tells clients apart: all of IPv4 and the first 64 bits of IPv6, unless told otherwise.
///
/// Whoever has one IPv6 address has at least the 2^64 of its network, so a limit by full addresses limits nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    v4_bits: u8,
    v6_bits: u8,
}

impl Default for Grouping {
    fn default() -> Self {
        Self { v4_bits: 32, v6_bits: 64 }
    }
}

impl Grouping {
    /// The same, with the first `bits` bits of IPv4 addresses.
    ///
    /// # Errors
    /// There are no more than 32.
    pub const fn with_v4_bits(self, bits: u8) -> Result<Self, GroupingError> {
        if bits > 32 { Err(GroupingError { bits_max: 32 }) } else { Ok(Self { v4_bits: bits, ..self }) }
    }

    /// The same, with the first `bits` bits of IPv6 addresses.
    ///
    /// # Errors
    /// There are no more than 128.
    pub const fn with_v6_bits(self, bits: u8) -> Result<Self, GroupingError> {
        if bits > 128 { Err(GroupingError { bits_max: 128 }) } else { Ok(Self { v6_bits: bits, ..self }) }
    }

    /// How many bits of IPv4 addresses count.
    #[must_use]
    pub const fn v4_bits(&self) -> u8 {
        self.v4_bits
    }

    /// How many bits of IPv6 addresses count.
    #[must_use]
    pub const fn v6_bits(&self) -> u8 {
        self.v6_bits
    }

    /// The first address of the client's network, which stands for all of it.
    #[must_use]
    pub fn network(&self, client: Client) -> Client {
        match client {
            Client::Ip(IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4_bits)).unwrap_or(0);
                Client::Ip(Ipv4Addr::from_bits(ip.to_bits() & mask).into())
            }
            Client::Ip(IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6_bits)).unwrap_or(0);
                Client::Ip(Ipv6Addr::from_bits(ip.to_bits() & mask).into())
            }
            Client::Unix => Client::Unix,
        }
    }
}

/// More bits than such an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupingError {
    bits_max: u8,
}

impl fmt::Display for GroupingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "such an address has {} bits, so the prefix is 0 to {0}", self.bits_max)
    }
}

impl std::error::Error for GroupingError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(grouping: Grouping, ip: &str, expect: &str) {
        let client = Client::Ip(ip.parse().unwrap());
        assert_eq!(grouping.network(client).to_string(), expect);
    }

    #[test]
    fn addresses_are_grouped_by_network() {
        let grouping = Grouping::default();
        check(grouping, "192.0.2.1", "192.0.2.1");
        check(grouping, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        let coarse = grouping.with_v4_bits(24).unwrap().with_v6_bits(48).unwrap();
        check(coarse, "192.0.2.1", "192.0.2.0");
        check(coarse, "2001:db8:1:2:3:4:5:6", "2001:db8:1::");
        let all = grouping.with_v4_bits(0).unwrap().with_v6_bits(0).unwrap();
        check(all, "192.0.2.1", "0.0.0.0");
        check(all, "2001:db8::1", "::");
        check(grouping.with_v6_bits(128).unwrap(), "2001:db8::1", "2001:db8::1");
        assert_eq!(grouping.network(Client::Unix), Client::Unix);
    }

    #[test]
    fn more_bits_than_there_are_is_refused() {
        let error = Grouping::default().with_v4_bits(33).unwrap_err();
        assert_eq!(error.to_string(), "such an address has 32 bits, so the prefix is 0 to 32");
        assert!(Grouping::default().with_v6_bits(129).is_err());
    }
}
