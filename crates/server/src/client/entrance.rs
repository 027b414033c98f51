//! From an accepted connection to one that speaks HTTP: who the client is, TLS, and which version.
//!
//! In the order of the bytes: the PROXY protocol's header if one is expected, the handshake of TLS if there is a
//! certificate, then HTTP/2 by what was agreed in the handshake, or in clear text by its preface (RFC 9113, section
//! 3.3). All of it falls into the time for a header section, which runs from the accept on.

use tokio::io::AsyncWriteExt as _;

use crate::client::connection::Accepted;
use crate::client::proxy_protocol::ProxyProtocol;
use crate::client::socket::{Plain, Socket};
use crate::client::tls::{HTTP_2, Tls};
use crate::{Believed, Drain, Peer};

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first byte of a record with a handshake (RFC 8446, section 5.1).
pub(crate) const HANDSHAKE: u8 = 0x16;
/// What somebody is told who speaks HTTP in clear text where TLS is expected.
const CLEAR_TEXT: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n\
    content-length: 50\r\n\r\nThis port speaks TLS; the address begins https://\n";

/// How clients come in.
#[derive(Clone, Debug, Default)]
pub struct Entrance {
    /// Certificates, if clients are to speak TLS.
    pub tls: Option<Tls>,
    /// Which header tells who the client is, if it is not the peer.
    pub proxy_protocol: ProxyProtocol,
    /// The peers whose headers are believed. A connection of another is closed.
    pub trust: Believed,
}

/// A connection that speaks HTTP from here on.
pub(crate) struct Entered {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) is_http2: bool,
}

/// Why a connection came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It was closed before it said anything, by either side.
    Silent,
    /// It was to be introduced by a header, and its peer is nobody whose word counts.
    Stranger,
    /// What should have introduced it is no such header.
    Unintroduced,
    /// The handshake of TLS failed.
    Handshake,
}

impl Entrance {
    /// Lets a connection in.
    pub(crate) async fn open(&self, accepted: Accepted, drain: &Drain) -> Result<Entered, Refused> {
        let Accepted { mut plain, peer, is_clear } = accepted;
        tokio::select! {
            biased;
            came = plain.more() => came.ok().filter(|came| *came).ok_or(Refused::Silent)?,
            () = drain.started() => return Err(Refused::Silent),
        };
        let peer = self.introduced(&mut plain, peer).await?;
        match self.tls.as_ref().filter(|_| !is_clear) {
            // A handshake is large, and most connections have none.
            Some(tls) => Box::pin(shake_hands(tls, plain, peer)).await,
            None => {
                let is_http2 = begins_http2(&mut plain).await;
                Ok(Entered { socket: Socket::Plain(plain), peer, is_http2 })
            }
        }
    }

    /// The client whom the header names, or else the peer.
    async fn introduced(&self, plain: &mut Plain, peer: Peer) -> Result<Peer, Refused> {
        if self.proxy_protocol == ProxyProtocol::Off {
            return Ok(peer);
        }
        if !self.trust.believes(peer.into()) {
            return Err(Refused::Stranger);
        }
        loop {
            if let Some(header) = self.proxy_protocol.header(plain.early()).map_err(|_| Refused::Unintroduced)? {
                plain.take(header.bytes);
                return Ok(header.source.map_or(peer, Peer::Ip));
            }
            more(plain, Refused::Unintroduced).await?;
        }
    }
}

/// Waits for more; without more the connection comes to nothing.
async fn more(plain: &mut Plain, otherwise: Refused) -> Result<(), Refused> {
    match plain.more().await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err(otherwise),
    }
}

async fn shake_hands(tls: &Tls, mut plain: Plain, peer: Peer) -> Result<Entered, Refused> {
    if plain.early().is_empty() {
        more(&mut plain, Refused::Silent).await?;
    }
    if plain.early().first() != Some(&HANDSHAKE) {
        // Whether it arrives or not, there is nothing more to do.
        let _ = plain.write_all(CLEAR_TEXT).await;
        let _ = plain.shutdown().await;
        return Err(Refused::Handshake);
    }
    let stream = tls.acceptor().accept(plain).await.map_err(|_| Refused::Handshake)?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    Ok(Entered { socket: Socket::Tls(Box::new(stream)), peer, is_http2 })
}

/// Does the client begin with the preface of HTTP/2? What it sends is left for whoever speaks with it.
async fn begins_http2(plain: &mut Plain) -> bool {
    loop {
        let early = plain.early();
        if early.len() >= PREFACE.len() {
            return early.starts_with(PREFACE);
        }
        if !PREFACE.starts_with(early) || !plain.more().await.unwrap_or(false) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_clear_text_is_as_long_as_it_says() {
        let text = std::str::from_utf8(CLEAR_TEXT).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())));
    }
}
