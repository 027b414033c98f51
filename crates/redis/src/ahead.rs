//! Taking tokens ahead of time, as many as there are.
//!
//! A process that decides for a while by itself wants `most` tokens at once. If the bucket has them, it gets them. If
//! it has fewer, it gets half of what is there, so that something is left for others; but not less than it needs now,
//! or nothing.

use tidegate_core::{Charge, Cost, Decision};

use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request};
use crate::{RedisStore, StoreError};

/// What was taken ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The decision on what was taken; if nothing was, the denial of what was needed.
    pub decision: Decision,
    /// How many tokens were taken.
    pub taken: u64,
}

impl RedisStore {
    /// Takes up to `most` tokens of the charge's bucket, and at least as many as `need`, or none. Its own cost and mode
    /// do not matter.
    ///
    /// # Errors
    /// As [`Store::decide`](tidegate_core::Store::decide).
    pub async fn take_ahead(&self, charge: &Charge<'_>, need: Cost, most: Cost) -> Result<Ahead, StoreError> {
        let needed = charge.with_cost(need);
        let asked = Asked::new(std::slice::from_ref(&needed));
        if asked.is_never() {
            let mut decision = [Decision::unmade(&charge.quota)];
            let _ = Asked::never(&[needed], &mut decision);
            return Ok(Ahead { decision: decision[0], taken: 0 });
        }
        let most = most.max(need).tokens().min(charge.quota.burst());
        let terms = Terms::of(&charge.quota)?.pack(share(need), Cost::new(most), true);
        let seen = self.ask(Request { keys: vec![self.names.bucket(charge)], terms: vec![terms] }).await?;
        let decide = |cost| seen.decide(&charge.quota, cost).ok_or(StoreError::Malformed);
        let is_taken = seen.first_passed().ok_or(StoreError::Malformed)?;
        let left = decide(Cost::ZERO)?.remaining();
        let wanted = Cost::new(share_of(left, need.tokens(), most));
        let decision = decide(wanted)?;
        match is_taken == decision.is_allowed() {
            true => Ok(Ahead { decision, taken: if is_taken { wanted.tokens() } else { 0 } }),
            false => Err(StoreError::Malformed),
        }
    }
}

fn share(need: Cost) -> Act {
    // At most the burst, which fits.
    Act::Share { need: u32::try_from(need.tokens()).unwrap_or(u32::MAX) }
}

/// What is taken where `left` are left; the script's `share`. More than `left` if that is not enough.
fn share_of(left: u64, need: u64, most: u64) -> u64 {
    match left {
        _ if left >= most => most,
        _ if left < need => need,
        _ => need.max(left / 2),
    }
}
