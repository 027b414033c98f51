//! What a request is, as plain data.
//!
//! A face (the proxy, a tower layer, the reader of an access log) implements [`Attributes`] over what it has, and
//! nothing is copied until a key is built.

use std::net::{IpAddr, SocketAddr};

use tidegate_core::Cost;

/// Who is at the other end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address, as the socket shows it.
    Ip(IpAddr),
    /// The other end of a unix socket, which has no address.
    Unix,
}

impl From<IpAddr> for Peer {
    fn from(ip: IpAddr) -> Self {
        Self::Ip(ip)
    }
}

impl From<SocketAddr> for Peer {
    /// The address; port and zone are dropped.
    fn from(socket: SocketAddr) -> Self {
        Self::Ip(socket.ip())
    }
}

/// A request as policies see it.
pub trait Attributes {
    /// Who sent it, or the proxy that passed it on.
    fn peer(&self) -> Peer;

    /// The method, such as `GET`.
    fn method(&self) -> &str;

    /// The path as it was sent, without the query.
    fn path(&self) -> &str;

    /// The host that was asked for: the authority of the target, or else the Host field.
    fn host(&self) -> Option<&str>;

    /// Calls `each` with the value of every line of the field `name`, which is in lower case, in the order of the
    /// lines.
    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8]));

    /// What a trusted layer has verified about the caller under this name: the subject of a token, a plan. Nobody has
    /// unless the face says so.
    fn claim(&self, _name: &str) -> Option<&[u8]> {
        None
    }

    /// What the request costs, in place of what each policy says, if whoever describes it knows.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// When the request came, in seconds since the epoch of Unix. Asked for only if a policy has an override that
    /// ends some day; while it is not known, such overrides have ended.
    fn unix_s(&self) -> Option<u64> {
        None
    }
}
