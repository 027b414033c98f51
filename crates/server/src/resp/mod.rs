//! The Redis protocol: a client of redis-cell or of throttlecrab asks, and is answered as it knows it.
//!
//! Read `command` (bytes into words), `throttle` (words into a limit, a decision into a reply), `handshake` (what else
//! clients ask), `work` (commands into replies), `session` (one client, to its end).

mod command;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod handshake;
mod reply;
mod session;
mod throttle;
mod work;

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tidegate_core::{Handling, LimitId, Store};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

pub use self::handshake::Password;
use self::session::Session;
use crate::client::connection::{Accepted, End};
use crate::client::entrance::{HANDSHAKE, Refused};
use crate::client::serve::serve_each;
use crate::client::socket::Socket;
use crate::operating::denied::Denied;
use crate::telling::metrics::register;
use crate::{Bounds, Connections, Drain, LimitMetrics, Listener, Tls};

/// The name of the one limit under which all keys are counted: each call brings its numbers.
pub(crate) const LIMIT: (&str, &str) = ("resp", "throttle");

/// Connections open at once, per worker.
const CONNECTIONS_MAX: usize = 20_000;
/// Clients keep their connections and expect to find them; a client that is gone without a word is not kept for ever.
const IDLE: Duration = Duration::from_secs(3_600);

/// What somebody is told who speaks in clear text where TLS is expected.
const CLEAR_TEXT: &[u8] = b"-ERR this port speaks TLS\r\n";

/// What the face is set up with.
#[derive(Clone, Debug, Default)]
pub struct RespSetup {
    /// How much it takes, and for how long it waits.
    pub bounds: Bounds,
    /// Certificates, if clients are to speak TLS.
    pub tls: Option<Tls>,
    /// What clients must say first, if anything.
    pub password: Option<Password>,
    /// Where its connections are counted.
    pub connections: Connections,
    /// What limits want of their store.
    pub handling: Handling,
}

/// What is counted of commands.
#[derive(Clone, Debug, Default)]
pub struct RespMetrics {
    /// Calls that were refused: their numbers make no limit, or the store refused them.
    pub refused: Counter,
    /// Commands that decide nothing.
    pub others: Counter,
}

impl RespMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            refused: register(
                registry,
                "resp_refused",
                "Calls to throttle whose numbers make no limit, or that the store refused",
            ),
            others: register(registry, "resp_other_commands", "Commands of the Redis protocol that decide nothing"),
        }
    }
}

/// Answers `CL.THROTTLE` and `THROTTLE` by the decisions of a store. Clones are the same face.
pub struct Resp<S>(Arc<Face<S>>);

pub(crate) struct Face<S> {
    store: Arc<S>,
    setup: RespSetup,
    /// The limit of all keys.
    limit: LimitId,
    metrics: RespMetrics,
    decisions: LimitMetrics,
    denied: Option<Arc<Denied>>,
    clients: AtomicU64,
}

impl<S: Store + 'static> Resp<S> {
    /// A face of this store.
    #[must_use]
    pub fn new(store: Arc<S>, setup: RespSetup, metrics: RespMetrics, decisions: LimitMetrics) -> Self {
        Self::counting(store, setup, metrics, decisions, None)
    }

    /// The same, with its denials counted by key.
    pub(crate) fn counting(
        store: Arc<S>,
        setup: RespSetup,
        metrics: RespMetrics,
        decisions: LimitMetrics,
        denied: Option<Arc<Denied>>,
    ) -> Self {
        let limit = LimitId::of(LIMIT.0, LIMIT.1);
        Self(Arc::new(Face { store, setup, limit, metrics, decisions, denied, clients: AtomicU64::new(0) }))
    }

    /// Serves clients on these listeners until `shutdown` is ready; then those who are in the middle of a command end it.
    ///
    /// # Errors
    /// A listener is not one that this runtime can wait for.
    pub async fn serve(&self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let connection = |accepted: Accepted, drain: Drain| {
            let face = Arc::clone(&self.0);
            async move {
                let open = face.setup.connections.open();
                let id = face.clients.fetch_add(1, Relaxed) + 1;
                let end = match secured(&face.setup, accepted, &drain).await {
                    Ok(socket) => Session::new(face, socket, id).serve(&drain).await,
                    Err(end) => end,
                };
                open.ended(end);
            }
        };
        serve_each(listeners, &self.0.setup.bounds, shutdown, connection).await
    }
}

impl<S> Clone for Resp<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Resp<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resp").field("setup", &self.0.setup).finish_non_exhaustive()
    }
}

/// The socket as it is, or within TLS if there is a certificate.
async fn secured(setup: &RespSetup, accepted: Accepted, drain: &Drain) -> Result<Socket, End> {
    let Accepted { mut plain, is_clear, .. } = accepted;
    let Some(tls) = setup.tls.as_ref().filter(|_| !is_clear) else { return Ok(Socket::Plain(plain)) };
    let refused = |why| Err(End::Refused(why));
    let shake = async {
        match plain.more().await {
            Ok(true) if plain.early().first() == Some(&HANDSHAKE) => {}
            Ok(true) => {
                // Whether it arrives or not, there is nothing more to do.
                let _ = plain.write_all(CLEAR_TEXT).await;
                let _ = plain.shutdown().await;
                return refused(Refused::Handshake);
            }
            Ok(false) | Err(_) => return refused(Refused::Silent),
        }
        match tls.acceptor().accept(plain).await {
            Ok(stream) => Ok(Socket::Tls(Box::new(stream))),
            Err(_) => refused(Refused::Handshake),
        }
    };
    tokio::select! {
        // A handshake is large, and many connections have none.
        shaken = timeout(setup.bounds.header_timeout, Box::pin(shake)) => shaken.unwrap_or(Err(End::TooSlow)),
        () = drain.started() => refused(Refused::Silent),
    }
}

/// The bounds of the face: as many clients as keep a connection each for as long as they live, and rest between two
/// calls.
#[must_use]
pub fn resp_bounds() -> Bounds {
    Bounds { connections_max: CONNECTIONS_MAX, idle_timeout: IDLE, ..Bounds::default() }
}
