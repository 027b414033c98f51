//! Ports for servers that a test starts.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Below those that the system hands out by itself, to whoever connects or does not mind which: none of these is
/// taken between the moment at which it is found free and the one at which its server starts.
const PORTS: Range<u16> = 20_000..32_000;

/// How far apart two processes begin, at least when their numbers are neighbours.
const STRIDE: u32 = 97;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port of the loopback that nobody listens on, and that no other caller within this process is given.
pub(crate) fn free_port() -> u16 {
    let begin = std::process::id().wrapping_mul(STRIDE);
    (0..PORTS.len())
        .map(|_| begin.wrapping_add(NEXT.fetch_add(1, Relaxed)))
        .map(|n| PORTS.start + (n % PORTS.len() as u32) as u16)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("a port is free")
}
