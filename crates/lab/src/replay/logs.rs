//! Sliding logs of a replay: a ring for each bucket that has one.

use std::collections::HashMap;

use tidegate_core::{Algorithm, CHARGES_MAX, Charge, Cost, LogView, Quota, Time, total_cost};

use crate::ring::Ring;

/// Is this quota enforced by a log?
pub(super) fn is_log(quota: &Quota) -> bool {
    quota.algorithm() == Algorithm::SlidingLog
}

#[derive(Debug, Default)]
pub(super) struct Logs {
    rings: HashMap<u32, Ring>,
}

impl Logs {
    /// What each charge needs to know of its log; `buckets[i]` is the bucket of `charges[i]`.
    pub(super) fn views(
        &mut self,
        charges: &[Charge<'_>],
        buckets: impl Iterator<Item = u32>,
        now: Time,
    ) -> [Option<LogView>; CHARGES_MAX] {
        let mut views = [None; CHARGES_MAX];
        for (i, (charge, bucket)) in charges.iter().zip(buckets).enumerate() {
            if is_log(&charge.quota) {
                let ring = self.rings.entry(bucket).or_default();
                views[i] = Some(ring.view(&charge.quota, total_cost(charges, i), now));
            }
        }
        views
    }

    /// Remembers what passed.
    pub(super) fn charge(&mut self, bucket: u32, quota: &Quota, cost: Cost, now: Time) {
        self.rings.entry(bucket).or_default().charge(quota, cost, now);
    }
}
