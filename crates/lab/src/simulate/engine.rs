//! A run: arrivals are decided one after the other, and what they were told is counted.

use tidegate_core::Time;

use super::keeper::Keeper;
use super::series::Recorder;
use super::tally::Tally;
use super::{Keyed, Pace, SimulateError, Traffic};

/// The most arrivals of one run; one that would have more is stopped there.
pub const ARRIVALS_MAX: u64 = 100_000_000;

/// The instants that are remembered at most for the windows of all keys, in 16 bytes each and with room to grow.
pub(super) const REMEMBERED_MAX: usize = 20_000_000;

/// What is run, but for the traffic and for who decides.
pub(super) struct Course {
    /// What each limit promises.
    pub(super) promises: Vec<Pace>,
    pub(super) keyed: Keyed,
    pub(super) end: Time,
    arrivals_max: u64,
    remembered_max: usize,
}

impl Course {
    pub(super) const fn new(promises: Vec<Pace>, keyed: Keyed, end: Time) -> Self {
        Self { promises, keyed, end, arrivals_max: ARRIVALS_MAX, remembered_max: REMEMBERED_MAX }
    }

    /// Runs, counts, and writes down what happens over time if somebody wants to see it.
    ///
    /// # Errors
    /// Too much would have to be remembered for the windows.
    pub(super) fn run<K: Keeper>(
        &self,
        keeper: &mut K,
        traffic: &mut dyn Traffic,
        mut recorder: Option<&mut Recorder>,
    ) -> Result<Tally, SimulateError> {
        let mut tally = Tally::new(self.promises.clone(), self.keyed.keys(traffic.clients()));
        while let Some(arrival) = traffic.next() {
            if arrival.at >= self.end {
                break;
            }
            if let Some(recorder) = &mut recorder {
                recorder.go_on(keeper, arrival.at);
            }
            let key = self.keyed.key(arrival.client);
            let reply = keeper.ask(key, &arrival);
            tally.count(key, &arrival, reply);
            if let Some(recorder) = &mut recorder {
                recorder.note(keeper, key, &arrival, reply);
            }
            traffic.told(&arrival, reply);
            if tally.remembered() > self.remembered_max {
                return Err(SimulateError::Remembered(arrival.at));
            }
            if tally.arrivals == self.arrivals_max {
                tally.stopped = Some(arrival.at);
                break;
            }
        }
        if let Some(recorder) = recorder {
            recorder.finish(keeper, self.end);
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::{Limit, Quota};

    use super::*;
    use crate::simulate::keeper::One;
    use crate::simulate::{Chosen, Ground, Random};

    /// Ten requests a second for a minute, under a hundred a minute.
    fn run(arrivals_max: u64, remembered_max: usize) -> Result<Tally, SimulateError> {
        let quota: Quota = "100/min".parse::<Limit>().unwrap().quota().unwrap();
        let pace = Pace::new(100, Duration::from_secs(60));
        let ground = Ground { limit: pace, length_ns: 60_000_000_000, clients: None };
        let mut traffic = "steady:rate=10/s".parse::<Chosen>().unwrap().build(&ground, Random::new(1)).unwrap();
        let course = Course::new(vec![pace], Keyed::Client, Time::from_secs(60));
        let course = Course { arrivals_max, remembered_max, ..course };
        course.run(&mut One::new(quota, 1), &mut *traffic, None)
    }

    #[test]
    fn a_run_of_too_many_requests_is_stopped_and_says_when() {
        let tally = run(50, 1_000).unwrap();
        assert_eq!((tally.arrivals, tally.stopped), (50, Some(Time::from_millis(4_900))));
        let whole = run(601, 1_000).unwrap();
        assert_eq!((whole.arrivals, whole.stopped), (600, None));
    }

    #[test]
    fn a_run_that_would_take_too_much_memory_is_refused_and_says_when() {
        // What is asked for and what passes are both remembered: 2 for each of the first requests.
        let error = run(1_000, 99).unwrap_err();
        assert_eq!(error, SimulateError::Remembered(Time::from_millis(4_900)));
        assert!(error.to_string().starts_with("at 0:04.9 the windows of all clients hold more than"), "{error}");
    }
}
