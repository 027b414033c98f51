//! Which peers are believed when they say whom a request is from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::trust_error::Fault;
use crate::{Client, TrustError, node, ranges};

/// The most networks that can be trusted.
pub const NETWORKS_MAX: usize = 1024;

/// RFC 1918 and RFC 4193.
const PRIVATE: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// The networks whose forwarding fields are believed. By default none.
///
/// Written as networks (`10.0.0.0/8`), addresses, the words `private`, `loopback`, `unix` and `*`, or `file:PATH` for a
/// file of networks, separated by commas. A file trusts nobody before [`Trust::read_files`] was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    networks: Vec<IpNet>,
    files: Vec<(String, Vec<IpNet>)>,
    unix: bool,
    everything: bool,
}

impl Trust {
    /// Is nobody trusted?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.networks.is_empty() && self.files.is_empty() && !self.unix && !self.everything
    }

    /// Is everybody trusted, in one family of addresses at least? Then anyone can say to be anyone.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.everything || self.networks().any(|network| network.prefix_len() == 0)
    }

    /// Is this one trusted?
    #[must_use]
    pub fn trusts(&self, client: Client) -> bool {
        self.everything
            || match client {
                Client::Ip(ip) => self.networks().any(|network| network.contains(&ip)),
                Client::Unix => self.unix,
            }
    }

    /// Are some of the networks in files?
    #[must_use]
    pub fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Trusts what the files say. `read` has the text of the file with this path.
    ///
    /// # Errors
    /// A file cannot be read, or a line of it is no network: the words of the error, with the file's name.
    pub fn read_files(&mut self, mut read: impl FnMut(&str) -> Result<String, String>) -> Result<(), String> {
        for (path, networks) in &mut self.files {
            let text = read(path)?;
            *networks = ranges::networks(&text).map_err(|(line, error)| format!("{path}:{line}: {error}"))?;
        }
        Ok(())
    }

    fn networks(&self) -> impl Iterator<Item = &IpNet> {
        self.networks.iter().chain(self.files.iter().flat_map(|(_, networks)| networks))
    }

    fn add(&mut self, entry: &str) -> Result<(), Fault> {
        if let Some(path) = entry.strip_prefix("file:") {
            if path.is_empty() {
                return Err(Fault::Empty);
            }
            self.files.push((path.to_owned(), Vec::new()));
            return Ok(());
        }
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
            all.files.extend(one.files);
            Self { unix: all.unix || one.unix, everything: all.everything || one.everything, ..all }
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
        let files = self.files.iter().map(|(path, _)| format!("file:{path}"));
        let all: Vec<_> = words.chain(self.networks.iter().map(IpNet::to_string)).chain(files).collect();
        f.write_str(&all.join(","))
    }
}

