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

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Nothing that a test waits for takes this long; a test that waits longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An address at which nobody listens yet.
pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port::free_port()).into()
}

/// Do the tests run at their full length? They do if `TIDEGATE_LONG` is set.
pub(crate) fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some()
}
