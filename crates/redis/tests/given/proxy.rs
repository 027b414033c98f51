//! A network that can be broken: a TCP proxy in front of a server.
//!
//! It runs on a thread of its own, so a test may block. What passes is said with [`Proxy::set`] and holds at once, also for
//! the connections that are open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Bytes pass, each direction taking this long.
    Pass(Duration),
    /// Connections are accepted and bytes taken, and nothing ever comes back. A connection that lost bytes stays so.
    Swallow,
    /// Nobody listens, and open connections are cut.
    Refuse,
}

/// Bytes pass at once.
pub(crate) const OPEN: Way = Way::Pass(Duration::ZERO);

/// Chunks under way in one direction of a connection.
const CHUNKS_MAX: usize = 1_024;

/// A proxy, ended when dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    way: watch::Sender<(Way, u64)>,
    counts: Arc<Counts>,
}

/// What went through, and how much more may in each direction before the connection is cut.
struct Counts {
    connections: AtomicU64,
    bytes: [AtomicU64; 2],
    budgets: [AtomicI64; 2],
}

#[derive(Clone, Copy)]
enum Direction {
    Requests = 0,
    Replies = 1,
}

impl Proxy {
    /// A proxy in front of the server at this port of the loopback.
    pub(crate) fn before(port: u16) -> Self {
        let unlimited = || AtomicI64::new(i64::MAX);
        let counts = Counts {
            connections: AtomicU64::new(0),
            bytes: [AtomicU64::new(0), AtomicU64::new(0)],
            budgets: [unlimited(), unlimited()],
        };
        let counts = Arc::new(counts);
        let (way, watched) = watch::channel((OPEN, 0));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = serve(listener, SocketAddr::from(([127, 0, 0, 1], port)), watched, Arc::clone(&counts));
        thread::spawn(|| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(serving));
        Self { address, way, counts }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// How the network is from now on.
    pub(crate) fn set(&self, way: Way) {
        self.way.send_modify(|(now, _)| *now = way);
    }

    /// Cuts all connections that are open.
    pub(crate) fn cut(&self) {
        self.way.send_modify(|(_, cuts)| *cuts += 1);
    }

    /// The next connection to take so many more bytes of requests is cut right after them.
    pub(crate) fn cut_after_requests(&self, bytes: i64) {
        self.counts.budgets[Direction::Requests as usize].store(bytes, Ordering::SeqCst);
    }

    /// The next connection to give back so many more bytes of replies is cut right after them.
    pub(crate) fn cut_after_replies(&self, bytes: i64) {
        self.counts.budgets[Direction::Replies as usize].store(bytes, Ordering::SeqCst);
    }

    /// No connection is cut after so many bytes.
    pub(crate) fn cut_none(&self) {
        self.cut_after_requests(i64::MAX);
        self.cut_after_replies(i64::MAX);
    }

    /// Connections that were accepted so far.
    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Bytes of requests and of replies that were taken so far.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|i| self.counts.bytes[i].load(Ordering::SeqCst))
    }
}

async fn serve(
    listener: std::net::TcpListener,
    to: SocketAddr,
    mut way: watch::Receiver<(Way, u64)>,
    counts: Arc<Counts>,
) {
    let address = listener.local_addr().unwrap();
    let mut listener = Some(TcpListener::from_std(listener).unwrap());
    // The proxy ends when its sender is dropped.
    loop {
        let is_refused = way.borrow_and_update().0 == Way::Refuse;
        match (is_refused, &listener) {
            (true, Some(_)) => listener = None,
            (false, None) => listener = Some(TcpListener::bind(address).await.unwrap()),
            _ => {}
        }
        let accepting = async {
            match &listener {
                Some(listener) => listener.accept().await.unwrap().0,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            client = accepting => {
                counts.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(connection(client, to, way.clone(), Arc::clone(&counts)));
            }
            changed = way.changed() => if changed.is_err() { return },
        }
    }
}

/// Serves one connection until one of its sides or the test ends it.
async fn connection(client: TcpStream, to: SocketAddr, mut way: watch::Receiver<(Way, u64)>, counts: Arc<Counts>) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let cuts = way.borrow_and_update().1;
    let cut = way.clone();
    let is_cut = async move {
        let mut cut = cut;
        let _ = cut.wait_for(|(way, now)| *way == Way::Refuse || *now != cuts).await;
    };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = pump(from_client, to_server, Direction::Requests, way.clone(), &counts) => {}
        () = pump(from_server, to_client, Direction::Replies, way, &counts) => {}
        () = is_cut => {}
    }
}

/// Passes bytes on, each as late as the network is slow, until one side ends or the budget is spent.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    way: watch::Receiver<(Way, u64)>,
    counts: &Counts,
) {
    let (sender, mut chunks) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS_MAX);
    let reading = async move {
        let mut buffer = vec![0; 64 * 1024];
        let mut is_dead = false;
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            counts.bytes[direction as usize].fetch_add(read as u64, Ordering::SeqCst);
            let now = way.borrow().0;
            is_dead |= now == Way::Swallow;
            let Way::Pass(delay) = now else { continue };
            if is_dead {
                continue;
            }
            let (passing, is_last) = counts.take(direction, read);
            if sender.send((Instant::now() + delay, buffer[..passing].to_vec())).await.is_err() || is_last {
                return;
            }
        }
        if is_dead {
            std::future::pending::<()>().await;
        }
    };
    let writing = async move {
        while let Some((at, chunk)) = chunks.recv().await {
            sleep_until(at).await;
            if to.write_all(&chunk).await.is_err() {
                return;
            }
        }
    };
    // The reader ends first, and what it took is still written.
    tokio::join!(reading, writing);
}

impl Counts {
    /// How many of these bytes pass, and whether they are the last ones.
    fn take(&self, direction: Direction, bytes: usize) -> (usize, bool) {
        let budget = &self.budgets[direction as usize];
        let bytes = bytes as i64;
        let left = budget.load(Ordering::SeqCst);
        if left == i64::MAX {
            return (bytes as usize, false);
        }
        budget.store((left - bytes).max(0), Ordering::SeqCst);
        (left.min(bytes) as usize, left <= bytes)
    }
}
