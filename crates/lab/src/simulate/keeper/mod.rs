//! Who keeps the buckets in a simulation: one file for each way, all in one mould.
//!
//! Every way ends in the decisions of the core. A way of its own is worth a file where it is faster (`one`), decides
//! several limits at once (`several`), keeps more than two numbers (`logs`), or takes the whole road through policies (`policies`).

mod logs;
mod one;
mod policies;
mod several;

use tidegate_core::Time;

pub(super) use logs::Logs;
pub(super) use one::One;
pub(super) use policies::ByPolicies;
pub(super) use several::Several;

use super::{Arrival, Reply};

/// Buckets of numbered keys.
pub(super) trait Keeper {
    /// Decides on an arrival that is charged to this key.
    fn ask(&mut self, key: u32, arrival: &Arrival) -> Reply;

    /// What would still pass of this key, in tokens, if that is one number.
    fn level(&mut self, key: u32, now: Time) -> Option<u64>;

    /// The bytes that are kept for a key, if they can be told.
    fn bytes_per_key(&self) -> Option<usize>;
}
