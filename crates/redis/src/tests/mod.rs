//! The store against real servers, started here on free ports of the loopback and ended with the test.

mod failing;
mod server;
mod sharing;
mod vectors;
