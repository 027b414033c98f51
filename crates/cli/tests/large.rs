//! Bodies that are larger than the memory they may take on their way.

mod support;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use std::{fs, thread};

use support::http::Connection;
use support::program::Proxy;
use support::upstream::{Upstream, head};

/// The length of a large body.
const BODY_BYTES: u64 = 1 << 30;
/// The most memory that the proxy may ever have resident beyond what it has before the first request, whatever passes
/// through it. A part of that are pages of the program itself.
const GROWTH_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a denied body that may leave the client: what the sockets of both sides hold, and a little more.
const DENIED_BYTES_MAX: u64 = 16 << 20;

/// An endless stream of bytes that repeats after a length that no buffer has, so that what is lost, doubled or out of
/// order is seen.
struct Pattern {
    block: Vec<u8>,
    at: usize,
}

impl Pattern {
    fn new() -> Self {
        const PRIME: usize = 251;
        Self { block: (0..PRIME * 4099).map(|i| ((i % PRIME) ^ (i / PRIME % 256)) as u8).collect(), at: 0 }
    }

    /// The next bytes, at most so many; never none unless none are asked for.
    fn next(&mut self, bytes_max: u64) -> &[u8] {
        let start = self.at;
        let end = self.block.len().min(start + usize::try_from(bytes_max).unwrap_or(usize::MAX));
        self.at = end % self.block.len();
        &self.block[start..end]
    }

    fn check(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let expected = self.next(bytes.len() as u64);
            let (now, later) = bytes.split_at(expected.len());
            assert!(now == expected, "a body was changed on its way");
            bytes = later;
        }
    }
}

/// Writes a body of so many bytes; returns how many left before the other side closed.
fn write_body(socket: &mut impl Write, bytes: u64) -> (u64, io::Result<()>) {
    let (mut pattern, mut left) = (Pattern::new(), bytes);
    while left > 0 {
        match socket.write(pattern.next(left.min(256 << 10))) {
            Ok(0) => return (bytes - left, Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => {
                left -= written as u64;
                // Go back to what was not taken.
                pattern.at = ((bytes - left) % pattern.block.len() as u64) as usize;
            }
            Err(error) => return (bytes - left, Err(error)),
        }
    }
    (bytes, Ok(()))
}

/// Reads and checks a body of so many bytes, and calls `pause` once on the way.
fn read_body(socket: &mut impl Read, bytes: u64, pause: impl FnOnce()) {
    let (mut pattern, mut left, mut pause) = (Pattern::new(), bytes, Some(pause));
    let mut buffer = vec![0; 256 << 10];
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = socket.read(&mut buffer[..room]).unwrap();
        assert!(read > 0, "the body ended {left} bytes early");
        pattern.check(&buffer[..read]);
        left -= read as u64;
        if left < bytes / 2 {
            pause.take().into_iter().for_each(|pause| pause());
        }
    }
}

/// Takes any body and says its length; for `GET /N` sends a body of N bytes.
fn serve(socket: TcpStream) {
    let mut connection = Connection::over(socket);
    while let Some((request, fields)) = head(&mut connection) {
        if let Some(bytes) = request.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()?.parse().ok()) {
            connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").as_bytes()).unwrap();
            write_body(connection.socket.get_mut(), bytes).1.unwrap();
        } else {
            let length = fields.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
            read_body(&mut connection.socket, length.parse().unwrap(), || thread::sleep(Duration::from_millis(200)));
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{length}", length.len());
            connection.send(answer.as_bytes()).unwrap();
        }
    }
}

/// The most memory that the process ever had resident.
fn resident_bytes_max(proxy: &Proxy) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn proxy(upstream: &Upstream, limit: &str) -> Proxy {
    Proxy::start(&["--limit", limit, "--upstream", &upstream.url()])
}

#[test]
fn an_upload_and_a_download_pass_in_constant_memory() {
    let upstream = Upstream::start(serve);
    let proxy = proxy(&upstream, "100/s");
    let at_first = resident_bytes_max(&proxy);

    let mut connection = Connection::open(proxy.address);
    let post = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    connection.send(post.as_bytes()).unwrap();
    write_body(connection.socket.get_mut(), BODY_BYTES).1.unwrap();
    let reply = connection.reply("POST").unwrap();
    assert_eq!((reply.status, reply.text()), (200, BODY_BYTES.to_string().as_str()));
    let after_upload = resident_bytes_max(&proxy);

    connection.send(format!("GET /{BODY_BYTES} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let reply = connection.head().unwrap();
    assert_eq!((reply.status, reply.field("content-length")), (200, Some(BODY_BYTES.to_string().as_str())));
    // A client that stops reading for a while must slow the upstream down, and not fill the proxy.
    read_body(&mut connection.socket, BODY_BYTES, || thread::sleep(Duration::from_millis(200)));
    let after_download = resident_bytes_max(&proxy);
    println!(
        "resident at most: {at_first} bytes, {after_upload} after the upload, {after_download} after the download"
    );
    let most = after_upload.max(after_download);
    assert!(most <= at_first + GROWTH_BYTES_MAX, "{at_first}, {after_upload}, {after_download}");
}

#[test]
fn a_denied_upload_is_not_read_and_never_gets_further() {
    let upstream = Upstream::start(serve);
    let proxy = proxy(&upstream, "0/min");
    let mut connection = Connection::open(proxy.address);
    let post = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    connection.send(post.as_bytes()).unwrap();
    assert_eq!(connection.reply("POST").unwrap().status, 429);
    let (sent, end) = write_body(connection.socket.get_mut(), BODY_BYTES);
    println!("{sent} bytes of a denied body left the client, then {end:?}");
    assert!(end.is_err() && sent <= DENIED_BYTES_MAX, "{sent} bytes, then {end:?}");
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn who_asks_before_sending_a_body_is_denied_without_it() {
    let upstream = Upstream::start(serve);
    let proxy = proxy(&upstream, "1/h");
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    let mut connection = Connection::open(proxy.address);
    connection.send(post.as_bytes()).unwrap();
    assert_eq!(connection.head().unwrap().status, 100);
    connection.send(Pattern::new().next(4)).unwrap();
    assert_eq!(connection.reply("POST").unwrap().status, 200);

    let mut connection = Connection::open(proxy.address);
    connection.send(post.as_bytes()).unwrap();
    assert_eq!(connection.reply("POST").unwrap().status, 429, "and no 100 before it");
    assert_eq!(upstream.connections(), 1);
}
