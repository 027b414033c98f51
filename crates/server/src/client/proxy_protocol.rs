//! The PROXY protocol: what a load balancer says of the client before the first byte of the client's own.
//!
//! After <https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt>. A codec: bytes in, a header out, or the wish for
//! more. What is not exactly a header is an error, since whoever is believed here says who the client is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest header of version 1, with its end of line (section 2.1).
const V1_BYTES_MAX: usize = 107;
const V1_START: &[u8] = b"PROXY ";
/// The signature of version 2 (section 2.2).
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const V2_FIXED_BYTES: usize = 16;

/// Which headers are expected. By default none, and none is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// No header is expected.
    #[default]
    Off,
    /// The text of version 1.
    V1,
    /// The bytes of version 2.
    V2,
    /// Either.
    Any,
}

impl ProxyProtocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Off, Self::V1, Self::V2, Self::Any];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Any => "any",
        }
    }
}

/// Not the name of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProxyProtocol;

impl fmt::Display for UnknownProxyProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected `off`, `v1`, `v2` or `any`")
    }
}

impl std::error::Error for UnknownProxyProtocol {}

impl FromStr for ProxyProtocol {
    type Err = UnknownProxyProtocol;

    /// Reads a name.
    ///
    /// # Errors
    /// It is another.
    fn from_str(text: &str) -> Result<Self, UnknownProxyProtocol> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or(UnknownProxyProtocol)
    }
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The client, unless the header says that there is none to name: then the peer speaks for itself.
    pub(crate) source: Option<IpAddr>,
    /// How long it is; what follows is the client's.
    pub(crate) bytes: usize,
}

/// What was sent is not a header that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl ProxyProtocol {
    /// The header at the start of `bytes`; nothing if there is more of it to come.
    pub(crate) fn header(self, bytes: &[u8]) -> Result<Option<Header>, Malformed> {
        match self {
            Self::Off => Ok(Some(Header { source: None, bytes: 0 })),
            Self::V1 => v1(bytes),
            Self::V2 => v2(bytes),
            // The first byte tells them apart.
            Self::Any if bytes.first() == V2_START.first() => v2(bytes),
            Self::Any => v1(bytes),
        }
    }
}

/// Does `bytes` begin like this, as far as it goes?
fn begins(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(byte, expected)| byte == expected)
}

fn v1(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
    if !begins(bytes, V1_START) {
        return Err(Malformed);
    }
    let Some(end) = bytes.iter().take(V1_BYTES_MAX).position(|byte| *byte == b'\n') else {
        return if bytes.len() < V1_BYTES_MAX { Ok(None) } else { Err(Malformed) };
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(Malformed)?;
    let line = line.get(V1_START.len()..).and_then(|line| std::str::from_utf8(line).ok()).ok_or(Malformed)?;
    Ok(Some(Header { source: v1_source(line)?, bytes: end + 1 }))
}

/// `TCP4 192.0.2.1 198.51.100.1 56324 443`, without what stands before it.
fn v1_source(line: &str) -> Result<Option<IpAddr>, Malformed> {
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Ok(None);
    }
    let fields: Vec<_> = line.splitn(6, ' ').collect();
    let [family, source, destination, from_port, to_port] = fields[..] else { return Err(Malformed) };
    let address = |text: &str| match family {
        "TCP4" => text.parse::<Ipv4Addr>().map(IpAddr::from).map_err(|_| Malformed),
        "TCP6" => text.parse::<Ipv6Addr>().map(IpAddr::from).map_err(|_| Malformed),
        _ => Err(Malformed),
    };
    let port = |text: &str| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        if plain { text.parse::<u16>().map_err(|_| Malformed) } else { Err(Malformed) }
    };
    let source = address(source)?;
    address(destination)?;
    port(from_port)?;
    port(to_port)?;
    Ok(Some(source))
}

fn v2(bytes: &[u8]) -> Result<Option<Header>, Malformed> {
    if !begins(bytes, V2_START) {
        return Err(Malformed);
    }
    let Some(fixed) = bytes.first_chunk::<V2_FIXED_BYTES>() else { return Ok(None) };
    let [.., command, family, high, low] = *fixed;
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(Malformed),
    };
    // The high half is the family of addresses: none, IPv4, IPv6, unix. The low one is the transport.
    if family >> 4 > 3 || family & 0x0f > 2 {
        return Err(Malformed);
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    let Some(rest) = bytes.get(V2_FIXED_BYTES..V2_FIXED_BYTES + length) else { return Ok(None) };
    let source = if is_local { None } else { v2_source(family >> 4, rest)? };
    Ok(Some(Header { source, bytes: V2_FIXED_BYTES + length }))
}

/// The source, which comes first; behind the addresses is more that nobody here asks for.
fn v2_source(family: u8, rest: &[u8]) -> Result<Option<IpAddr>, Malformed> {
    match family {
        // Both addresses and both ports must be there.
        1 => rest
            .get(..12)
            .and_then(<[u8]>::first_chunk::<4>)
            .map(|ip| Some(Ipv4Addr::from(*ip).into()))
            .ok_or(Malformed),
        2 => rest
            .get(..36)
            .and_then(<[u8]>::first_chunk::<16>)
            .map(|ip| Some(Ipv6Addr::from(*ip).into()))
            .ok_or(Malformed),
        _ => Ok(None),
    }
}

