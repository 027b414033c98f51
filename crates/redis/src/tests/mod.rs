//! The store against real servers, started here on free ports of the loopback and ended with the test.

mod apart;
mod calm;
mod clustered;
mod deployed;
mod failing;
mod guards;
mod nodes;
#[path = "../../tests/given/proxy.rs"]
#[allow(dead_code, reason = "each of the test programs uses its part")]
mod proxy;
mod sentinel;
mod server;
mod settling;
mod sharing;
mod sliding;
mod vectors;
