//! Sockets that several workers accept on.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted, per listener.
const BACKLOG_MAX: i32 = 1024;

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
    #[cfg(unix)]
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
}
