//! Buckets in Redis or Valkey, shared by any number of processes.
//!
//! A decision is one call of one script, which reads the server's clock, decides over all limits of the request at once,
//! and writes what follows: there is no moment between reading and writing, and no caller's clock. Every bucket expires
//! by itself when it is full again.
//!
//! What holds:
//!
//! - The script reaches the decision of `tidegate-core`: both are held against the same vectors, and the core checks every
//!   answer from the numbers that the script saw.
//! - A quota that cannot be exact in a script's numbers is refused by name ([`OutOfRange`]).
//! - A decision ends by its deadline, whatever the server does. After a run of failures decisions fail at once until a
//!   probe is answered; there is one connection per runtime, and one attempt at a time to make it.
//! - A reply that was lost is never asked for again: it may have counted.
//!
//! Read `scripts/decide.lua` first, then `terms`, `names` and `wire` (how a decision gets there and back), `link` (the
//! connection) and `store`; then `reservation` and `ahead`, which ask the same script for more.

#![forbid(unsafe_code)]

mod ahead;
mod error;
mod health;
mod inspect;
mod link;
mod names;
mod reservation;
mod script;
mod store;
mod terms;
#[cfg(test)]
mod tests;
mod wire;

pub use ahead::Ahead;
pub use error::StoreError;
pub use health::FAILURES_MAX;
pub use link::{SHARING_MAX, WAITING_MAX};
pub use names::PREFIX_BYTES_MAX;
pub use store::{RedisOptions, RedisStore, SetupError};
pub use terms::{BURST_MAX, FILL_MAX, OutOfRange, RATE_MAX_PER_S};
