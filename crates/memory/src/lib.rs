//! Buckets in this process: a single [`Bucket`], and a keyed [`Table`] of them.
//!
//! Both are shared by reference between threads. A call is synchronous, allocates nothing, and is one atomic step:
//! no lock outlives the decision, and no thread has to work in the background. Time is always an argument; this crate
//! knows no clock, nothing asynchronous, no HTTP and no policies.
//!
//! What holds, whatever the interleaving of threads: the laws of `tidegate-core`, exactly. A bucket that has refilled
//! is forgotten by giving its slot to whoever needs one; the memory of a table is reserved once and never grows, moves
//! or is swept.
//!
//! Read `head` first (how a word guards its neighbours), then `bucket`, `groups`, `table` and `attempt`, and
//! `seats` for what happens when a key's home has no room; `logs` is where sliding logs are, which have no slots;
//! `reservations` is a table of another kind of bucket, and `saved` and `saved_logs` are a table as plain data.

#![forbid(unsafe_code)]

mod attempt;
mod bucket;
mod fingerprint;
mod groups;
mod head;
mod locks;
mod log_seats;
mod logs;
mod pools;
mod quota_cell;
mod quotas;
mod reservations;
mod saved;
mod saved_logs;
mod seats;
#[cfg(all(test, not(loom)))]
mod stress;
mod sync;
mod table;
mod watermarks;

pub use bucket::Bucket;
pub use fingerprint::{Fingerprint, Fingerprints, Seeds};
pub use logs::{LOG_BYTES_DEFAULT, LOG_BYTES_MIN};
pub use pools::POOLS_MAX;
pub use quota_cell::QuotaCell;
pub use quotas::{KnownQuota, QUOTAS_MAX, TooManyQuotas};
pub use reservations::{RESERVATIONS_DEFAULT, Reservations, ReserveError};
pub use saved::{PooledKeys, SavedBucket, SavedPool};
pub use saved_logs::SavedLog;
pub use table::{BATCH_MAX, KEYS_DEFAULT, KEYS_MAX, Table, TableLimit, TableOptions, TableStats};
