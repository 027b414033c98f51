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
//!   probe is answered; there is one connection to each server, and one attempt at a time to make it.
//! - A reply that was lost is never asked for again: it may have counted. Only answers that prove that the script did not
//!   run are followed by another call.
//! - What speaks against the configuration is named once, with what to do ([`RedisStore::complaint`]).
//!
//! # Deployments
//!
//! | URL | what it is |
//! |---|---|
//! | `redis://user:password@host:6379/0` | one server; `rediss` is TLS, `?protocol=resp3` the protocol |
//! | `redis+unix:///run/redis.sock?db=0` | one server, by its socket |
//! | `redis+sentinel://user:password@host:26379,host:26379/service/0` | the primary that sentinels name |
//! | `redis+cluster://user:password@host:6379,host:6379` | a cluster, found from any of its nodes |
//!
//! A failover or a cluster's loss of a node can lose what was not replicated yet, as with anything in Redis: then a limit
//! admits again what had been admitted in that moment. `min-replicas-to-write 1` in the server trades it for refusals.
//! While a slot moves from node to node, a decision over several limits of a key that is on its way waits for the move,
//! at most for its deadline; a decision over one limit does not.
//!
//! # What a user needs
//!
//! ```text
//! ACL SETUSER gate on >password ~tg{* +eval +evalsha +script|load +time +get +set +del
//! ```
//!
//! For sliding logs also `+lindex +lrange +lset +ltrim +lpush +rpush +pexpire`, in a cluster also `+cluster|slots +asking`,
//! and `+select` for a database other than 0. `+role` lets a connection know a replica before the first decision does,
//! `+info` lets [`RedisStore::probe`] say what server it is, and `+pttl` lets a bucket be looked into; all three are
//! optional.
//!
//! Read `scripts/head.lua` and `scripts/decide.lua` first, then `terms`, `names` and `wire` (how a decision gets there
//! and back). Then the way: `address` (what a URL says), `route`, `link` (a queue), `serve` (its task), `call`, and for a
//! cluster `cluster` and `refresh`. `failure` says what each error speaks against, and `health` when a server is left
//! alone. `reservation` and `ahead` ask the same script for more.

#![forbid(unsafe_code)]

mod address;
mod ahead;
mod call;
mod cluster;
mod complaints;
mod connection;
mod error;
mod failure;
mod give_back;
mod health;
mod inspect;
mod link;
mod names;
mod probe;
mod redirect;
mod refresh;
mod reservation;
mod route;
mod script;
mod serve;
mod slot_map;
mod slots;
mod split;
mod state;
mod store;
mod target;
mod terms;
#[cfg(test)]
mod tests;
mod tls;
mod url;
mod wire;

pub use ahead::Ahead;
pub use call::SHARING_MAX;
pub use complaints::Complaint;
pub use error::StoreError;
pub use failure::FailureKind;
pub use health::FAILURES_MAX;
pub use link::WAITING_MAX;
pub use names::PREFIX_BYTES_MAX;
pub use probe::ServerInfo;
pub use state::StoreState;
pub use store::{RedisOptions, RedisStore, SetupError};
pub use terms::{BURST_MAX, FILL_MAX, OutOfRange, RATE_MAX_PER_S};
pub use tls::{TlsError, TlsFiles};
pub use url::UrlError;

/// Doors to parsers, for whoever throws bytes at them.
#[cfg(feature = "fuzz")]
pub mod fuzz {
    /// Reads the URL of a store.
    pub fn url(text: &str) {
        drop(crate::address::Address::parse(text).map_err(|error| error.to_string()));
    }
}
