//! The listeners of one worker, accepted on by turns.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::{TcpListener, UnixListener};

use crate::client::connection::Accepted;
use crate::client::listen::ListenerKind;
use crate::client::socket::{Kernel, Plain};
use crate::client::socket_file::SocketFile;
use crate::{Listener, Peer};

/// All listeners of one worker.
pub(crate) struct Doors {
    doors: Vec<Door>,
    /// The one that is asked first: behind the one that had the last connection, so that none waits for ever.
    first: usize,
}

struct Door {
    kind: Kind,
    is_clear: bool,
}

enum Kind {
    Tcp(TcpListener),
    /// The file is there for as long as the listener is.
    Unix(UnixListener, #[expect(dead_code, reason = "it is dropped, which removes it")] Arc<SocketFile>),
}

impl Doors {
    /// Readies them for this runtime.
    pub(crate) fn open(listeners: Vec<Listener>) -> io::Result<Self> {
        let doors = listeners.into_iter().map(Door::open).collect::<io::Result<_>>()?;
        Ok(Self { doors, first: 0 })
    }

    /// The next connection on any of them.
    pub(crate) async fn accept(&mut self) -> io::Result<Accepted> {
        poll_fn(|cx| {
            for turn in 0..self.doors.len() {
                let place = (self.first + turn) % self.doors.len();
                if let Poll::Ready(accepted) = self.doors[place].poll_accept(cx) {
                    self.first = place + 1;
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Door {
    fn open(listener: Listener) -> io::Result<Self> {
        let kind = match listener.kind {
            ListenerKind::Tcp(tcp) => {
                tcp.set_nonblocking(true)?;
                Kind::Tcp(TcpListener::from_std(tcp)?)
            }
            ListenerKind::Unix(unix, file) => {
                unix.set_nonblocking(true)?;
                Kind::Unix(UnixListener::from_std(unix)?, file)
            }
        };
        Ok(Self { kind, is_clear: listener.is_clear })
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let (kernel, peer) = match &self.kind {
            Kind::Tcp(listener) => {
                let (socket, address) = ready!(listener.poll_accept(cx))?;
                // Without it small answers wait for the client's acknowledgement; a socket that refuses still works.
                let _ = socket.set_nodelay(true);
                (Kernel::Tcp(socket), Peer::from(address))
            }
            Kind::Unix(listener, _) => (Kernel::Unix(ready!(listener.poll_accept(cx))?.0), Peer::Unix),
        };
        Poll::Ready(Ok(Accepted { plain: Plain::new(kernel), peer, is_clear: self.is_clear }))
    }
}
