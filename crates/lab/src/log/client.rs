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

/// Four numbers and three points, and nothing else. Where the points stand is anybody's guess, a processor's too, so each
/// byte takes the same way.
#[inline]
fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    if text.len() < 7 || text.len() > 15 {
        return None;
    }
    let (mut bits, mut part, mut digits, mut points) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut is_wrong = false;
    for byte in text {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        let is_point = *byte == b'.';
        is_wrong |= (digit > 9) & !is_point | (is_point & (digits == 0)) | (part > 255) | (digits > 3);
        bits = if is_point { bits << 8 | (part & 255) } else { bits };
        part = if is_point { 0 } else { (part * 10 + digit) & 0xffff };
        digits = if is_point { 0 } else { digits + 1 };
        points += u32::from(is_point);
    }
    let is_right = !is_wrong && points == 3 && (1..=3).contains(&digits) && part < 256;
    is_right.then(|| Ipv4Addr::from_bits(bits << 8 | part))
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
        for wrong in [
            "1.2.3",
            "1.2.3.4.5",
            "1..3.4.5",
            "1.2.3.",
            ".1.2.3.4",
            "0001.2.3.4",
            "1.2.3.0004",
            "1.2.3.4a",
            "999.1.1.1",
        ] {
            check(wrong, &format!("name {wrong}"));
        }
        check("0.0.0.0", "0.0.0.0");
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
