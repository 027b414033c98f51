//! The calls behind leases: batches that are taken ahead, and tokens that are given back.
//!
//! They run beside the decisions, on the runtime of the store, so that nobody waits for them. A batch that was asked
//! for and not answered may have been taken: then it stays spent.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_core::{Charge, Cost, Mode, Store as _};
use tidegate_redis::Ahead;

use super::Inner;
use super::leases::{Batch, Unneeded};
use crate::Clock;

/// How often leases that nobody needs are looked for.
const ROUND: Duration = Duration::from_millis(100);

impl<C: Clock> Inner<C> {
    /// Takes the next batch for this charge, if its key is in demand.
    pub(super) fn refill(self: &Arc<Self>, charge: &Charge<'_>) {
        let Some(batch) = self.leases.refill_at(charge, self.clock.now()) else { return };
        let (inner, key) = (Arc::clone(self), charge.key.to_vec());
        // A lease is held for enforced requests and for those in shadow alike.
        let charge = Charge { key: &[], mode: Mode::Enforce, ..*charge };
        self.runtime.spawn(async move { inner.take(Charge { key: &key, ..charge }, batch).await });
    }

    async fn take(&self, charge: Charge<'_>, Batch(most): Batch) {
        let asking = self.denials.asking_at(self.clock.now());
        match self.redis.take_ahead(&charge, Cost::ONE, Cost::new(most)).await {
            Ok(Ahead { decision, taken: taken @ 1.. }) => {
                let answered = asking.answered_at(self.clock.now());
                let tokens = self.leases.filled(&charge, taken, &decision, &answered);
                if tokens > 0 {
                    let Charge { limit, key, quota, .. } = charge;
                    self.give_back(Unneeded { limit, key: key.into(), quota, tokens }).await;
                }
            }
            Ok(Ahead { decision, .. }) => {
                self.denials.remember(&charge, &decision, &asking.answered_at(self.clock.now()));
                self.leases.not_filled(&charge);
            }
            Err(_) => self.leases.not_filled(&charge),
        }
    }

    async fn give_back(&self, unneeded: Unneeded) {
        let Unneeded { limit, key, quota, tokens } = unneeded;
        // Without an answer they may or may not be back. Either way nobody spends them twice.
        let _ = self.redis.grant(limit, &quota, &key, tokens).await;
    }

    /// Gives back all that this process holds.
    pub(super) async fn give_back_all(&self) {
        for unneeded in self.leases.unneeded_at(None) {
            self.give_back(unneeded).await;
        }
    }
}

/// Gives back what nobody needs, for as long as the store is in use.
pub(super) async fn give_back_unneeded<C: Clock>(inner: Weak<Inner<C>>) {
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        for unneeded in inner.leases.unneeded_at(Some(inner.clock.now())) {
            inner.give_back(unneeded).await;
        }
    }
}
