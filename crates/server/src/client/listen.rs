//! Sockets that several workers accept on.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use crate::client::socket_file::{self, SocketFile};

/// Connections that wait to be accepted, per listener.
pub(crate) const BACKLOG_MAX: i32 = 1024;
/// Who may connect to a unix socket unless told otherwise: its owner and its group.
const MODE: u32 = 0o660;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A port.
    Tcp {
        /// Its address.
        address: SocketAddr,
        /// Clear text, also if there is a certificate.
        is_clear: bool,
    },
    /// A unix socket, always in clear text.
    Unix {
        /// Its file.
        path: PathBuf,
        /// Who may connect to it, as the mode of a file.
        mode: u32,
    },
}

/// A bound socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    pub(crate) kind: ListenerKind,
    pub(crate) is_clear: bool,
}

#[derive(Debug)]
pub(crate) enum ListenerKind {
    Tcp(TcpListener),
    /// The file is removed when the last worker has closed its listener.
    Unix(UnixListener, Arc<SocketFile>),
}

impl From<TcpListener> for Listener {
    /// One that speaks TLS if there is a certificate.
    fn from(listener: TcpListener) -> Self {
        Self { kind: ListenerKind::Tcp(listener), is_clear: false }
    }
}

impl ListenAddress {
    /// Binds one listener per worker. The kernel spreads a port's connections over them; a unix socket is one that they
    /// share, and its file is removed when the last of them is dropped.
    ///
    /// # Errors
    /// The address cannot be bound: it is taken, not of this machine, or not permitted.
    pub fn bind(&self, workers: NonZeroUsize) -> io::Result<Vec<Listener>> {
        match self {
            Self::Tcp { address, is_clear } => {
                let listeners = bind(*address, workers)?.into_iter();
                Ok(listeners.map(|one| Listener { is_clear: *is_clear, ..one.into() }).collect())
            }
            Self::Unix { path, mode } => {
                let (listener, file) = socket_file::bind(path, *mode)?;
                let file = Arc::new(file);
                let share = |_| {
                    let kind = ListenerKind::Unix(listener.try_clone()?, Arc::clone(&file));
                    Ok(Listener { kind, is_clear: true })
                };
                (0..workers.get()).map(share).collect()
            }
        }
    }
}

impl Listener {
    /// The address, with the port that it was given; nothing for a unix socket.
    ///
    /// # Errors
    /// The kernel does not say it.
    pub fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        match &self.kind {
            ListenerKind::Tcp(listener) => listener.local_addr().map(Some),
            ListenerKind::Unix(..) => Ok(None),
        }
    }
}

/// Not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenError(&'static str);

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ListenError {}

impl FromStr for ListenAddress {
    type Err = ListenError;

    /// Reads `127.0.0.1:8080`, `http://127.0.0.1:8080` for clear text beside TLS, or `unix:/path`, with `:660` behind it
    /// for the mode of the file.
    ///
    /// # Errors
    /// It is none of these.
    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(rest) = text.strip_prefix("unix:") {
            return unix(rest);
        }
        let (text, is_clear) = text.strip_prefix("http://").map_or((text, false), |rest| (rest, true));
        let wrong = ListenError(
            "expected an address with a port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for everybody; \
             or a socket, such as unix:/run/tidegate.sock",
        );
        text.parse().map(|address| Self::Tcp { address, is_clear }).map_err(|_| wrong)
    }
}

fn unix(text: &str) -> Result<ListenAddress, ListenError> {
    let (path, mode) = match text.rsplit_once(':') {
        None => (text, MODE),
        Some((path, digits)) => match u32::from_str_radix(digits, 8) {
            Ok(mode @ 0..=0o777) => (path, mode),
            _ => {
                return Err(ListenError(
                    "expected a mode in octal behind the path, such as unix:/run/tidegate.sock:660",
                ));
            }
        },
    };
    if !path.starts_with('/') {
        return Err(ListenError("expected a path from the root, such as unix:/run/tidegate.sock"));
    }
    Ok(ListenAddress::Unix { path: path.into(), mode })
}

impl fmt::Display for ListenAddress {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { address, is_clear: false } => address.fmt(f),
            Self::Tcp { address, is_clear: true } => write!(f, "http://{address}"),
            Self::Unix { path, mode: MODE } => write!(f, "unix:{}", path.display()),
            Self::Unix { path, mode } => write!(f, "unix:{}:{mode:o}", path.display()),
        }
    }
}

/// Binds one listener per worker, all on the same address; the kernel spreads connections over them.
///
/// Port 0 is resolved by the first listener, and the others take the port it was given. The listeners do not block, as
/// a runtime wants them.
///
/// # Errors
/// The address cannot be bound: it is taken, not of this machine, or not permitted.
pub fn bind(address: SocketAddr, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    if workers.get() == 1 {
        return Ok(vec![listener(address, false)?]);
    }
    if address.port() != 0 {
        // Sharing a port with a stranger of the same user would succeed in silence; not sharing it fails.
        drop(listener(address, false)?);
    }
    let first = listener(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..workers.get() {
        listeners.push(listener(address, true)?);
    }
    Ok(listeners)
}

fn listener(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG_MAX)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_port_that_the_first_was_given() {
        let listeners = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::new(3).unwrap()).unwrap();
        let ports: Vec<_> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        assert_eq!(ports.len(), 3);
        assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]));
    }

    #[test]
    fn a_taken_port_is_refused() {
        let [one, two] = [1, 2].map(|workers| NonZeroUsize::new(workers).unwrap());
        for (workers, others) in [(one, one), (one, two), (two, one), (two, two)] {
            let taken = bind("127.0.0.1:0".parse().unwrap(), workers).unwrap();
            let error = bind(taken[0].local_addr().unwrap(), others).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{workers} then {others}");
        }
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (text, expect) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:0", "[::1]:0"),
            ("http://127.0.0.1:80", "http://127.0.0.1:80"),
            ("unix:/run/t.sock", "unix:/run/t.sock"),
            ("unix:/run/t.sock:660", "unix:/run/t.sock"),
            ("unix:/run/t.sock:0666", "unix:/run/t.sock:666"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), expect);
        }
        for text in
            ["", "8080", "localhost:80", "unix:", "unix:t.sock", "unix:/t:888", "unix:/t:1777", "https://1.2.3.4:5"]
        {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }
}
