//! A run: arrivals are decided one after the other, and what they were told is counted.

use tidegate_core::Time;

use super::keeper::Keeper;
use super::series::Recorder;
use super::tally::Tally;
use super::{Keyed, Pace, SimulateError, Traffic};

/// The most arrivals of one run; one that would have more is stopped there.
pub const ARRIVALS_MAX: u64 = 100_000_000;

/// What is run, but for the traffic and for who decides.
pub(super) struct Course {
    /// What each limit promises.
    pub(super) promises: Vec<Pace>,
    pub(super) keyed: Keyed,
    pub(super) end: Time,
}

impl Course {
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
        while let Some(arrival) = traffic.next().filter(|arrival| arrival.at < self.end) {
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
            if tally.is_full() {
                return Err(SimulateError::Remembered(arrival.at));
            }
            if tally.arrivals == ARRIVALS_MAX {
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
