//! A request, seen as policies see it.

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;

use http::{Extensions, HeaderMap, Method, Request, Uri, header::HOST, request::Parts};
use tidegate::Time;
use tidegate::policy::{Attributes, Peer};

/// Finds the peer of the connection in the extensions of a request.
pub type PeerLookup = fn(&Extensions) -> Option<Peer>;

/// The peer, if the server left it there as a [`Peer`], as a [`SocketAddr`], or (with the feature `axum`) as axum's
/// `ConnectInfo<SocketAddr>`; the first of these counts.
#[must_use]
pub fn peer_in_extensions(extensions: &Extensions) -> Option<Peer> {
    let peer = extensions.get::<Peer>().copied();
    let peer = peer.or_else(|| extensions.get::<SocketAddr>().copied().map(Peer::from));
    #[cfg(feature = "axum")]
    let peer = peer.or_else(|| extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|info| info.0.into()));
    peer
}

/// Tells the present time, on a clock whose epoch is that of Unix.
pub type TellTime<'a> = &'a (dyn Fn() -> Time + Send + Sync);

/// A request's head as [`Attributes`].
pub struct RequestAttributes<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    peer: Option<Peer>,
    peer_missed: Cell<bool>,
    time: Option<TellTime<'a>>,
}

impl<'a> RequestAttributes<'a> {
    /// The attributes of a request from `peer`.
    #[must_use]
    pub fn new<B>(request: &'a Request<B>, peer: Option<Peer>) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        Self { method, uri, headers, peer, peer_missed: Cell::new(false), time: None }
    }

    /// The same, of a request whose body is elsewhere.
    #[must_use]
    pub fn of_parts(parts: &'a Parts, peer: Option<Peer>) -> Self {
        let Parts { method, uri, headers, .. } = parts;
        Self { method, uri, headers, peer, peer_missed: Cell::new(false), time: None }
    }

    /// The same, at the time that `time` tells if it is asked for; its epoch is that of Unix.
    #[must_use]
    pub fn at(self, time: TellTime<'a>) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Was the peer asked for, and is not known? Then what came of it must not be used.
    #[must_use]
    pub fn is_peer_missed(&self) -> bool {
        self.peer_missed.get()
    }
}

impl Attributes for RequestAttributes<'_> {
    fn peer(&self) -> Peer {
        self.peer.unwrap_or_else(|| {
            self.peer_missed.set(true);
            Peer::Unix
        })
    }

    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn host(&self) -> Option<&str> {
        let authority = self.uri.authority().map(http::uri::Authority::as_str);
        authority.or_else(|| self.headers.get(HOST)?.to_str().ok())
    }

    fn header_lines<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a [u8])) {
        // A request has few fields: looking at each is faster than making of a text a name that can be looked up.
        let lines = self.headers.iter().filter(|(field, _)| field.as_str().eq_ignore_ascii_case(name));
        lines.for_each(|(_, line)| each(line.as_bytes()));
    }

    fn unix_s(&self) -> Option<u64> {
        self.time.map(|time| time().since(Time::ZERO).as_secs())
    }
}

impl fmt::Debug for RequestAttributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, uri, peer, .. } = self;
        f.debug_struct("RequestAttributes")
            .field("method", method)
            .field("uri", uri)
            .field("peer", peer)
            .finish_non_exhaustive()
    }
}
