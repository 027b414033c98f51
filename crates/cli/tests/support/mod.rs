//! The real program as a process of its own, and a client and an upstream that speak to it in bytes.

#![allow(dead_code, reason = "each test program uses its own part of it")]

#[path = "../../../redis/src/tests/free_port.rs"]
mod free_port;
pub(crate) mod http;
pub(crate) mod logs;
pub(crate) mod nginx;
pub(crate) mod program;
pub(crate) mod redis;
pub(crate) mod upstream;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nothing that a test waits for takes this long; a test that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An address at which nobody listens yet.
pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port::free_port()).into()
}

/// Stops a process without ending it: its sockets stay open, and nothing answers. Threads that run take the signal a little
/// later, and are waited for.
pub(crate) fn freeze(process: u32) {
    let kill = format!("kill -STOP {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    let is_stopped = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
    };
    let since = Instant::now();
    while !fs::read_dir(format!("/proc/{process}/task")).unwrap().map_while(Result::ok).all(is_stopped) {
        assert!(since.elapsed() < PATIENCE, "{process} goes on");
        sleep(Duration::from_millis(1));
    }
}

/// Do the tests run at their full length? They do if `TIDEGATE_LONG` is set.
pub(crate) fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some()
}
