//! The smallest limits that do.

use std::cmp::Reverse;
use std::time::Duration;

use tidegate_core::{Quota, Rate};

use crate::tune::arrivals::{Arrivals, denied};
use crate::tune::backlog::least_burst;
use crate::tune::{Candidate, ForPeriod, Of, Touch};

/// Counts up to this one are all looked at; above it, those that people would write.
const ALL_COUNTS_MAX: u64 = 20;
/// The first digits of counts that people would write.
const WRITTEN: [u64; 8] = [10, 15, 20, 25, 30, 40, 50, 75];
/// How many are named of those who are hit.
const HIT_MAX: usize = 3;

/// The limits of this period that touch at most so many. `None` if there is no such limit, since nothing was sent.
pub(crate) fn for_period(arrivals: &Arrivals, period: Duration, of: Of, most: u64) -> Option<ForPeriod> {
    let search = Search { arrivals, period, of, most };
    let count = search.smallest_count()?;
    let first = search
        .candidate(search.quota(count, count)?, (count > 1).then(|| search.quota(count - 1, count - 1)).flatten());
    let candidates = counts(count).filter_map(|count| search.with_least_burst(count)).collect();
    Some(ForPeriod { first, candidates })
}

struct Search<'a> {
    arrivals: &'a Arrivals,
    period: Duration,
    of: Of,
    most: u64,
}

impl Search<'_> {
    fn quota(&self, count: u64, burst: u64) -> Option<Quota> {
        Rate::new(count, self.period).and_then(|rate| Quota::with_burst(rate, burst)).ok()
    }

    fn period_ns(&self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The smallest count that does, with a burst of the same.
    fn smallest_count(&self) -> Option<u64> {
        // A burst of all that the busiest key sent denies nobody.
        let mut enough = self.arrivals.each().map(|(_, times)| times.len() as u64).max()?;
        let mut too_small = 0;
        while enough - too_small > 1 {
            let count = too_small + (enough - too_small) / 2;
            match self.does(count, count) {
                true => enough = count,
                false => too_small = count,
            }
        }
        Some(enough)
    }

    /// Does this limit touch few enough?
    fn does(&self, count: u64, burst: u64) -> bool {
        match self.of {
            Of::Clients => {
                let is_touched = |times: &[u64]| least_burst(times, count, self.period_ns()) > burst;
                self.arrivals.each().filter(|(_, times)| is_touched(times)).count() as u64 <= self.most
            }
            Of::Requests => self.quota(count, burst).is_some_and(|quota| self.denied(&quota) <= self.most),
        }
    }

    fn denied(&self, quota: &Quota) -> u64 {
        self.arrivals.each().map(|(_, times)| denied(times, quota)).sum()
    }

    /// The limit of this count with the smallest burst that does.
    fn with_least_burst(&self, count: u64) -> Option<Candidate> {
        let mut needs: Vec<u64> =
            self.arrivals.each().map(|(_, times)| least_burst(times, count, self.period_ns())).collect();
        needs.sort_unstable_by_key(|need| Reverse(*need));
        let burst = match self.of {
            // Those who need more are exactly as many as may be touched, or fewer.
            Of::Clients => usize::try_from(self.most).ok().and_then(|most| needs.get(most)).copied().unwrap_or(1),
            Of::Requests => {
                let (mut too_small, mut enough) = (0, *needs.first()?);
                while enough - too_small > 1 {
                    let burst = too_small + (enough - too_small) / 2;
                    match self.does(count, burst) {
                        true => enough = burst,
                        false => too_small = burst,
                    }
                }
                enough
            }
        };
        let smaller = if burst > 1 { self.quota(count, burst - 1) } else { None };
        Some(self.candidate(self.quota(count, burst)?, smaller))
    }

    fn candidate(&self, quota: Quota, smaller: Option<Quota>) -> Candidate {
        let (touch, mut hit) = self.touch(&quota);
        hit.sort_unstable_by_key(|(key, _, denied)| (Reverse(*denied), *key));
        let hit = hit.into_iter().take(HIT_MAX);
        let hit = hit.map(|(key, requests, denied)| (self.arrivals.name(key), requests, denied)).collect();
        let mut apart = Touch::default();
        for denied in self.arrivals.each_apart().map(|(_, times)| denied(times, &quota)) {
            apart.clients += u64::from(denied > 0);
            apart.denied += denied;
        }
        Candidate { quota, touch, apart, smaller: smaller.map(|smaller| (smaller, self.touch(&smaller).0)), hit }
    }

    /// Whom a limit touches: each key, its requests, and those denied.
    fn touch(&self, quota: &Quota) -> (Touch, Vec<(u32, u64, u64)>) {
        let denied = self.arrivals.each().map(|(key, times)| (key, times.len() as u64, denied(times, quota)));
        let hit: Vec<_> = denied.filter(|(.., denied)| *denied > 0).collect();
        let touch = Touch { clients: hit.len() as u64, denied: hit.iter().map(|(.., denied)| denied).sum() };
        (touch, hit)
    }
}

/// The counts that are looked at, up to this one.
fn counts(most: u64) -> impl Iterator<Item = u64> {
    let all = 1..=most.min(ALL_COUNTS_MAX);
    let scales = (0..).map_while(|power| 10_u64.checked_pow(power)).take(12);
    let written = scales.flat_map(|scale| WRITTEN.map(|digits| digits * scale));
    let written = written.filter(move |count| *count > ALL_COUNTS_MAX && *count < most);
    all.chain(written).chain((most > ALL_COUNTS_MAX).then_some(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_that_people_would_write() {
        assert_eq!(counts(3).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(counts(20).count(), 20);
        assert_eq!(counts(160).skip(20).collect::<Vec<_>>(), [25, 30, 40, 50, 75, 100, 150, 160]);
    }
}
