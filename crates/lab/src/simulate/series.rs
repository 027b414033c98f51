//! What happens over the time of a run, in bins, for whoever wants to see it.

use std::time::Duration;

use tidegate_core::{Cost, Time};

use super::keeper::Keeper;
use super::{Arrival, Reply};
use crate::Worst;

/// A run in bins of time.
#[derive(Clone, Debug)]
pub struct Series {
    /// How long a bin is, in nanoseconds.
    pub bin_ns: u64,
    /// The bins, in order.
    pub bins: Vec<Bin>,
}

/// What happened in a bin. Counts are of all clients; the level and the window are of the one that is watched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Requests that passed.
    pub admitted: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// The least that was left in the bucket, in tokens; `None` where that is not one number.
    pub level: Option<u64>,
    /// The most that a period held that ended in the bin, in tokens.
    pub in_period: u64,
}

/// Fills a series while a run goes on.
pub(super) struct Recorder {
    series: Series,
    watched: u32,
    passed: Worst,
    /// The bin that is being filled.
    open: usize,
}

impl Recorder {
    /// Of a run of this length in so many bins, with an eye on one key.
    pub(super) fn new(length_ns: u64, bins: usize, watched: u32, period: Duration) -> Self {
        let bins = bins.max(1);
        let bin_ns = length_ns.div_ceil(bins as u64).max(1);
        let series = Series { bin_ns, bins: vec![Bin::default(); bins] };
        Self { series, watched, passed: Worst::new(&[period]), open: 0 }
    }

    /// Goes on to an instant: the bins before it are closed.
    pub(super) fn go_on<K: Keeper>(&mut self, keeper: &mut K, at: Time) {
        while self.open + 1 < self.series.bins.len() {
            let end = Time::from_nanos(self.series.bin_ns.saturating_mul(self.open as u64 + 1));
            if end > at {
                break;
            }
            self.look(keeper, end);
            self.open += 1;
            self.look(keeper, end);
        }
    }

    pub(super) fn note<K: Keeper>(&mut self, keeper: &mut K, key: u32, arrival: &Arrival, reply: Reply) {
        let bin = &mut self.series.bins[self.open];
        match reply {
            Reply::Passed => bin.admitted += 1,
            Reply::Wait(_) | Reply::Never => bin.denied += 1,
        }
        if key == self.watched {
            let cost = if reply == Reply::Passed { arrival.cost } else { Cost::ZERO };
            self.passed.add(arrival.at, cost);
            self.look(keeper, arrival.at);
        }
    }

    pub(super) fn finish<K: Keeper>(&mut self, keeper: &mut K, end: Time) {
        self.go_on(keeper, end);
        self.look(keeper, end);
    }

    pub(super) fn into_series(self) -> Series {
        self.series
    }

    fn look<K: Keeper>(&mut self, keeper: &mut K, now: Time) {
        let (level, held) = (keeper.level(self.watched, now), self.passed.held(0, now));
        let bin = &mut self.series.bins[self.open];
        bin.level = bin.level.map_or(level, |lowest| level.map(|level| level.min(lowest)));
        bin.in_period = bin.in_period.max(held);
    }
}
