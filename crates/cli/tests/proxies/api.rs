//! The API behind the proxies, which keeps what it was asked, and agrees to WebSockets.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::support::http::Connection;
use crate::support::upstream::{Upstream, head};

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Method and target.
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body_bytes: usize,
    /// The connection that it came on, counted from the first.
    pub(crate) connection: usize,
}

impl Seen {
    /// The value of the last line of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(each, _)| each == name).map(|(_, value)| &**value)
    }
}

/// A server that answers by what it is asked, on connections that stay open.
pub(crate) struct Api {
    upstream: Upstream,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Api {
    /// It answers `/forbidden` with 403, breaks off at `/broken`, upgrades what asks for it to an echo, and answers 200
    /// otherwise.
    pub(crate) fn start() -> Self {
        Self::answering(|seen| match &*seen.line {
            line if line.contains("/forbidden") => answer("403 Forbidden", "", "not for you\n"),
            line if line.contains("/broken") => String::new(),
            _ if seen.field("upgrade").is_some() => UPGRADED.to_owned(),
            _ => answer("200 OK", "", "api\n"),
        })
    }

    /// It answers as `answer` says, and breaks off where that says nothing.
    pub(crate) fn answering(answer: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, connections) = (Arc::clone(&seen), Arc::new(Mutex::new(0)));
        let upstream = Upstream::start(move |socket| {
            let connection = {
                let mut count = connections.lock().unwrap();
                *count += 1;
                *count
            };
            let mut socket = Connection::over(socket);
            while let Some(request) = next(&mut socket, connection) {
                let answer = answer(&request);
                kept.lock().unwrap().push(request);
                if answer.is_empty() || socket.send(answer.as_bytes()).is_err() {
                    return;
                }
                if answer == UPGRADED {
                    return echo(&mut socket);
                }
            }
        });
        Self { upstream, seen }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.upstream.address
    }

    /// What it was asked since the last time that it was asked this.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// What it says to whoever asks for an upgrade with the key of RFC 6455, section 1.3.
const UPGRADED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// An answer as it goes over the wire.
pub(crate) fn answer(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn next(socket: &mut Connection, connection: usize) -> Option<Seen> {
    let (line, fields) = head(socket)?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let mut seen = Seen { line, fields, body_bytes: 0, connection };
    if let Some(length) = seen.field("content-length").map(|length| length.parse().unwrap()) {
        let mut body = vec![0; length];
        socket.socket.read_exact(&mut body).ok()?;
        seen.body_bytes = length;
    } else if seen.field("transfer-encoding").is_some() {
        while let length @ 1.. = usize::from_str_radix(&socket.line().ok()?, 16).ok()? {
            let mut chunk = vec![0; length + 2];
            socket.socket.read_exact(&mut chunk).ok()?;
            seen.body_bytes += length;
        }
        socket.line().ok()?;
    }
    Some(seen)
}

/// Says again what it hears.
fn echo(socket: &mut Connection) {
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = socket.socket.read(&mut piece) {
        if socket.socket.get_mut().write_all(&piece[..length]).is_err() {
            return;
        }
    }
}
