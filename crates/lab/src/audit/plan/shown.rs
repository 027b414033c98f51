//! What the experiments have shown, and what that suggests.

use std::time::Duration;

use tidegate::Time;

use super::super::fit::Hints;

/// Edges of windows that are suggested, at most.
const EDGES_MAX: usize = 6;

/// What the experiments have shown, beside the answers themselves.
#[derive(Clone, Debug, Default)]
pub(in crate::audit) struct Shown {
    /// How many passed before the first denial, or in the wave that met it; none if nothing was denied.
    pub(in crate::audit) at_once: Option<u32>,
    /// How long that took.
    pub(in crate::audit) volley: Duration,
    /// Calls were held back rather than denied; the spans between their answers. Seconds.
    pub(in crate::audit) held_back: Option<Vec<f64>>,
    /// How long it took until one passed again: not before, and not after.
    pub(in crate::audit) first_return: Option<(Duration, Duration)>,
    /// The instants of returns, and how many passed in each.
    pub(in crate::audit) returns: Vec<(Time, u32)>,
    /// The fields that made a denied caller pass.
    pub(in crate::audit) lies: Option<Vec<&'static str>>,
    /// Does the field that bears the key choose it?
    pub(in crate::audit) key_chooses: Option<bool>,
    /// Of the promises of Retry-After that were tried: how many held.
    pub(in crate::audit) promises: Promises,
}

/// What became of promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Those that were waited for, to the second.
    pub tried: u32,
    /// Those after which a call passed.
    pub kept: u32,
}

impl Shown {
    /// Do so many that return at once mean that all return at once?
    pub(super) fn is_bulk(&self, count: u32) -> bool {
        count >= 3 && 2 * count >= self.at_once.unwrap_or(0)
    }

    /// The last instant at which many returned at once, and the span between two of them.
    pub(super) fn bulk_period(&self) -> Option<(Time, Duration)> {
        let bulks: Vec<_> = self.returns.iter().filter(|(_, count)| self.is_bulk(*count)).map(|(at, _)| *at).collect();
        let spans = bulks.windows(2).map(|pair| pair[1].since(pair[0]));
        Some((*bulks.last()?, spans.min()?))
    }

    /// The span between two returns, one by one.
    pub(super) fn interval(&self) -> Option<Duration> {
        let ((first, _), (last, _)) = (self.returns.first()?, self.returns.last()?);
        let count: u32 = self.returns.iter().skip(1).map(|(_, count)| count).sum();
        (count > 0).then(|| last.since(*first) / count)
    }

    /// A rest after which everything is as it was at first.
    pub(super) fn rest(&self) -> Option<Duration> {
        match (self.bulk_period(), self.interval()) {
            (Some((_, period)), _) => Some(period * 2),
            (None, Some(interval)) => Some(interval * (self.at_once? + 1)),
            (None, None) => self.first_return.map(|(_, most)| most * 2),
        }
    }

    /// What may explain the answers, in seconds from `begin`; their middle is given.
    pub(in crate::audit) fn hints(&self, begin: Time, middle: f64) -> Hints {
        let at_once = self.at_once.unwrap_or(1).max(1);
        let mut hints = Hints::default();
        // What came back while the volley lasted did not pass at once.
        let refilled = self.interval().map_or(0.0, |interval| self.volley.as_secs_f64() / interval.as_secs_f64());
        hints.counts.extend([at_once, at_once.div_ceil(2), at_once.saturating_sub(refilled as u32).max(1)]);
        hints.counts.extend(self.returns.iter().map(|(_, count)| *count).filter(|count| self.is_bulk(*count)));
        hints.counts.sort_unstable();
        hints.counts.dedup();
        let periods = [
            self.bulk_period().map(|(_, period)| period.as_secs_f64()),
            self.interval().map(|interval| interval.as_secs_f64() * f64::from(at_once)),
            self.first_return.map(|(_, most)| most.as_secs_f64()),
        ];
        hints.periods.extend(periods.into_iter().flatten().filter(|period| *period > 0.0));
        hints.middle = middle;
        hints.edges.extend(self.returns.iter().take(EDGES_MAX).map(|(at, _)| at.since(begin).as_secs_f64()));
        hints
    }
}
