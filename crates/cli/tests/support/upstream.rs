//! An upstream that does with each connection what the test says.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use super::http::Connection;

/// A listener whose connections are served by threads, as long as the test runs.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// Calls `serve` with each connection, in a thread of its own.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (serve, counted) = (Arc::new(serve), Arc::clone(&connections));
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, SeqCst);
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(socket));
            }
        });
        Self { address, connections }
    }

    /// As a flag of the program.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections there were so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

/// The head of the next request on this connection: its first line, and its fields with names in lower case. `None`
/// once the other side has closed it.
pub(crate) fn head(connection: &mut Connection) -> Option<(String, Vec<(String, String)>)> {
    let first = connection.line().ok()?;
    Some((first, connection.fields().ok()?))
}
