//! Records what a store sends to its server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Stands between a store and its server.
pub(crate) struct Recorder {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<u8>>>,
}

/// A call of a script: its bytes, and its number of keys.
pub(crate) struct Call {
    pub(crate) keys: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Recorder {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let sent = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&sent);
        // It ends with the program.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                pass(client, port, &recorded);
            }
        });
        Self { address, sent }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The calls by digest that were sent so far.
    pub(crate) fn scripts(&self) -> Vec<Call> {
        let sent = self.sent.lock().expect("no recorder panicked");
        let (mut calls, mut rest) = (Vec::new(), sent.as_slice());
        while let Some((arguments, length)) = command(rest) {
            if arguments[0].eq_ignore_ascii_case(b"EVALSHA") {
                let keys = std::str::from_utf8(arguments[2]).ok().and_then(|count| count.parse().ok());
                calls.push(Call { keys: keys.expect("a count"), bytes: rest[..length].to_vec() });
            }
            rest = &rest[length..];
        }
        calls
    }
}

fn pass(mut client: TcpStream, port: u16, sent: &Arc<Mutex<Vec<u8>>>) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let (mut answers, mut to_client) = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    let sent = Arc::clone(sent);
    thread::spawn(move || std::io::copy(&mut answers, &mut to_client));
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            sent.lock().expect("no recorder panicked").extend_from_slice(&buffer[..count]);
            if server.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    });
}

/// The first command in these bytes, an array of bulk strings, and its length.
fn command(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (count, mut at) = number(bytes, b'*', 0)?;
    let mut arguments = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, start) = number(bytes, b'$', at)?;
        arguments.push(bytes.get(start..start + length)?);
        at = start + length + 2;
    }
    (at <= bytes.len()).then_some((arguments, at))
}

/// The number behind a type byte at `at`, and where its line ends.
fn number(bytes: &[u8], kind: u8, at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?.strip_prefix(&[kind])?;
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    let number = std::str::from_utf8(&line[..end]).ok()?.parse().ok()?;
    Some((number, at + 1 + end + 2))
}
