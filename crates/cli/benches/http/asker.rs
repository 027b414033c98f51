//! One thread that keeps connections busy with one call each, and reads every answer to its end.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

const CONNECTIONS: usize = 50;
const KEYS: u64 = 100_000;
/// The longest answer that is understood, in bytes.
const ANSWER_BYTES_MAX: usize = 4096;
/// No round takes this long, unless the server is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked, over and over, each time of another key.
#[derive(Clone)]
pub(crate) struct Call {
    bytes: Vec<u8>,
    /// Where the eight digits of the key end, if there is one.
    digits_end: Option<usize>,
    random: u64,
}

impl Call {
    pub(crate) fn get(target: &str) -> Self {
        Self::of(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    pub(crate) fn post(target: &str, body: &str) -> Self {
        let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        Self::of(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    fn of(text: String) -> Self {
        let digits_end = text.find("key-00000000").map(|at| at + "key-00000000".len());
        Self { bytes: text.into_bytes(), digits_end, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The call of another key.
    fn next(&mut self) -> &[u8] {
        // xorshift64, and the upper half of it scaled.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let mut key = ((self.random >> 32) * KEYS) >> 32;
        for at in self.digits_end.into_iter().flat_map(|end| (end - 8..end).rev()) {
            self.bytes[at] = b'0' + (key % 10) as u8;
            key /= 10;
        }
        &self.bytes
    }
}

/// Asks so many times, and gives the calls a second.
pub(crate) fn ask(server: SocketAddr, call: &Call, calls: u32) -> io::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            connections.push(Connection::open(server).await?);
        }
        let start = Instant::now();
        // All of them take what is left to ask from one place; nothing waits for a connection whose answer is late.
        let shared = Arc::new(Mutex::new((call.clone(), calls)));
        let mut asking: JoinSet<_> = connections.into_iter().map(|one| one.ask(Arc::clone(&shared))).collect();
        while let Some(asked) = timeout(PATIENCE, asking.join_next()).await? {
            asked??;
        }
        Ok(f64::from(calls) / start.elapsed().as_secs_f64())
    })
}

/// A connection with one call under way.
struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(server: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(server).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, answer: vec![0; ANSWER_BYTES_MAX] })
    }

    /// Asks one call after the other for as long as there are any.
    async fn ask(mut self, shared: Arc<Mutex<(Call, u32)>>) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            {
                let (call, left) = &mut *shared.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(fewer) = left.checked_sub(1) else { return Ok(()) };
                *left = fewer;
                bytes.clear();
                bytes.extend_from_slice(call.next());
            }
            self.socket.write_all(&bytes).await?;
            self.wait().await?;
        }
    }

    async fn wait(&mut self) -> io::Result<()> {
        let mut length = 0;
        loop {
            match self.socket.read(&mut self.answer[length..]).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
            if is_whole(&self.answer[..length])? {
                return Ok(());
            }
        }
    }
}

fn is_whole(answer: &[u8]) -> io::Result<bool> {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(false) };
    let text = str::from_utf8(&answer[..head]).map_err(io::Error::other)?;
    let mut lines = text.split("\r\n");
    let is_ok = lines.next().is_some_and(|line| line.contains(" 200 "));
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match length.filter(|_| is_ok) {
        Some(length) => Ok(length == answer.len() - head - 4),
        None => Err(io::Error::other(format!("not an answer with a length: {text}"))),
    }
}
