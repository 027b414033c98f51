//! What a crowd costs the decision server: a million keys, ten thousand clients that rest, a thousand that drip.
//!
//! ```text
//! cargo bench -p tidegate-cli --bench crowd     # a minute
//! ```
//!
//! Memory is what the process holds (`VmRSS`), beside what it held before. How long somebody else waits is measured with
//! the drips and without, by the same client, one call at a time.

#[path = "../proxy/process.rs"]
#[allow(dead_code, reason = "the proxy's bench uses the rest")]
mod process;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::process::{Server, free_address};

const KEYS: usize = 1_000_000;
const PIPELINE: usize = 1_000;
const RESTING: usize = 10_000;
const DRIPPING: usize = 1_000;
/// After so long a client is at rest.
const REST: Duration = Duration::from_secs(8);
/// A drip each second, for so many.
const DRIPS: u32 = 10;
/// Calls one after the other of somebody else.
const CALLS: usize = 20_000;
const MIB: f64 = 1_048_576.0;

/// The targets, in MiB.
const KEYS_MAX: f64 = 64.0;
const RESTING_MAX: f64 = 100.0;

/// The faces that clients rest at, with what they ask before.
const FACES: [(&str, &[u8], &[u8]); 2] =
    [("--resp", b"PING\r\n", b"+PONG\r\n"), ("--http", b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n", b"HTTP/1.1 200")];

fn main() -> io::Result<()> {
    keys()?;
    for (face, ask, answer) in FACES {
        resting(face, ask, answer)?;
    }
    dripping()
}

fn keys() -> io::Result<()> {
    let server = tidegate("--resp")?;
    let before = resident(&server)?;
    let mut client = TcpStream::connect(server.address)?;
    for batch in 0..KEYS / PIPELINE {
        let calls: String = (0..PIPELINE).map(|i| call(&format!("key:{:012}", batch * PIPELINE + i))).collect();
        client.write_all(calls.as_bytes())?;
        replies(&mut client, PIPELINE)?;
    }
    report(&format!("{KEYS} keys"), resident(&server)? - before, KEYS_MAX);
    Ok(())
}

fn resting(face: &str, ask: &[u8], answer: &[u8]) -> io::Result<()> {
    let server = tidegate(face)?;
    let before = resident(&server)?;
    let mut clients = Vec::with_capacity(RESTING);
    for _ in 0..RESTING {
        let mut client = TcpStream::connect(server.address)?;
        client.write_all(ask)?;
        let mut said = vec![0; answer.len()];
        client.read_exact(&mut said)?;
        assert_eq!(said, answer, "{}", String::from_utf8_lossy(&said));
        clients.push(client);
    }
    let come = resident(&server)? - before;
    println!("{RESTING} clients that have just come to {face}: {come:.1} MiB");
    thread::sleep(REST);
    report(&format!("{RESTING} clients that rest at {face}"), resident(&server)? - before, RESTING_MAX);
    Ok(())
}

fn dripping() -> io::Result<()> {
    let server = tidegate("--resp")?;
    let alone = waits(server.address)?;
    let mut slow = (0..DRIPPING).map(|_| TcpStream::connect(server.address)).collect::<io::Result<Vec<_>>>()?;
    let is_over = AtomicBool::new(false);
    let beside = thread::scope(|scope| {
        scope.spawn(|| {
            // A command that needs longer than it may take is cut, so each drips the beginning of one.
            for drip in b"*5\r\n$11\r\nCL".iter().take(DRIPS as usize) {
                slow.iter_mut().for_each(|client| drop(client.write_all(&[*drip])));
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
        let beside = waits(server.address);
        is_over.store(true, Ordering::Relaxed);
        beside
    })?;
    println!("one call, alone:                 {}", shown(&alone));
    println!("one call, beside {DRIPPING} that drip: {}", shown(&beside));
    Ok(())
}

fn tidegate(face: &str) -> io::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["serve", "--admin", "off", face, &address.to_string()]);
    for other in ["--resp", "--http", "--grpc"].into_iter().filter(|other| *other != face) {
        command.args([other, "off"]);
    }
    Server::start(command, address)
}

/// What the process holds. MiB.
fn resident(server: &Server) -> io::Result<f64> {
    // What has just come is still being written down.
    thread::sleep(Duration::from_millis(500));
    let status = fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map(|kib| kib * 1_024.0 / MIB).ok_or_else(|| io::Error::other("no VmRSS"))
}

fn call(key: &str) -> String {
    format!("*5\r\n$11\r\nCL.THROTTLE\r\n${}\r\n{key}\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n", key.len())
}

/// Reads so many replies of `CL.THROTTLE`, each of six lines.
fn replies(client: &mut TcpStream, count: usize) -> io::Result<()> {
    let (mut lines, mut piece) = (count * 6, [0; 65_536]);
    while lines > 0 {
        let length = client.read(&mut piece)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        lines = lines.saturating_sub(piece[..length].iter().filter(|byte| **byte == b'\n').count());
    }
    Ok(())
}

/// How long each of some calls took, sorted.
fn waits(address: SocketAddr) -> io::Result<Vec<Duration>> {
    let mut client = TcpStream::connect(address)?;
    client.set_nodelay(true)?;
    let ask = call("somebody");
    let mut waits = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let asked = Instant::now();
        client.write_all(ask.as_bytes())?;
        replies(&mut client, 1)?;
        waits.push(asked.elapsed());
    }
    waits.sort();
    Ok(waits)
}

fn shown(waits: &[Duration]) -> String {
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    format!("median {:.0} us, 99 % {:.0} us, 99.9 % {:.0} us", at(0.5), at(0.99), at(0.999))
}

fn report(what: &str, mib: f64, most: f64) {
    println!("{what}: {mib:.1} MiB more, at most {most}: {}", if mib <= most { "met" } else { "missed" });
}
