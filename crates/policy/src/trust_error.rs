//! Why a list of trusted networks cannot be read, and what was likely meant.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::{Printable, trust::NETWORKS_MAX};

/// An entry of a list of trusted networks that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustError {
    entry: String,
    fault: Fault,
}

impl TrustError {
    pub(crate) fn new(entry: &str, fault: Fault) -> Self {
        Self { entry: entry.to_owned(), fault }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Empty,
    TooMany,
    Port { ip: IpAddr },
    Zone,
    Short { network: IpNet },
    Unknown,
    HostBits { network: IpNet, ip: IpAddr },
    NoLength { ip: IpAddr, bits: u8 },
    Mask { network: IpNet },
    Length { ip: IpAddr },
    LengthTooLarge { bits_max: u8 },
}

impl Fault {
    /// What is wrong with a text that is no address?
    pub(crate) fn address(text: &str) -> Self {
        if text.is_empty() {
            return Self::Empty;
        }
        if text.contains('%') {
            return Self::Zone;
        }
        if let Some(ip) = crate::node::address(text.as_bytes()) {
            return Self::Port { ip };
        }
        shortened(text).map_or(Self::Unknown, |network| Self::Short { network })
    }

    /// What is wrong with a prefix length that is no number?
    pub(crate) fn length(ip: IpAddr, text: &str) -> Self {
        let mask = text.parse().ok().and_then(|mask| IpNet::with_netmask(ip, mask).ok());
        mask.map_or(Self::Length { ip }, |network| Self::Mask { network: network.trunc() })
    }

    /// A bare address that ends in zeros is most likely a network whose prefix length was forgotten.
    pub(crate) fn of_missing_length(ip: IpAddr) -> Option<Self> {
        // Whole bytes of IPv4, and whole groups of IPv6 from half of the address on.
        let (zeros, all, unit, zeros_min) = match ip {
            IpAddr::V4(ip) => (ip.to_bits().trailing_zeros(), 32, 8, 8),
            IpAddr::V6(ip) => (ip.to_bits().trailing_zeros(), 128, 16, 64),
        };
        // At most 128 bits.
        (zeros >= zeros_min).then_some(Self::NoLength { ip, bits: (all - zeros / unit * unit) as u8 })
    }
}

/// `10`, `10.`, `10.*`, `192.168.*.*`: the network that was meant.
fn shortened(text: &str) -> Option<IpNet> {
    let text = text.trim_end_matches(['.', '*']);
    let bytes: Vec<u8> = text.split('.').map(|byte| byte.parse().ok()).collect::<Option<_>>()?;
    let mut octets = [0; 4];
    octets.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    // At most four bytes.
    IpNet::new(IpAddr::from(octets), bytes.len() as u8 * 8).ok()
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", Printable(self.entry.as_bytes()))?;
        match &self.fault {
            Fault::Empty => f.write_str(" is empty; write a network such as `10.0.0.0/8`, or leave the option out"),
            Fault::TooMany => write!(f, " is one too many: at most {NETWORKS_MAX} networks can be trusted"),
            Fault::Port { ip } => write!(f, " has a port or brackets; did you mean `{ip}`?"),
            Fault::Zone => f.write_str(" has a zone; zones are dropped from addresses, so leave it out"),
            Fault::Short { network } => write!(f, " is not a whole network; did you mean `{network}`?"),
            Fault::Unknown => f.write_str(
                " is not a network; expected one such as `10.0.0.0/8`, an address, `private`, `loopback`, `unix` \
                 or `*`",
            ),
            Fault::HostBits { network, ip } => {
                write!(f, " has bits set behind its prefix; did you mean `{network}`, or the address `{ip}`?")
            }
            Fault::NoLength { ip, bits } => write!(
                f,
                " is a network without its prefix length; did you mean `{ip}/{bits}`, or the one address `{ip}/{}`?",
                if ip.is_ipv4() { 32 } else { 128 }
            ),
            Fault::Mask { network } => write!(f, " has a mask; did you mean `{network}`?"),
            Fault::Length { ip } => write!(f, " has no number behind the slash; write the length, as in `{ip}/8`"),
            Fault::LengthTooLarge { bits_max } => {
                write!(f, " has too long a prefix: such an address has {bits_max} bits")
            }
        }
    }
}

impl std::error::Error for TrustError {}
