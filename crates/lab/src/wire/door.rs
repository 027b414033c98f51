//! The way to a target: its addresses, of which each must be allowed, and TLS where the URL asks for it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::Target;
use super::target::is_loopback;

/// Whose authorities are trusted, for targets that are called over TLS.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those whose certificates stand in this file, in PEM, and no others.
    File(PathBuf),
}

/// Why a target cannot be called.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Its name has no address.
    Name {
        /// The name.
        host: String,
        /// What the resolver says.
        error: io::Error,
    },
    /// It is another machine, and nobody said that it may be called.
    NotOurs {
        /// The name.
        host: String,
        /// One of its addresses that is not of the loopback.
        address: IpAddr,
    },
    /// TLS cannot be set up.
    Tls(String),
    /// The system gives no runtime.
    Runtime(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { host, error } => write!(f, "the name {host} has no address: {error}"),
            Self::NotOurs { host, address } => {
                match host.parse::<IpAddr>() {
                    Ok(_) => write!(f, "{host}")?,
                    Err(_) => write!(f, "{host} ({address})")?,
                }
                f.write_str(
                    " is not this machine; calls in such numbers may harm others: only if the host is yours, say \
                     --i-own-this-host",
                )
            }
            Self::Tls(why) => write!(f, "TLS cannot be set up: {why}"),
            Self::Runtime(error) => write!(f, "no calls can be made: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// A target whose addresses are known and allowed. What was allowed is what is connected to: the name is not resolved
/// again.
pub(super) struct Door {
    addresses: Vec<SocketAddr>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A socket, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Door {
    /// Resolves a target. Unless it `is_ours`, all of its addresses must be of the loopback.
    pub(super) async fn of(target: &Target, is_ours: bool, trust: &Trust) -> Result<Self, OpenError> {
        let host = || target.host.clone();
        let found = lookup_host((target.host.as_str(), target.port)).await;
        let addresses: Vec<_> = found.map_err(|error| OpenError::Name { host: host(), error })?.collect();
        if let Some(other) = addresses.iter().map(SocketAddr::ip).find(|&ip| !is_ours && !is_loopback(ip)) {
            return Err(OpenError::NotOurs { host: host(), address: other });
        }
        let tls = match target.is_tls {
            true => {
                let name = ServerName::try_from(host());
                let name = name.map_err(|_| OpenError::Tls(format!("{} is no name of a server", target.host)))?;
                Some((connector(trust)?, name))
            }
            false => None,
        };
        Ok(Self { addresses, tls })
    }

    pub(super) fn is_on_loopback(&self) -> bool {
        self.addresses.iter().all(|address| address.is_ipv4() && is_loopback(address.ip()))
    }

    /// Connects, from an address of this machine if that matters.
    pub(super) async fn connect(&self, from: Option<IpAddr>) -> io::Result<Box<dyn Stream>> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for &address in &self.addresses {
            match tcp(address, from).await {
                Ok(socket) => return self.secured(socket).await,
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn secured(&self, socket: TcpStream) -> io::Result<Box<dyn Stream>> {
        socket.set_nodelay(true)?;
        match &self.tls {
            Some((connector, name)) => Ok(Box::new(connector.connect(name.clone(), socket).await?)),
            None => Ok(Box::new(socket)),
        }
    }
}

async fn tcp(address: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(from) = from else { return TcpStream::connect(address).await };
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind((from, 0).into())?;
    socket.connect(address).await
}

/// A target's certificate is always verified, against its host's name.
fn connector(trust: &Trust) -> Result<TlsConnector, OpenError> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Trust::File(path) => {
            let unusable = |why: &dyn fmt::Display| OpenError::Tls(format!("{}: {why}", path.display()));
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            for authority in read.map_err(|error| unusable(&error))? {
                roots.add(authority).map_err(|error| unusable(&error))?;
            }
        }
    }
    if roots.is_empty() {
        return Err(OpenError::Tls("there is no authority to trust; name a file of them".to_owned()));
    }
    // The provider is named, so that no other one in the same program decides.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| OpenError::Tls(error.to_string()))?;
    Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
}
