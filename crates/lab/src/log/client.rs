//! Who sent a request, as a line names the sender.

use std::net::{IpAddr, Ipv4Addr};

use tidegate_policy::Peer;

use crate::log::Fault;

/// The longest address with its port, in bytes.
const ADDRESS_BYTES_MAX: usize = 96;

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// An address, or a unix socket.
    Peer(Peer),
    /// A name, from a server that looks its clients up.
    Name(&'a [u8]),
}

/// Reads `203.0.113.9`, `203.0.113.9:51000`, `[2001:db8::9]:443`, `fe80::1%eth0`, `unix:`, or a name. Port and zone are
/// dropped.
///
/// # Errors
/// Nobody is named.
#[inline]
pub fn origin(text: &[u8]) -> Result<Origin<'_>, Fault<'_>> {
    if let Some(ip) = v4(text) {
        return Ok(Origin::Peer(Peer::Ip(IpAddr::V4(ip))));
    }
    slowly(text)
}

fn slowly(text: &[u8]) -> Result<Origin<'_>, Fault<'_>> {
    let fault = Fault::new("client address", text);
    match text {
        b"" | b"-" => return Err(fault),
        b"unix:" | b"unix" | b"@" => return Ok(Origin::Peer(Peer::Unix)),
        _ if text.len() > ADDRESS_BYTES_MAX => return Ok(Origin::Name(text)),
        _ => {}
    }
    let written = std::str::from_utf8(text).map_err(|_| fault)?;
    let host = match written.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(written, |(host, _)| host),
        None => match written.split_once(':') {
            // One colon: what is behind it is a port.
            Some((host, port)) if !port.contains(':') => host,
            _ => written,
        },
    };
    match host.split('%').next().unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) => Ok(Origin::Peer(Peer::Ip(ip))),
        Err(_) if host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"') => Ok(Origin::Name(host.as_bytes())),
        Err(_) => Err(fault),
    }
}

/// Four numbers and three points, and nothing else.
#[inline]
fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    if text.len() < 7 || text.len() > 15 {
        return None;
    }
    let (mut bits, mut part, mut digits, mut points) = (0_u32, 0_u32, 0, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' if digits < 3 => {
                part = part * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 256 && points < 3 => {
                bits = bits << 8 | part;
                (part, digits, points) = (0, 0, points + 1);
            }
            _ => return None,
        }
    }
    (points == 3 && digits > 0 && part < 256).then(|| Ipv4Addr::from_bits(bits << 8 | part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let got = match origin(text.as_bytes()) {
            Ok(Origin::Peer(Peer::Ip(ip))) => ip.to_string(),
            Ok(Origin::Peer(Peer::Unix)) => "unix".to_owned(),
            Ok(Origin::Name(name)) => format!("name {}", name.escape_ascii()),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(got, expect, "{text}");
    }

    #[test]
    fn clients_are_read_however_they_are_written() {
        check("203.0.113.9", "203.0.113.9");
        check("255.255.255.255", "255.255.255.255");
        check("203.0.113.9:51000", "203.0.113.9");
        check("[2001:db8::9]:443", "2001:db8::9");
        check("[2001:db8::9]", "2001:db8::9");
        check("2001:db8::9", "2001:db8::9");
        check("unix:", "unix");
        check("dyn-547.dialup.example", "name dyn-547.dialup.example");
        check("203.0.113.256", "name 203.0.113.256");
        check("-", "client address expected, got -");
        check("", "client address expected, and the line ends");
        check("a b", "client address expected, got a b");
    }

    #[test]
    fn br_180_zones_and_ports_are_dropped() {
        check("fe80::a00:27ff:fe00:1%enp0s8", "fe80::a00:27ff:fe00:1");
        check("::1", "::1");
    }
}
