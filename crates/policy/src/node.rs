//! One address, as the entries of forwarding fields write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest entry that can be an address, in bytes: brackets, 45 of IPv6, a zone and a port.
const NODE_BYTES_MAX: usize = 96;
/// The longest zone id, in bytes. Names of network interfaces have at most 15.
const ZONE_BYTES_MAX: usize = 16;
/// The longest port, in bytes; RFC 7239 has obfuscated ones (`_gateway`) beside the numbers.
const PORT_BYTES_MAX: usize = 16;

/// Reads `203.0.113.9`, `203.0.113.9:51000`, `2001:db8::9`, `[2001:db8::9]`, `[2001:db8::9]:443`, with or without a
/// zone id. Port and zone are dropped, and IPv4 inside of IPv6 is unmapped. `None` if it is not an address.
pub(crate) fn address(node: &[u8]) -> Option<IpAddr> {
    if node.len() > NODE_BYTES_MAX {
        return None;
    }
    let node = std::str::from_utf8(node).ok()?;
    if let Some(bracketed) = node.strip_prefix('[') {
        let (host, port) = bracketed.split_once(']')?;
        return if port.is_empty() || is_port(port.strip_prefix(':')?) { v6(host) } else { None };
    }
    match node.split_once(':') {
        None => v4(node),
        Some((_, rest)) if rest.contains(':') => v6(node),
        Some((host, port)) => is_port(port).then(|| v4(host))?,
    }
}

/// The IPv4 address within an IPv4-mapped one (`::ffff:0:0/96`, RFC 4291) or one of the well-known NAT64 prefix
/// (`64:ff9b::/96`, RFC 6052); any other address as it is.
pub(crate) fn unmapped(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => ip,
    }
}

fn v4(host: &str) -> Option<IpAddr> {
    host.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn v6(host: &str) -> Option<IpAddr> {
    let host = match host.split_once('%') {
        Some((host, zone)) if is_zone(zone) => host,
        Some(_) => return None,
        None => host,
    };
    host.parse::<Ipv6Addr>().ok().map(|ip| unmapped(IpAddr::V6(ip)))
}

fn is_zone(zone: &str) -> bool {
    (1..=ZONE_BYTES_MAX).contains(&zone.len()) && zone.bytes().all(is_unreserved)
}

fn is_port(port: &str) -> bool {
    match port.strip_prefix('_') {
        Some(name) => (1..PORT_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_unreserved),
        None => port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok(),
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(node: &str, expect: Option<&str>) {
        let expect = expect.map(|ip| ip.parse().unwrap());
        assert_eq!(address(node.as_bytes()), expect, "{node}");
    }

    #[test]
    fn an_address_is_read_with_port_brackets_and_zone() {
        check("203.0.113.9", Some("203.0.113.9"));
        check("203.0.113.9:51000", Some("203.0.113.9"));
        check("203.0.113.9:_hidden", Some("203.0.113.9"));
        check("2001:db8::9", Some("2001:db8::9"));
        check("[2001:db8::9]", Some("2001:db8::9"));
        check("[2001:db8::9]:443", Some("2001:db8::9"));
        check("fe80::1%eth0", Some("fe80::1"));
        check("[fe80::1%eth0.100]:443", Some("fe80::1"));
        check("::ffff:192.0.2.1", Some("192.0.2.1"));
        check("[::ffff:c000:201]:80", Some("192.0.2.1"));
        check("64:ff9b::192.0.2.1", Some("192.0.2.1"));
        check("::1", Some("::1"));
        check("::192.0.2.1", Some("::192.0.2.1"));
    }

    #[test]
    fn anything_else_is_no_address() {
        let zone = "z".repeat(ZONE_BYTES_MAX + 1);
        let long = "1".repeat(NODE_BYTES_MAX + 1);
        for node in [
            "",
            "unknown",
            "_hidden",
            "203.0.113",
            "203.0.113.256",
            "203.0.113.009",
            "203.0.113.9:",
            "203.0.113.9:65536",
            "203.0.113.9:+80",
            "203.0.113.9:8x",
            "203.0.113.9 ",
            "203.0.113.9%eth0",
            "[203.0.113.9]:80",
            "[2001:db8::9",
            "[2001:db8::9]443",
            "[2001:db8::9]:",
            "2001:db8::9]",
            "fe80::1%",
            "fe80::1%a/b",
            "example.org",
            &format!("fe80::1%{zone}"),
            &format!("[fe80::1%{zone}]:443"),
            &long,
        ] {
            check(node, None);
        }
        assert_eq!(address(b"203.0.113.9\xff"), None);
    }
}