pub(crate) fn network(entry: &str) -> Result<IpNet, Fault> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = text.parse::<Trust>().map_or_else(|error| error.to_string(), |trust| trust.to_string());
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn lists_are_read() {
        check("10.0.0.0/8", "10.0.0.0/8");
        check("10.0.0.1", "10.0.0.1/32");
        check("2001:db8::1, 2001:db8:1::/48", "2001:db8::1/128,2001:db8:1::/48");
        check("loopback", "127.0.0.0/8,::1/128");
        check("Private", "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7");
        check("unix,*", "*,unix");
        check("::ffff:10.0.0.0/104", "10.0.0.0/8");
        check("::ffff:10.0.0.1", "10.0.0.1/32");
        check("64:ff9b::a00:0/104", "10.0.0.0/8");
        check("::/0", "::/0");
        check("file:/etc/cdn.txt, 10.0.0.1", "10.0.0.1/32,file:/etc/cdn.txt");
        check("file:", "`file:` is empty; write a network such as `10.0.0.0/8`, or leave the option out");
        assert_eq!(Trust::default().to_string(), "nothing");
        let all: Trust = ["10.0.0.0/8", "unix"].map(|text| text.parse::<Trust>().unwrap()).into_iter().collect();
        assert_eq!(all.to_string(), "unix,10.0.0.0/8");
    }

    #[test]
    fn errors_name_what_was_meant() {
        let none =
            "is not a network; expected one such as `10.0.0.0/8`, an address, `private`, `loopback`, `unix` or `*`";
        let bits = "has bits set behind its prefix; did you mean";
        let length = "is a network without its prefix length; did you mean";
        check("10.0.0.1/8", &format!("`10.0.0.1/8` {bits} `10.0.0.0/8`, or the address `10.0.0.1`?"));
        check("2001:db8::1/64", &format!("`2001:db8::1/64` {bits} `2001:db8::/64`, or the address `2001:db8::1`?"));
        check("10.0.0.0", &format!("`10.0.0.0` {length} `10.0.0.0/8`, or the one address `10.0.0.0/32`?"));
        check("192.168.1.0", &format!("`192.168.1.0` {length} `192.168.1.0/24`, or the one address `192.168.1.0/32`?"));
        check("2001:db8::", &format!("`2001:db8::` {length} `2001:db8::/32`, or the one address `2001:db8::/128`?"));
        check("10.0.0.0/", "`10.0.0.0/` has no number behind the slash; write the length, as in `10.0.0.0/8`");
        check("10.0.0.0/x", "`10.0.0.0/x` has no number behind the slash; write the length, as in `10.0.0.0/8`");
        check("10.0.0.0/255.0.0.0", "`10.0.0.0/255.0.0.0` has a mask; did you mean `10.0.0.0/8`?");
        check("10.0.0.0/33", "`10.0.0.0/33` has too long a prefix: such an address has 32 bits");
        check("::/129", "`::/129` has too long a prefix: such an address has 128 bits");
        check("10.0.0.1:8080", "`10.0.0.1:8080` has a port or brackets; did you mean `10.0.0.1`?");
        check("[2001:db8::1]", "`[2001:db8::1]` has a port or brackets; did you mean `2001:db8::1`?");
        check("10.*", "`10.*` is not a whole network; did you mean `10.0.0.0/8`?");
        check("192.168.", "`192.168.` is not a whole network; did you mean `192.168.0.0/16`?");
        check("10/8", "`10/8` is not a whole network; did you mean `10.0.0.0/8`?");
        check("fe80::1%eth0", "`fe80::1%eth0` has a zone; zones are dropped from addresses, so leave it out");
        check("proxy.example.org", &format!("`proxy.example.org` {none}"));
        check("1.2.3.4.5", &format!("`1.2.3.4.5` {none}"));
        check("\x1b[31m", &format!("`\\u{{1b}}[31m` {none}"));
        check("", "`` is empty; write a network such as `10.0.0.0/8`, or leave the option out");
        check("10.0.0.0/8,", "`` is empty; write a network such as `10.0.0.0/8`, or leave the option out");
        let many = vec!["10.0.0.1"; NETWORKS_MAX + 1].join(",");
        check(&many, "`10.0.0.1` is one too many: at most 1024 networks can be trusted");
    }

    #[test]
    fn files_are_trusted_once_they_are_read() {
        let client = |ip: &str| Client::Ip(ip.parse().unwrap());
        let mut trust: Trust = "loopback,file:cdn.txt".parse().unwrap();
        assert!(trust.has_files() && !trust.is_nothing() && !trust.trusts(client("192.0.2.1")));
        trust.read_files(|path| Ok(format!("192.0.2.0/24 # {path}"))).unwrap();
        assert!(trust.trusts(client("192.0.2.1")) && trust.trusts(client("127.0.0.1")));
        assert!(!trust.trusts(client("192.0.3.1")) && !trust.is_everything());
        let error = trust.read_files(|_| Ok("192.0.2.0/24\nx".to_owned())).unwrap_err();
        assert!(error.starts_with("cdn.txt:2: `x` is not a network"), "{error}");
        assert_eq!(trust.read_files(|path| Err(format!("no {path}"))), Err("no cdn.txt".to_owned()));
        trust.read_files(|_| Ok("0.0.0.0/0".to_owned())).unwrap();
        assert!(trust.is_everything());
    }

    #[test]
    fn trusting_everybody_is_known() {
        let everything = |text: &str| text.parse::<Trust>().unwrap().is_everything();
        assert!(everything("*") && everything("0.0.0.0/0") && everything("::/0"));
        assert!(!everything("private,loopback,unix"));
        let client = |ip: &str| Client::Ip(ip.parse().unwrap());
        let all: Trust = "*".parse().unwrap();
        assert!(all.trusts(client("203.0.113.7")) && all.trusts(client("2001:db8::1")) && all.trusts(Client::Unix));
        let v4: Trust = "0.0.0.0/0".parse().unwrap();
        assert!(v4.trusts(client("203.0.113.7")) && !v4.trusts(client("2001:db8::1")) && !v4.trusts(Client::Unix));
    }
}
