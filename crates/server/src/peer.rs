//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;

/// The peer of a connection, in the extensions of each of its requests.
///
/// Its address is written out once per connection, since each request carries it to the upstream.
#[derive(Clone, Debug)]
pub struct Peer {
    address: SocketAddr,
    text: HeaderValue,
}

impl Peer {
    /// The peer at `address`. An IPv4 address that is written as an IPv6 one is taken as the IPv4 address.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let text = HeaderValue::try_from(address.ip().to_string());
        // Digits, hexadecimal digits, dots and colons: always a field value.
        Self { address, text: text.unwrap_or(HeaderValue::from_static("unknown")) }
    }

    /// Its address and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Its address as a field value.
    #[must_use]
    pub fn text(&self) -> &HeaderValue {
        &self.text
    }
}
