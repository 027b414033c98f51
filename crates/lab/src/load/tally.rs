//! What is counted of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tidegate::Time;
use tidegate_core::Cost;

use super::Options;
use crate::simulate::Arrival;
use crate::wire::{Exchange, Target};
use crate::worst::Worst;

/// Latencies are kept from a microsecond to an hour, to three digits.
const LATENCY_MAX_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;
/// Different errors that are told apart; the rest are counted together.
const ERRORS_MAX: usize = 20;
/// The windows whose most is told.
const WINDOWS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Requests that are sent so late were held up.
const LATE: Duration = Duration::from_millis(10);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Denied,
    Failed,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Since it began.
    pub elapsed: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// Requests that were answered, by what became of them: passed, denied, failed.
    pub counts: [u64; 3],
    /// Requests on their way.
    pub on_their_way: usize,
}

/// Latencies, in a few numbers.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was called.
    pub target: Target,
    /// The patterns, as they were chosen.
    pub patterns: Vec<String>,
    /// How many clients there were.
    pub clients: u32,
    /// How long it took, to the last answer.
    pub took: Duration,
    /// Requests that passed, by an answer that is neither a denial nor the service's own fault.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that had no answer, or one that says that the service failed.
    pub failed: u64,
    /// Answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// Why there was no answer, how often.
    pub errors: BTreeMap<String, u64>,
    /// From the planned instant to the end of the answer, of all that were answered.
    pub latencies: Latencies,
    /// The same of those that were denied.
    pub denied_latencies: Latencies,
    /// The most that passed in any second, and in any minute, by the instants at which they were answered.
    pub worst: [u64; 2],
    /// Requests that were sent more than 10 ms after their planned instant, and the longest such delay.
    pub late: (u64, Duration),
    /// The bytes of all bodies.
    pub bytes: u64,
    /// Was it ended early by a signal?
    pub is_interrupted: bool,
}

pub(super) struct Tally {
    report: Report,
    length: Duration,
    worst: Worst,
}

impl Tally {
    pub(super) fn new(target: Target, options: &Options, clients: u32, length: Duration) -> Self {
        let report = Report {
            target,
            patterns: options.patterns.iter().map(ToString::to_string).collect(),
            clients,
            took: Duration::ZERO,
            passed: 0,
            denied: 0,
            failed: 0,
            statuses: BTreeMap::new(),
            errors: BTreeMap::new(),
            latencies: Latencies::new(),
            denied_latencies: Latencies::new(),
            worst: [0; 2],
            late: (0, Duration::ZERO),
            bytes: 0,
            is_interrupted: false,
        };
        Self { report, length, worst: Worst::new(&WINDOWS) }
    }

    pub(super) fn count(&mut self, arrival: &Arrival, planned: Time, exchange: &Exchange, verdict: Verdict) {
        let report = &mut self.report;
        let delay = exchange.sent.since(planned);
        report.late = (report.late.0 + u64::from(delay > LATE), report.late.1.max(delay));
        match verdict {
            Verdict::Passed => report.passed += 1,
            Verdict::Denied => report.denied += 1,
            Verdict::Failed => report.failed += 1,
        }
        let latency = exchange.answered.since(planned);
        match &exchange.outcome {
            Ok(answer) => {
                *report.statuses.entry(answer.status.as_u16()).or_default() += 1;
                report.bytes += answer.length;
                report.latencies.add(latency);
                if verdict == Verdict::Denied {
                    report.denied_latencies.add(latency);
                }
            }
            Err(error) => {
                let text = error.to_string();
                let is_known = report.errors.len() < ERRORS_MAX || report.errors.contains_key(&text);
                *report.errors.entry(if is_known { text } else { "others".to_owned() }).or_default() += 1;
            }
        }
        if verdict == Verdict::Passed {
            self.worst.add(exchange.answered, Cost::new(arrival.cost.tokens().max(1)));
        }
    }

    pub(super) const fn interrupt(&mut self) {
        self.report.is_interrupted = true;
    }

    pub(super) const fn snapshot(&self, elapsed: Duration, on_their_way: usize) -> Snapshot {
        let counts = [self.report.passed, self.report.denied, self.report.failed];
        Snapshot { elapsed, length: self.length, counts, on_their_way }
    }

    pub(super) fn into_report(self, took: Duration) -> Report {
        let worst = [self.worst.most(0).cost, self.worst.most(1).cost];
        Report { took, worst, ..self.report }
    }
}

impl Report {
    /// All requests that were sent and ended.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.passed + self.denied + self.failed
    }

    /// How many ended. Per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { self.requests() as f64 / self.took.as_secs_f64() }
    }
}

impl Latencies {
    fn new() -> Self {
        let histogram = Histogram::new_with_max(LATENCY_MAX_US, DIGITS);
        // The bounds are constants, and right.
        Self(histogram.unwrap_or_else(|_| unreachable!("an hour is more than two microseconds")))
    }

    fn add(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What this part of them is not above, from 0 to 1.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(part))
    }

    /// The longest.
    #[must_use]
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.0.max())
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.0.mean() / 1e6)
    }

    /// Bars between the shortest and the longest: up to where each reaches, and how many are in it.
    #[must_use]
    pub fn bars(&self, count: u64) -> Vec<(Duration, u64)> {
        if self.0.is_empty() || count == 0 {
            return Vec::new();
        }
        let (least, most) = (self.0.min(), self.0.max());
        let width = (most - least).div_ceil(count).max(1);
        let ends = (1..=count).map(|i| (least + i * width).min(most));
        let mut bars: Vec<(Duration, u64)> = Vec::new();
        let mut from = least;
        for to in ends.filter(|to| *to >= least) {
            if from > to {
                break;
            }
            bars.push((Duration::from_micros(to), self.0.count_between(from, to)));
            from = self.0.next_non_equivalent(to);
        }
        bars
    }
}
