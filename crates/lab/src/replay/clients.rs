//! The clients of a log: a few bytes each, since there may be millions.

use std::fmt;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tidegate_policy::{Client, Peer};

use crate::log::{Origin, Utc};
use crate::replay::interner::Interner;

/// Where clients are kept that are known by a name instead of an address: a part of IPv6 that nobody is given (0100::/8,
/// RFC 4291), the number of the name in the bits that a /64 leaves.
const NAMED: u128 = 0x01ff << 112;
/// Stands for those behind a unix socket.
const UNIX: u128 = 0x01fe << 112;

/// All clients so far, by their numbers from 0.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// Addresses as those of IPv6; those of IPv4 are mapped.
    addresses: Vec<u128>,
    table: HashTable<u32>,
    state: RandomState,
    names: Interner,
    busy: Vec<Busy>,
}

/// How busy a client was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    pub(crate) requests: u32,
    /// The minute of the last request, since 1970, and how many it has had so far.
    minute: u32,
    in_minute: u32,
    /// The busiest minute so far.
    busiest: u32,
    in_busiest: u32,
}

impl Busy {
    /// The first second of the busiest minute, and how many requests it had.
    pub(crate) fn busiest(&self) -> (Utc, u64) {
        (Utc { unix_s: i64::from(self.busiest) * 60 }, u64::from(self.in_busiest))
    }
}

impl Clients {
    /// Who sent a line, as a policy knows peers. A name is given an address that stands for it.
    pub(crate) fn peer(&mut self, origin: Origin<'_>) -> Peer {
        match origin {
            Origin::Peer(peer) => peer,
            Origin::Name(name) => {
                let (number, _) = self.names.intern(&name.to_ascii_lowercase());
                Peer::Ip(IpAddr::V6(Ipv6Addr::from_bits(NAMED | u128::from(number) << 64)))
            }
        }
    }

    /// The number of a client.
    #[inline]
    pub(crate) fn number(&mut self, client: Client) -> u32 {
        let address = match client {
            Client::Ip(IpAddr::V4(ip)) => ip.to_ipv6_mapped().to_bits(),
            Client::Ip(IpAddr::V6(ip)) => ip.to_bits(),
            Client::Unix => UNIX,
        };
        let Self { addresses, table, state, busy, .. } = self;
        let hash = state.hash_one(address);
        if let Some(number) = table.find(hash, |number| addresses[*number as usize] == address) {
            return *number;
        }
        // Each takes 16 bytes of memory at least, so there are fewer than 2^32.
        let number = addresses.len() as u32;
        addresses.push(address);
        busy.push(Busy::default());
        table.insert_unique(hash, number, |number| state.hash_one(addresses[*number as usize]));
        number
    }

    /// Counts a request; times come in order.
    #[inline]
    pub(crate) fn count(&mut self, client: u32, unix_s: u64) {
        // A clock of 64 bits in nanoseconds has fewer minutes.
        let minute = (unix_s / 60) as u32;
        let busy = &mut self.busy[client as usize];
        busy.requests = busy.requests.saturating_add(1);
        busy.in_minute = if busy.minute == minute { busy.in_minute.saturating_add(1) } else { 1 };
        busy.minute = minute;
        if busy.in_minute > busy.in_busiest {
            (busy.busiest, busy.in_busiest) = (minute, busy.in_minute);
        }
    }

    /// Those that sent a request that counts.
    pub(crate) fn active(&self) -> impl Iterator<Item = (u32, &Busy)> {
        (0..).zip(&self.busy).filter(|(_, busy)| busy.requests > 0)
    }

    /// A client, as people know it.
    pub(crate) fn show(&self, number: u32) -> Shown<'_> {
        Shown { clients: self, address: self.addresses[number as usize] }
    }
}

/// A client, as people know it.
pub(crate) struct Shown<'a> {
    clients: &'a Clients,
    address: u128,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ip = Ipv6Addr::from_bits(self.address);
        match (ip.to_ipv4_mapped(), self.address >> 112) {
            (Some(ip), _) => ip.fmt(f),
            (None, prefix) if prefix == UNIX >> 112 => f.write_str("unix"),
            (None, prefix) if prefix == NAMED >> 112 => {
                let number = (self.address >> 64) as u32;
                f.write_str(&String::from_utf8_lossy(self.clients.names.get(number)))
            }
            (None, _) => ip.fmt(f),
        }
    }
}
