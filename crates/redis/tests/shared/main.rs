//! The shared store by its public face, on real servers: the textbook script beside it, clocks that step, connections that
//! are cut, memory that is full, and what others reported of theirs.

#[path = "../given/mod.rs"]
mod given;
#[path = "../../src/tests/server.rs"]
#[allow(dead_code, reason = "each of the test programs uses its part")]
mod server;

mod clocks;
mod cuts;
mod expiry;
mod memory;
mod page;
mod reports;
mod textbook;
