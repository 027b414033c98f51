//! The shared store when its server, or the way to it, breaks: every limit does what it declared, in time, and comes back by
//! itself. Real servers, and a network that the test breaks.

#[path = "../../../redis/tests/given/mod.rs"]
mod given;
#[path = "../../../redis/src/tests/nodes.rs"]
#[allow(dead_code, reason = "each of the programs uses its part")]
mod nodes;
#[path = "../../../redis/src/tests/sentinel.rs"]
mod sentinel;
#[path = "../../../redis/src/tests/server.rs"]
#[allow(dead_code, reason = "each of the test programs uses its part")]
mod server;

mod callers;
mod chaos;
mod outcomes;
mod reports;
mod scenarios;
mod seen;