/// A door for whoever throws bytes at it.
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz {
    use super::{Header, ProxyProtocol};

    /// Reads a header of either version. What is read of a part of the bytes stays read when more of them come.
    ///
    /// # Panics
    /// It does not.
    pub fn proxy_header(input: &[u8]) {
        for protocol in [ProxyProtocol::V1, ProxyProtocol::V2, ProxyProtocol::Any] {
            let whole = protocol.header(input);
            if let Ok(Some(Header { bytes, .. })) = whole {
                assert!(bytes <= input.len(), "a header lies within what has come");
                assert_eq!(protocol.header(&input[..bytes]), whole, "a header needs nothing behind it");
                assert_eq!(protocol.header(&input[..bytes - 1]), Ok(None), "and all of itself");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(expected: ProxyProtocol, bytes: &[u8]) -> String {
        match expected.header(bytes) {
            Err(Malformed) => "malformed".to_owned(),
            Ok(None) => "more".to_owned(),
            Ok(Some(Header { source: None, bytes })) => format!("nobody, {bytes}"),
            Ok(Some(Header { source: Some(ip), bytes })) => format!("{ip}, {bytes}"),
        }
    }

    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        assert_eq!(told(ProxyProtocol::Any, bytes), expect, "{}", bytes.escape_ascii());
    }

    fn v2_header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2_START, &[command, family], &length, rest].concat()
    }

    #[test]
    fn lines_of_version_1() {
        check(b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET", "192.0.2.1, 45");
        check(b"PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", "2001:db8::1, 36");
        check(b"PROXY UNKNOWN\r\n", "nobody, 15");
        check(b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "nobody, 43");
        check(b"", "more");
        check(b"PROXY TCP4 192.0.2.1", "more");
        for line in [
            "GET / HTTP/1.1\r\n",
            "proxy TCP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2 \r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 65536\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 01 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1  2\r\n",
            "PROXY TCP4 2001:db8::1 198.51.100.1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP5 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY \r\n",
        ] {
            check(line.as_bytes(), "malformed");
        }
        check(&[V1_START, &[b'x'; V1_BYTES_MAX - 7]].concat(), "more");
        check(&[V1_START, &[b'x'; V1_BYTES_MAX - 6]].concat(), "malformed");
        check(&[V1_START, &[b'x'; V1_BYTES_MAX], b"\r\n"].concat(), "malformed");
    }

    #[test]
    fn headers_of_version_2() {
        let v4 = [192, 0, 2, 1, 198, 51, 100, 1, 0, 1, 0, 2];
        let v6 = [&Ipv6Addr::LOCALHOST.octets()[..], &[0; 20]].concat();
        check(&v2_header(0x21, 0x11, &v4), "192.0.2.1, 28");
        check(&v2_header(0x21, 0x12, &v4), "192.0.2.1, 28");
        check(&v2_header(0x21, 0x21, &v6), "::1, 52");
        check(&v2_header(0x21, 0x11, &[&v4[..], &[4, 0, 1, 0]].concat()), "192.0.2.1, 32");
        check(&v2_header(0x20, 0x11, &v4), "nobody, 28");
        check(&v2_header(0x20, 0, &[]), "nobody, 16");
        check(&v2_header(0x21, 0, &[1, 2, 3]), "nobody, 19");
        check(&v2_header(0x21, 0x31, &[0; 216]), "nobody, 232");
        for (command, family) in [(0x11, 0x11), (0x22, 0x11), (0x21, 0x41), (0x21, 0x13)] {
            check(&v2_header(command, family, &v4), "malformed");
        }
        check(&v2_header(0x21, 0x11, &v4[..11]), "malformed");
        check(&v2_header(0x21, 0x21, &v6[..35]), "malformed");
        check(b"\r\n\r\n\0\r\nQUIT\r", "malformed");
    }

    #[test]
    fn only_what_is_expected_is_taken() {
        let (one, two) = (b"PROXY UNKNOWN\r\n".as_slice(), v2_header(0x20, 0, &[]));
        assert_eq!(told(ProxyProtocol::V1, &two), "malformed");
        assert_eq!(told(ProxyProtocol::V2, one), "malformed");
        assert_eq!(
            (told(ProxyProtocol::V1, one), told(ProxyProtocol::V2, &two)),
            ("nobody, 15".into(), "nobody, 16".into())
        );
        assert_eq!(told(ProxyProtocol::Off, one), "nobody, 0");
    }

    /// However a header is split, every part before the last asks for more, and what follows changes nothing.
    #[test]
    fn a_header_in_pieces_is_the_same_header() {
        let v4 = v2_header(0x21, 0x11, &[192, 0, 2, 1, 198, 51, 100, 1, 0, 1, 0, 2, 4, 0, 1, 0]);
        for header in [b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n".as_slice(), &v4] {
            (0..header.len()).for_each(|length| check(&header[..length], "more"));
            let expect = format!("192.0.2.1, {}", header.len());
            check(header, &expect);
            check(&[header, b"PROXY \r\n\r\n"].concat(), &expect);
        }
    }

    /// One wrong byte anywhere is never a longer header than was sent, and never makes the codec ask without end.
    #[test]
    fn hostile_bytes_end_in_an_answer() {
        let v4 = v2_header(0x21, 0x11, &[192, 0, 2, 1, 198, 51, 100, 1, 0, 1, 0, 2]);
        for header in [b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n".as_slice(), &v4] {
            for (place, byte) in (0..header.len()).flat_map(|place| (0..=u8::MAX).map(move |byte| (place, byte))) {
                let mut wrong = header.to_vec();
                wrong[place] = byte;
                if let Ok(Some(header)) = ProxyProtocol::Any.header(&wrong) {
                    assert!(header.bytes <= wrong.len());
                }
                wrong.resize(V2_FIXED_BYTES + usize::from(u16::MAX), byte);
                assert_ne!(ProxyProtocol::Any.header(&wrong), Ok(None), "{place} {byte}");
            }
        }
    }
}
