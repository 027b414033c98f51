//! The client that loads each contestant: the same bytes, the same keys, the same order.
//!
//! The closed loop keeps every connection busy and tells what a server manages; it is one thread, and cheap, so that it
//! is not what is measured. The open loop sends at planned times and counts a latency from the planned time, so that a
//! server which stalls is charged for all that had to wait (no coordinated omission).

use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Callers that are told apart by their `x-api-key`.
pub(crate) const KEYS: u32 = 100_000;
/// Connections that are kept open.
pub(crate) const CONNECTIONS: usize = 64;

/// The longest answer that is understood, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;
/// The time that all connections of an open loop have to open.
const HEAD_START: Duration = Duration::from_millis(50);
/// Nothing takes this long, unless the server is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whose key is random has this number to start from, so that each run sends the same.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The name that callers ask for.
pub(crate) const HOST: &str = "api.example";

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: api.example\r\nX-Api-Key: key-00000000\r\n\r\n";
/// Where the last digit of the key stands in it.
const LAST_DIGIT: usize = HEAD.len() - 5;

/// Where a server is, and how callers connect to it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    /// Over TLS, if there is one.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// How callers connect over TLS to a server with this certificate. Sessions are not resumed, so that each connection
/// costs both servers the same.
pub(crate) fn trusting(certificate: CertificateDer<'static>) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let mut config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What came of a load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) span: Duration,
}

impl Tally {
    pub(crate) fn requests(&self) -> u64 {
        self.allowed + self.denied
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.requests() as f64 / self.span.as_secs_f64()
    }

    pub(crate) fn denied_share(&self) -> f64 {
        self.denied as f64 / self.requests() as f64
    }

    fn count(&mut self, status: u16) -> io::Result<()> {
        match status {
            200 => self.allowed += 1,
            429 => self.denied += 1,
            _ => return Err(io::Error::other(format!("answered with {status}"))),
        }
        Ok(())
    }
}

/// Which caller sends the next request.
#[derive(Clone, Copy)]
pub(crate) enum Callers {
    /// Each once, in their order.
    InTurn(u32),
    /// Any of them.
    Random(u64),
}

impl Callers {
    pub(crate) fn random() -> Self {
        Self::Random(SEED)
    }

    fn next(&mut self) -> u32 {
        match self {
            Self::InTurn(next) => {
                *next += 1;
                *next - 1
            }
            Self::Random(state) => {
                // xorshift64, and the upper half of it scaled.
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (((*state >> 32) * u64::from(KEYS)) >> 32) as u32
            }
        }
    }
}

/// Keeps all connections busy until `is_over` says so, asked with the requests so far and the time since the start.
pub(crate) fn closed_loop(
    server: &Door,
    mut callers: Callers,
    is_over: impl Fn(u64, Duration) -> bool,
) -> io::Result<Tally> {
    let mut connections = (0..CONNECTIONS).map(|_| Connection::open(server)).collect::<io::Result<Vec<_>>>()?;
    let mut tally = Tally::default();
    let start = Instant::now();
    for connection in &mut connections {
        connection.send(callers.next())?;
    }
    while !is_over(tally.requests(), start.elapsed()) {
        // Each is answered about as often as the others, so that waiting for them in turn keeps all of them busy.
        for connection in &mut connections {
            tally.count(connection.wait()?)?;
            connection.send(callers.next())?;
        }
    }
    for connection in &mut connections {
        tally.count(connection.wait()?)?;
    }
    tally.span = start.elapsed();
    Ok(tally)
}

/// Sends `per_second` requests for `span`, evenly spaced; gives the latencies, sorted.
///
/// Each connection has its thread, which sleeps until its next request is planned. A client that spins instead would
/// mislead the kernel: whom it wakes is put on its processor, where it would soon sleep itself if it were a usual one.
pub(crate) fn open_loop(server: &Door, per_second: f64, span: Duration) -> io::Result<Vec<Duration>> {
    // Otherwise sleep may take 50 us more than it is told to; the threads inherit it. Without it all are told later.
    let _ = fs::write("/proc/self/timerslack_ns", "1");
    let plan =
        Plan { start: Instant::now() + HEAD_START, per_second, count: (per_second * span.as_secs_f64()) as usize };
    let mut latencies = thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|nth| scope.spawn(move || plan.send_each(server, nth))).collect();
        let parts = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(ErrorKind::Other.into())));
        parts.collect::<io::Result<Vec<_>>>().map(|parts| parts.concat())
    })?;
    latencies.sort_unstable();
    Ok(latencies)
}

/// When requests are sent.
#[derive(Clone, Copy)]
struct Plan {
    start: Instant,
    per_second: f64,
    count: usize,
}

impl Plan {
    /// Sends the requests of the `nth` connection; gives their latencies.
    fn send_each(self, server: &Door, nth: usize) -> io::Result<Vec<Duration>> {
        let mut connection = Connection::open(server)?;
        let mut callers = Callers::Random(SEED ^ nth as u64);
        let mut latencies = Vec::new();
        for i in (nth..self.count).step_by(CONNECTIONS) {
            let planned = self.start + Duration::from_secs_f64(i as f64 / self.per_second);
            thread::sleep(planned.saturating_duration_since(Instant::now()));
            connection.send(callers.next())?;
            let status = connection.wait()?;
            if status != 200 {
                return Err(io::Error::other(format!("answered with {status}")));
            }
            latencies.push(planned.elapsed());
        }
        Ok(latencies)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection with at most one request under way.
struct Connection {
    stream: Stream,
    request: Vec<u8>,
    answer: Vec<u8>,
    read: usize,
}

impl Connection {
    fn open(server: &Door) -> io::Result<Self> {
        let socket = TcpStream::connect(server.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let stream = match &server.tls {
            None => Stream::Plain(socket),
            Some(tls) => {
                let name = ServerName::try_from(HOST).map_err(io::Error::other)?;
                let tls = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(tls, socket)))
            }
        };
        Ok(Self { stream, request: HEAD.to_vec(), answer: vec![0; ANSWER_BYTES_MAX], read: 0 })
    }

    fn send(&mut self, caller: u32) -> io::Result<()> {
        let (mut rest, mut at) = (caller, LAST_DIGIT);
        for _ in 0..8 {
            self.request[at] = b'0' + (rest % 10) as u8;
            (rest, at) = (rest / 10, at - 1);
        }
        // It is far smaller than a socket's buffer, so it goes out whole.
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(&self.request),
            Stream::Tls(stream) => stream.write_all(&self.request).and_then(|()| stream.flush()),
        }
    }

    /// Waits for the answer; gives its status.
    fn wait(&mut self) -> io::Result<u16> {
        loop {
            let room = &mut self.answer[self.read..];
            let read = match &mut self.stream {
                Stream::Plain(socket) => socket.read(room),
                Stream::Tls(stream) => stream.read(room),
            };
            match read? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.read += read,
            }
            if let Some(status) = status_if_complete(&self.answer[..self.read])? {
                self.read = 0;
                return Ok(status);
            }
        }
    }
}

fn status_if_complete(answer: &[u8]) -> io::Result<Option<u16>> {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let body = answer.len() - head - 4;
    let text = str::from_utf8(&answer[..head]).map_err(io::Error::other)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match (status, length) {
        (Some(status), Some(length)) => Ok((length == body).then_some(status)),
        _ => Err(io::Error::other(format!("not an answer with a length: {text}"))),
    }
}
