//! Connecting to an upstream: name, socket, TLS.

use std::io;

use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream, lookup_host};

use crate::upstream::failure::Failure;
use crate::upstream::name::{Place, Speaks};
use crate::upstream::socket::UpstreamSocket;
use crate::upstream::tls::is_http2;
use crate::{Upstream, UpstreamTls};

/// How one upstream is connected to.
pub(crate) struct Dial {
    place: Place,
    speaks: Speaks,
    tls: Option<UpstreamTls>,
}

/// A new connection, and what is spoken on it.
pub(crate) enum Dialled {
    Http1(UpstreamSocket),
    Http2(UpstreamSocket),
}

impl Dial {
    pub(crate) fn new(upstream: &Upstream, tls: Option<UpstreamTls>) -> Self {
        Self { place: upstream.place().clone(), speaks: upstream.speaks(), tls }
    }

    /// Connects, to speak whatever the upstream prefers.
    pub(crate) async fn open(&self) -> Result<Dialled, Failure> {
        match self.speaks {
            Speaks::Http1 => Ok(Dialled::Http1(self.plain().await?)),
            Speaks::Http2 => Ok(Dialled::Http2(self.plain().await?)),
            Speaks::Tls => self.secured(false).await,
        }
    }

    /// Connects, to speak HTTP/1.1.
    pub(crate) async fn open_http1(&self) -> Result<UpstreamSocket, Failure> {
        match self.speaks {
            Speaks::Http1 => self.plain().await,
            Speaks::Http2 => Err(Failure::NoUpgrades),
            Speaks::Tls => match self.secured(true).await? {
                Dialled::Http1(socket) => Ok(socket),
                Dialled::Http2(_) => Err(Failure::NoUpgrades),
            },
        }
    }

    async fn plain(&self) -> Result<UpstreamSocket, Failure> {
        match &self.place {
            Place::Net { host, port, .. } => connect(host, *port).await.map(UpstreamSocket::Tcp),
            Place::Unix(path) => UnixStream::connect(path).await.map(UpstreamSocket::Unix),
        }
        .map_err(Failure::Connect)
    }

    async fn secured(&self, only_http1: bool) -> Result<Dialled, Failure> {
        let unready = |why: &str| Failure::Tls(io::Error::other(why.to_owned()));
        let Place::Net { host, port, .. } = &self.place else { return Err(unready("it has no host")) };
        let tls = self.tls.as_ref().ok_or_else(|| unready("it is not set up"))?;
        let name = ServerName::try_from(host.clone()).map_err(|_| unready("its host is no name of a server"))?;
        let socket = connect(host, *port).await.map_err(Failure::Connect)?;
        let stream = tls.connector(only_http1).connect(name, socket).await.map_err(Failure::Tls)?;
        let http2 = is_http2(stream.get_ref().1.alpn_protocol());
        let socket = UpstreamSocket::Tls(Box::new(stream));
        Ok(if http2 { Dialled::Http2(socket) } else { Dialled::Http1(socket) })
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
