//! When was a bucket last forgotten hereabouts?
//!
//! A bucket that has refilled is forgotten by giving its slot away. A thread that read the clock before, and comes by
//! only after, must not take the bucket to be full at its old time: it was not yet. So the time of giving away is kept,
//! in stripes of neighbouring groups, and a newcomer never starts earlier than that.

use std::ops::Range;

use tidegate_core::Time;

use crate::sync::{AtomicU64, Ordering};
use crate::table::PROBES;

const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };
/// Neighbours that share a stripe: the groups in which a key can sit lie in two stripes at most.
const NEIGHBOURS: usize = PROBES;

/// A watermark on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(AtomicU64);

pub(crate) struct Watermarks(Box<[Stripe]>);

impl Watermarks {
    pub(crate) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe(AtomicU64::new(0))).collect())
    }

    /// Says that a bucket in `group` was forgotten at `now`. Its lock must be held.
    pub(crate) fn raise(&self, group: usize, now: Time) {
        self.stripe(group).fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    /// The time at which a newcomer to `group` starts. Its head must have been read before.
    #[inline]
    pub(crate) fn start(&self, group: usize, now: Time) -> Time {
        now.max(Time::from_nanos(self.stripe(group).load(Ordering::Relaxed)))
    }

    /// The time at which a key starts that has had, or could have had, a bucket in any of `groups`: at most
    /// [`PROBES`] of them. Their heads must have been read before.
    #[inline]
    pub(crate) fn start_among(&self, groups: Range<usize>, now: Time) -> Time {
        self.start(groups.end.saturating_sub(1), self.start(groups.start, now))
    }

    fn stripe(&self, group: usize) -> &AtomicU64 {
        &self.0[group / NEIGHBOURS % STRIPES].0
    }
}
