//! Connections to the upstream that many requests share: HTTP/2.
//!
//! Each worker has its own. A trunk takes requests up to a bound, its own or the upstream's; beyond, a further one is
//! opened, by one request at a time, so that a crowd that comes at once does not open a crowd of trunks. A trunk whose
//! upstream says that it goes away takes no further request, and ends with those that it has.

use std::fmt;
use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::Bounds;
use crate::upstream::failure::Failure;
use crate::upstream::socket::UpstreamSocket;
use crate::upstream::sweep::{self, Age};
use crate::upstream::upload::Upload;

/// Requests that share a connection.
const STREAMS_MAX: usize = 100;

/// Bytes of one answer that may be on their way and not yet taken by the client.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same, of a connection: room for every stream, so that slow clients do not hold up the others.
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS_MAX as u32;

/// Bytes of one request body that wait to be sent.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// The silence after which an upstream with requests is asked whether it is still there. Servers of gRPC take more than
/// one such question in five minutes for abuse.
const PING_AFTER: Duration = Duration::from_secs(330);

/// The time that it has to say so.
const PONG_TIMEOUT: Duration = Duration::from_secs(20);

/// The shared connections of one worker to one upstream.
pub(crate) struct Trunks {
    open: Mutex<Vec<Entry>>,
    http: http2::Builder<TokioExecutor>,
    idle_timeout: Duration,
    sweeping: AtomicBool,
}

struct Entry {
    trunk: Arc<Trunk>,
    /// Since it last had a request.
    age: Age,
}

struct Trunk {
    sender: SendRequest<Upload>,
    streams: AtomicUsize,
    /// As many as the upstream takes at once.
    streams_max: Arc<AtomicUsize>,
}

impl Trunk {
    fn has_room(&self) -> bool {
        self.streams.load(Relaxed) < self.streams_max.load(Relaxed).clamp(1, STREAMS_MAX)
    }
}

impl Trunks {
    pub(crate) fn new(bounds: &Bounds) -> Arc<Self> {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(u32::try_from(bounds.header_bytes()).unwrap_or(u32::MAX))
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PONG_TIMEOUT);
        let idle_timeout = bounds.upstream.idle_timeout;
        Arc::new(Self { open: Mutex::default(), http, idle_timeout, sweeping: AtomicBool::new(false) })
    }

    /// A place on a trunk that has room.
    pub(crate) fn take(&self) -> Option<Channel> {
        let mut open = self.open();
        open.retain(|entry| !entry.trunk.sender.is_closed());
        let entry = open.iter_mut().find(|entry| entry.trunk.has_room())?;
        entry.age = Age::default();
        Some(Channel::on(&entry.trunk))
    }

    /// A place on a new trunk.
    pub(crate) async fn join(self: &Arc<Self>, socket: UpstreamSocket) -> Result<Channel, Failure> {
        let handshake = self.http.handshake(TokioIo::new(socket));
        let (sender, connection) = handshake.await.map_err(|error| Failure::of(&error))?;
        let streams_max = Arc::new(AtomicUsize::new(STREAMS_MAX));
        let said = Arc::clone(&streams_max);
        // Its end is seen by who uses it.
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            std::future::poll_fn(|cx| {
                let end = connection.as_mut().poll(cx);
                said.store(connection.current_max_send_streams(), Relaxed);
                end.map(drop)
            })
            .await;
        });
        let trunk = Arc::new(Trunk { sender, streams: AtomicUsize::new(0), streams_max });
        let channel = Channel::on(&trunk);
        self.open().push(Entry { trunk, age: Age::default() });
        if !self.sweeping.swap(true, Relaxed) {
            let trunks = Arc::downgrade(self);
            sweep::start(self.idle_timeout, move || trunks.upgrade().is_some_and(|trunks| trunks.pass()));
        }
        Ok(channel)
    }

    /// Lets go of what has been idle for too long. Is anything left?
    fn pass(&self) -> bool {
        let mut open = self.open();
        open.retain_mut(|Entry { trunk, age }| match trunk.streams.load(Relaxed) {
            0 => !age.is_up() && !trunk.sender.is_closed(),
            _ => {
                *age = Age::default();
                true
            }
        });
        self.sweeping.store(!open.is_empty(), Relaxed);
        !open.is_empty()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Nothing between lock and unlock can leave the list half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for one request on a shared connection.
pub(crate) struct Channel(Arc<Trunk>);

impl Channel {
    fn on(trunk: &Arc<Trunk>) -> Self {
        trunk.streams.fetch_add(1, Relaxed);
        Self(Arc::clone(trunk))
    }

    pub(crate) fn sender(&self) -> SendRequest<Upload> {
        self.0.sender.clone()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel")
    }
}
