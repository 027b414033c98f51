//! What an audit has found.

use std::time::Duration;

use tidegate::Time;
use tidegate_core::Cost;

use super::auditor::{Auditor, Service, Stop};
use super::fit::{Evidence, Fit};
use super::model::{Edges, Guess, Kind};
use super::notebook::{Call, Notebook};
use super::plan::{self, Promises, Shown};
use super::{fields, text};
use crate::wire::Target;
use crate::worst::Worst;

/// A limiter, as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter {
    /// How it counts.
    pub kind: Kind,
    /// How many pass at once.
    pub burst: u32,
    /// In which that many come back.
    pub period: Duration,
    /// How uncertain the period is, to each side, as a part of it.
    pub uncertainty: f64,
    /// Does it hold calls back, rather than deny them, while its queue has room?
    pub holds_back: bool,
    /// Do calls that are denied prolong the wait?
    pub counts_denied: bool,
    /// Do its windows begin whether anybody calls or not?
    pub has_clock_edges: bool,
    /// Of the answers, how many are as such a limiter would give them.
    pub explained: usize,
    /// Another kind that explains as many.
    pub like: Option<Kind>,
}

impl Limiter {
    /// How many pass in the long run. Per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(self.burst) / self.period.as_secs_f64()
    }
}

/// How far an audit came.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Nothing was denied.
    NoLimit,
    /// Some passed, and then none came back in the time that there was.
    NoReturn {
        /// How many passed before the first denial.
        burst: u32,
        /// For how long it was waited.
        waited: Duration,
    },
    /// A limiter that explains the answers.
    Found(Limiter),
}

/// What an audit has found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was called.
    pub target: Target,
    /// The limiter.
    pub finding: Finding,
    /// The most that passed in any period of the limit, wherever it begins, and that period.
    pub worst: Option<(u64, Duration)>,
    /// The fastest that calls were answered. Per second.
    pub fastest: f64,
    /// The status of denials.
    pub denied_status: Option<u16>,
    /// The fields that told of limits, with the last answer that passed.
    pub passed_fields: Vec<(String, String)>,
    /// And with the last that was denied.
    pub denied_fields: Vec<(String, String)>,
    /// Was there a Retry-After that promised less than the wait, or far more? None if there was none.
    pub promises: Option<Promises>,
    /// The longest time that a denied caller was told to wait in vain: a call passed so much earlier.
    pub needless: Option<Duration>,
    /// The fields that make a denied caller pass; none if it was not tried.
    pub believed: Option<Vec<&'static str>>,
    /// Does the key's field choose the key? None if it was not tried.
    pub key_chooses: Option<bool>,
    /// Calls that were answered, and all that were made.
    pub answered: usize,
    /// All calls that were made.
    pub calls: u32,
    /// Calls that failed.
    pub failed: u32,
    /// How long it took.
    pub took: Duration,
    /// Why it ended early.
    pub ended_early: Option<String>,
}

/// The fits of all kinds, the best first.
pub(super) fn fits<S: Service>(auditor: &Auditor<'_, S>, shown: &Shown) -> Vec<Fit> {
    if shown.held_back.is_some() || shown.first_return.is_none() {
        return Vec::new();
    }
    let calls = auditor.read(Notebook::in_order);
    let begin = calls.first().map_or(Time::ZERO, |call| call.sent);
    let middle = calls.last().map_or(0.0, |call| call.sent.since(begin).as_secs_f64() / 2.0);
    plan::evidence(auditor, shown).fits(&shown.hints(begin, middle))
}

