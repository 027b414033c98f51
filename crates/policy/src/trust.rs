//! Which peers are believed when they say whom a request is from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::trust_error::Fault;
use crate::{Client, TrustError, node};

/// The most networks that can be trusted.
pub const NETWORKS_MAX: usize = 1024;

/// RFC 1918 and RFC 4193.
const PRIVATE: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// The networks whose forwarding fields are believed. By default none.
///
/// Written as networks (`10.0.0.0/8`), addresses, or the words `private`, `loopback`, `unix` and `*`, separated by
/// commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    networks: Vec<IpNet>,
    unix: bool,
    everything: bool,
}

impl Trust {
    /// Is nobody trusted?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.networks.is_empty() && !self.unix && !self.everything
    }

    /// Is everybody trusted, in one family of addresses at least? Then anyone can say to be anyone.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.everything || self.networks.iter().any(|network| network.prefix_len() == 0)
    }

    /// Is this one trusted?
    #[must_use]
    pub fn trusts(&self, client: Client) -> bool {
        self.everything
            || match client {
                Client::Ip(ip) => self.networks.iter().any(|network| network.contains(&ip)),
                Client::Unix => self.unix,
            }
    }

    fn add(&mut self, entry: &str) -> Result<(), Fault> {
        match entry.to_ascii_lowercase().as_str() {
            "*" => self.everything = true,
            "unix" => self.unix = true,
            "private" => self.add_all(&PRIVATE)?,
            "loopback" => self.add_all(&LOOPBACK)?,
            _ => self.networks.push(network(entry)?),
        }
        if self.networks.len() > NETWORKS_MAX { Err(Fault::TooMany) } else { Ok(()) }
    }

    fn add_all(&mut self, entries: &[&str]) -> Result<(), Fault> {
        entries.iter().try_for_each(|entry| network(entry).map(|network| self.networks.push(network)))
    }
}

impl FromStr for Trust {
    type Err = TrustError;

    /// Reads a list of networks, addresses and words.
    ///
    /// # Errors
    /// An entry is none of these; the error says which, and what was likely meant.
    fn from_str(text: &str) -> Result<Self, TrustError> {
        let mut trust = Self::default();
        for entry in text.split(',').map(str::trim) {
            trust.add(entry).map_err(|fault| TrustError::new(entry, fault))?;
        }
        Ok(trust)
    }
}

impl FromIterator<Trust> for Trust {
    /// Trusts everyone whom one of them trusts.
    fn from_iter<I: IntoIterator<Item = Trust>>(trusts: I) -> Self {
        trusts.into_iter().fold(Self::default(), |mut all, one| {
            all.networks.extend(one.networks);
            Self { networks: all.networks, unix: all.unix || one.unix, everything: all.everything || one.everything }
        })
    }
}

impl fmt::Display for Trust {
    /// The list; parsing it gives the same trust. `nothing` if it is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("nothing");
        }
        let words = [(self.everything, "*"), (self.unix, "unix")];
        let words = words.iter().filter(|(is, _)| *is).map(|(_, word)| (*word).to_owned());
        let all: Vec<_> = words.chain(self.networks.iter().map(IpNet::to_string)).collect();
        f.write_str(&all.join(","))
    }
}

fn network(entry: &str) -> Result<IpNet, Fault> {
    let Some((ip, bits)) = entry.split_once('/') else { return one_address(entry) };
    let ip: IpAddr = ip.parse().map_err(|_| Fault::address(ip))?;
    let bits_max = if ip.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse().map_err(|_| Fault::length(ip, bits))?;
    let network = IpNet::new(ip, bits).map_err(|_| Fault::LengthTooLarge { bits_max })?;
    if network.trunc() != network {
        return Err(Fault::HostBits { network: network.trunc(), ip });
    }
    Ok(unmapped(network))
}

fn one_address(entry: &str) -> Result<IpNet, Fault> {
    let ip: IpAddr = entry.parse().map_err(|_| Fault::address(entry))?;
    Fault::of_missing_length(ip).map_or_else(|| Ok(IpNet::from(node::unmapped(ip))), Err)
}

/// Addresses are unmapped before they are looked up, so networks of IPv4 in the coat of IPv6 are too.
fn unmapped(network: IpNet) -> IpNet {
    match (node::unmapped(network.addr()), network.prefix_len().checked_sub(96)) {
        (IpAddr::V4(ip), Some(bits)) if network.max_prefix_len() == 128 => Ipv4Net::new_assert(ip, bits).into(),
        _ => network,
    }
}
