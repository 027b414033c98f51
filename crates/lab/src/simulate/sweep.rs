//! One limit with many bursts, or many rates, on the same traffic: what each would have done.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use anstyle::Style;
use serde_json::{Value, json};
use tidegate_core::{Algorithm, Limit, Quota, Rate};

use super::json::result;
use super::table::bar;
use super::{Contestant, Report, SimulateError, Simulation};
use crate::words::{Span, counted, grouped, period_in_words};

/// Values that a sweep tries at most; between wider ends it takes larger steps.
const VALUES_MAX: u64 = 1_000;
/// The most requests of all runs of a sweep together.
const SWEPT_MAX: u64 = 500_000_000;
/// Values that it tries unless a step is given, so that they fit on a screen.
const VALUES: u64 = 20;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// What is swept, as it is written: `burst=1..50`, `rate=10..100:10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    what: What,
    first: u64,
    last: u64,
    step: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Burst,
    Count,
}

/// What came out of a sweep.
#[derive(Clone, Debug)]
pub struct Swept {
    sweep: Sweep,
    /// Each value, with what came out.
    reports: Vec<(u64, Report)>,
}

/// A sweep that cannot be read. Its `Display` says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepError(String);

impl FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let wrong = |why: &str| SweepError(format!("{why}; write `burst=1..50` or `rate=10..100:10`"));
        let (what, range) = text.split_once('=').ok_or_else(|| wrong("nothing is swept"))?;
        let what = match what.trim() {
            "burst" => What::Burst,
            "rate" => What::Count,
            other => return Err(wrong(&format!("`{other}` cannot be swept"))),
        };
        let (range, step) = range.split_once(':').map_or((range, None), |(range, step)| (range, Some(step)));
        let (first, last) = range.split_once("..").ok_or_else(|| wrong("a range has two ends"))?;
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        let numbers = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        let (first, last) = numbers.ok_or_else(|| wrong("the ends are whole numbers from 1, the smaller first"))?;
        let step = match step {
            None => (last - first).div_ceil(VALUES).max(1),
            Some(step) => number(step).ok_or_else(|| wrong("a step is a whole number from 1"))?,
        };
        if (last - first) / step >= VALUES_MAX {
            return Err(wrong("more than 1000 values would be tried"));
        }
        Ok(Self { what, first, last, step })
    }
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SweepError {}

impl Sweep {
    /// Runs the traffic against this limit with each value, under each of these algorithms.
    ///
    /// # Errors
    /// A value makes no limit that an algorithm takes, the traffic cannot be built, or all of it would take too long.
    pub fn run(&self, simulation: &Simulation, limit: Limit, algorithms: &[Algorithm]) -> Result<Swept, SimulateError> {
        // The traffic is that of the limit that was given, whatever is tried.
        let pace = Contestant::new(Algorithm::TokenBucket, &[limit])?.pace();
        let simulation = Simulation { pace, ..simulation.clone() };
        let report = |value: u64| -> Result<(u64, Report), SimulateError> {
            let tried = self.tried(limit, value)?;
            let contestants = algorithms.iter().map(|algorithm| Contestant::new(*algorithm, &[tried]));
            Ok((value, simulation.run(&contestants.collect::<Result<Vec<_>, _>>()?)?))
        };
        let mut reports = Vec::new();
        for value in self.values() {
            reports.push(report(value)?);
            let so_far: u64 = reports.iter().flat_map(|(_, report)| &report.rows).map(|row| row.arrivals).sum();
            if so_far > SWEPT_MAX {
                return Err(SimulateError::Swept(so_far));
            }
        }
        Ok(Swept { sweep: self.clone(), reports })
    }

    fn values(&self) -> impl Iterator<Item = u64> + use<> {
        let (last, step) = (self.last, self.step);
        let steps = std::iter::successors(Some(self.first), move |value| value.checked_add(step));
        let steps = steps.take_while(move |value| *value < last);
        // Both ends are always tried.
        steps.chain([last])
    }

    fn tried(&self, limit: Limit, value: u64) -> Result<Limit, SimulateError> {
        let Limit::Quota(quota) = limit else { return Err(SimulateError::Unlimited) };
        let rate = *quota.rate();
        let tried = match self.what {
            What::Burst => Quota::with_burst(rate, value),
            // A burst that was not given is the count, whatever that is.
            What::Count => Rate::new(value, rate.period()).and_then(|tried| match quota.burst() == rate.count() {
                true => Quota::new(tried),
                false => Quota::with_burst(tried, quota.burst()),
            }),
        };
        let algorithm = Algorithm::TokenBucket;
        tried.map(Limit::Quota).map_err(|error| SimulateError::Quota { limit, algorithm, error })
    }
}

impl Swept {
    /// What came out, as text for a terminal of 80 columns, styled with ANSI sequences.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Some((_, first)) = self.reports.first() else { return String::new() };
        let rows = || self.reports.iter().flat_map(|(value, report)| report.rows.iter().map(move |row| (value, row)));
        let most = |row: &super::Row| row.worst_period.map_or(0, |most| most.cost);
        let largest = rows().map(|(_, row)| most(row)).max().unwrap_or(0);
        let promise = first.rows.first().and_then(|row| row.promise);
        let period = promise.map(|promise| period_in_words(promise.period())).unwrap_or_default();
        let (clients, length) = (counted(u64::from(first.clients), "client", "clients"), Span(first.length));
        let what = match self.sweep.what {
            What::Burst => "burst",
            What::Count => "rate",
        };
        let mut out =
            format!("{BOLD}{}, {what} by {what}{BOLD:#}\n{clients}, {length}\n\n", first.patterns.join(" + "));
        let _ = writeln!(
            out,
            "{DIM}{what:>7}  {:<15} {:>8} {:>7} {:>6} {:>9}  most in any {period}{DIM:#}",
            "algorithm", "admitted", "denied", "false", "wait"
        );
        for (value, row) in rows() {
            let wait = if row.longest_wait.is_zero() { "-".to_owned() } else { Span(row.longest_wait).to_string() };
            let bar = bar(most(row), row.promise.map_or(0, |promise| promise.count()), largest, SWEEP_BAR);
            let _ = writeln!(
                out,
                "{:>7}  {:<15} {:>8} {:>7} {:>6} {wait:>9}  {bar}{:>6}",
                grouped(*value),
                row.name,
                grouped(row.admitted),
                grouped(row.denied),
                row.false_denials.map_or_else(|| "-".to_owned(), grouped),
                grouped(most(row)),
            );
        }
        out
    }

    /// What came out, as one JSON object: `results` has one object for each value and algorithm, with the `value`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let of = |(value, report): &(u64, Report)| {
            let value = *value;
            report
                .rows
                .iter()
                .map(result)
                .map(move |mut row| {
                    row["value"] = json!(value);
                    row
                })
                .collect::<Vec<_>>()
        };
        let results: Vec<_> = self.reports.iter().flat_map(of).collect();
        let mut object = self.reports.first().map_or_else(|| json!({}), |(_, report)| report.to_json());
        object["swept"] = json!(match self.sweep.what {
            What::Burst => "burst",
            What::Count => "rate",
        });
        object["results"] = json!(results);
        object
    }
}

/// The width of a bar in a line of a sweep.
const SWEEP_BAR: u64 = 12;