impl Report {
    pub(super) fn new<S: Service>(
        target: Target,
        auditor: &Auditor<'_, S>,
        shown: Shown,
        fits: &[Fit],
        stop: Option<Stop>,
        took: Duration,
    ) -> Self {
        let evidence = plan::evidence(auditor, &shown);
        let finding = finding(&shown, fits, &evidence, took);
        let period = match &finding {
            Finding::Found(limiter) => Some(limiter.period),
            Finding::NoLimit | Finding::NoReturn { .. } => None,
        };
        auditor.read(|notebook| Self {
            target,
            worst: period.map(|period| (worst(notebook, period), period)),
            fastest: fastest(notebook),
            denied_status: notebook.denied.as_ref().map(|(status, _)| *status),
            passed_fields: fields::of_limits(&notebook.passed),
            denied_fields: notebook.denied.as_ref().map_or_else(Vec::new, |(_, denied)| fields::of_limits(denied)),
            promises: notebook.calls.iter().any(|call| call.claim.is_some()).then_some(shown.promises),
            needless: needless(notebook),
            believed: shown.lies,
            key_chooses: shown.key_chooses,
            answered: notebook.calls.len(),
            calls: auditor.spent(),
            failed: notebook.failed,
            took,
            ended_early: stop.map(|stop| text::why(&stop)),
            finding,
        })
    }
}

fn finding(shown: &Shown, fits: &[Fit], evidence: &Evidence, took: Duration) -> Finding {
    let Some(burst) = shown.at_once else { return Finding::NoLimit };
    if let Some(spans) = &shown.held_back {
        let period = Duration::from_secs_f64(plan::middle(spans) * f64::from(burst));
        return Finding::Found(Limiter {
            kind: Kind::TokenBucket,
            burst,
            period,
            uncertainty: spread(spans),
            holds_back: true,
            counts_denied: false,
            has_clock_edges: false,
            explained: evidence.len(),
            like: None,
        });
    }
    let Some(best) = fits.first() else { return Finding::NoReturn { burst, waited: took } };
    let Guess { kind, count, period, edges, counts_denied, .. } = best.guess;
    let (least, most) = best.periods;
    let is_as_good = |other: &&Fit| other.cost <= best.cost + 0.5 && other.guess.kind != kind;
    Finding::Found(Limiter {
        kind,
        burst: count,
        period: Duration::from_secs_f64(period),
        uncertainty: (most - least) / 2.0 / period,
        holds_back: false,
        counts_denied,
        has_clock_edges: matches!(edges, Edges::Clock(_)),
        explained: evidence.len() - (best.cost as usize).min(evidence.len()),
        // One call in a period is one call in a period, however it is counted.
        like: fits.iter().filter(|_| count > 1).skip(1).find(is_as_good).map(|other| other.guess.kind),
    })
}

/// How far the spans are from their middle, by and large, as a part of it: what one may be wrong by.
fn spread(spans: &[f64]) -> f64 {
    let middle = plan::middle(spans);
    let away: Vec<_> = spans.iter().map(|span| (span - middle).abs()).collect();
    plan::middle(&away) / middle / (spans.len() as f64).sqrt()
}

/// The most that passed in any window of this length, under one key.
fn worst(notebook: &Notebook, period: Duration) -> u64 {
    let calls = notebook.in_order();
    let last = calls.iter().map(|call| call.key).max().unwrap_or(0);
    let most = |key: u32| {
        let mut worst = Worst::new(&[period]);
        let passed = calls.iter().filter(|call| call.key == key && call.is_admitted);
        passed.for_each(|call| worst.add(call.sent, Cost::ONE));
        worst.most(0).cost
    };
    (0..=last).map(most).max().unwrap_or(0)
}

/// The pace of the volley, where it was fastest: over so many answers in a row as there may be in a short one.
fn fastest(notebook: &Notebook) -> f64 {
    const ANSWERS: usize = 32;
    let calls = notebook.in_order();
    let width = ANSWERS.min(calls.len());
    let span = |calls: &[Call]| calls.last().zip(calls.first()).map(|(last, first)| last.answered.since(first.sent));
    let shortest = calls.windows(width.max(1)).filter_map(span).min();
    shortest.filter(|span| !span.is_zero()).map_or(0.0, |span| width as f64 / span.as_secs_f64())
}

/// By how much a promise was longer than the time after which a call passed, at most.
fn needless(notebook: &Notebook) -> Option<Duration> {
    let calls = notebook.in_order();
    let waits = calls.iter().enumerate().filter_map(|(i, denied)| {
        let next = calls[i + 1..].iter().find(|call| call.is_admitted && call.key == denied.key)?;
        Some(denied.claim?.saturating_sub(next.answered.since(denied.sent)))
    });
    waits.max()
}
