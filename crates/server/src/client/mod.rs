//! The client's side: from a socket that is accepted to a request, and to the end of service.
//!
//! Read `serve` and `doors` (accepting, on all workers), `entrance` (who the client is, TLS, which version of HTTP),
//! `connection`, `http1` and `http2` (one of them, to its end), `observed` and `called` (what is noted of each request).

pub(crate) mod age;
pub(crate) mod believed;
pub(crate) mod called;
pub(crate) mod chance;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod doors;
pub(crate) mod drain;
pub(crate) mod entrance;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod listen;
pub(crate) mod observed;
pub(crate) mod progress;
pub(crate) mod proxy_protocol;
pub(crate) mod serve;
pub(crate) mod socket;
pub(crate) mod socket_file;
pub(crate) mod stream;
pub(crate) mod tether;
pub(crate) mod tls;
pub(crate) mod validity;
pub(crate) mod watchdog;
pub(crate) mod workers;
