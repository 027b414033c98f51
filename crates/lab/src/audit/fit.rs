//! Which limiter explains the answers: guesses are held against all of them, and the one that is wrong least is kept.
//!
//! A guess pays 1 for each answer that it did not expect, and little for one that it would have expected a moment
//! earlier or later, since nobody outside knows when exactly a call was decided. Each kind is searched by itself, first
//! on a coarse grid around what the experiments suggest, then step by step towards less; a kind that needs more
//! assumptions must explain more.

use super::model::{Edges, Guess, Kind, Model};
use super::notebook::Call;

/// By how much the clocks of both sides may be coarse, at most. Seconds.
const SLACK: f64 = 0.001;
/// What may remain unexplained of several answers, since nobody knows when they were decided.
const TOLERATED: f64 = 0.1;
/// What an answer costs that would have been expected a moment earlier or later.
const NEARLY: f64 = 0.02;
/// What it costs to assume that denied calls count.
const ASSUMED: f64 = 0.5;
/// How far the search for a period goes around what is suggested, and by which factor from one to the next.
const SPREAD: f64 = 1.5;
const STEP: f64 = 1.02;
/// Instants of a window that are tried as its edge where none was seen.
const PHASES: u32 = 24;
/// Guesses of a coarse search that are looked at closely.
const KEPT: usize = 8;
/// The steps of a close look, and how many of them are tried to each side, before smaller and smaller ones.
const CLOSE: (f64, i32) = (0.001, 25);
/// The smallest step, as a part of the period.
const SMALLEST: f64 = 0.0003;
/// How far to each side the periods are tried that explain as much, as a part of the period, and in which steps.
const ASIDE: (f64, f64) = (0.3, 0.001);

/// How many steps to each side an edge is tried, and their size as a part of the period.
const EDGE_ASIDE: (i32, f64) = (16, 0.004);
/// How many more or less may pass at once, if that explains as much.
const COUNTS_ASIDE: u32 = 3;

/// The answers, ready to be explained.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    answers: Vec<Observed>,
    /// One more than the greatest number of a key.
    keys: u32,
}

/// How a call was decided, and when. Seconds from the first.
#[derive(Clone, Copy, Debug)]
struct Observed {
    key: u32,
    is_admitted: bool,
    /// Most likely.
    at: f64,
    /// Not before, and not after.
    between: [f64; 2],
}

/// What the experiments suggest.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    /// Counts that passed at once.
    pub(super) counts: Vec<u32>,
    /// Periods in which that many come back. Seconds.
    pub(super) periods: Vec<f64>,
    /// Instants at which many came back at once. Seconds from the first call.
    pub(super) edges: Vec<f64>,
}

/// A guess, and how much of the answers it leaves unexplained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) guess: Guess,
    pub(super) cost: f64,
    /// The least and the greatest period that explain as much. Seconds.
    pub(super) periods: (f64, f64),
}

impl Evidence {
    /// The answers of a service to which a call needs at least `way` there and back.
    /// Where one comes back after another in a shorter interval than clocks are coarse, nothing would be told apart.
    pub(super) fn new(calls: &[Call], way: f64, interval: Option<f64>) -> Self {
        let slack = interval.map_or(SLACK, |interval| SLACK.min(interval / 4.0));
        let first = calls.first().map_or_else(Default::default, |call| call.sent);
        let answers = calls.iter().map(|call| {
            let [sent, answered] = [call.sent, call.answered].map(|at| at.since(first).as_secs_f64());
            let between = [sent - slack, answered + slack];
            Observed { key: call.key, is_admitted: call.is_admitted, at: sent + way / 2.0, between }
        });
        let keys = calls.iter().map(|call| call.key + 1).max().unwrap_or(0);
        Self { answers: answers.collect(), keys }
    }

    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    /// What a guess leaves unexplained; no more is told than that it is beyond `bound`.
    fn cost(&self, guess: Guess, bound: f64) -> f64 {
        let mut models: Vec<_> = (0..self.keys).map(|_| Model::new(guess)).collect();
        let mut cost = if guess.counts_denied { ASSUMED } else { 0.0 };
        for &Observed { key, is_admitted, at, between } in &self.answers {
            let model = &mut models[key as usize];
            if model.admits(at) != is_admitted {
                let nearly = between.iter().any(|near| model.admits(*near) == is_admitted);
                cost += if nearly { NEARLY } else { 1.0 };
            }
            model.follow(at, is_admitted);
            if cost > bound {
                break;
            }
        }
        cost
    }

    /// What a limiter holds of one key after all that was observed.
    pub(super) fn state(&self, guess: Guess, key: u32) -> Model {
        let mut model = Model::new(guess);
        for call in self.answers.iter().filter(|call| call.key == key) {
            model.follow(call.at, call.is_admitted);
        }
        model
    }

    /// The best guess of each kind, the best first.
    pub(super) fn fits(&self, hints: &Hints) -> Vec<Fit> {
        let mut fits: Vec<_> = Kind::ALL.iter().filter_map(|kind| self.fit(*kind, hints)).collect();
        fits.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        fits
    }

    fn fit(&self, kind: Kind, hints: &Hints) -> Option<Fit> {
        let mut kept: Vec<(f64, Guess)> = Vec::new();
        for guess in coarse(kind, hints) {
            let bound = if kept.len() < KEPT { f64::INFINITY } else { kept[kept.len() - 1].0 };
            let cost = self.cost(guess, bound);
            if cost < bound {
                let at = kept.partition_point(|(other, _)| *other <= cost);
                kept.insert(at, (cost, guess));
                kept.truncate(KEPT);
            }
        }
        let close = kept.into_iter().map(|(cost, guess)| self.improve(guess, cost));
        let (cost, guess) = close.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(self.centred(guess, cost))
    }

    /// Goes from a guess to neighbours that explain more, in smaller and smaller steps.
    fn improve(&self, guess: Guess, cost: f64) -> (f64, Guess) {
        let periods = (-CLOSE.1..=CLOSE.1).map(|i| guess.period * (1.0 + f64::from(i) * CLOSE.0));
        let close = periods.map(|period| Guess { period, ..guess }).map(|guess| (self.cost(guess, cost), guess));
        let (mut cost, mut guess) = close.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((cost, guess));
        let mut step = CLOSE.0;
        while step > SMALLEST {
            let better = neighbours(guess, step).into_iter().map(|near| (self.cost(near, cost), near));
            match better.min_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((less, near)) if less < cost => (cost, guess) = (less, near),
                _ => step /= 2.0,
            }
        }
        (cost, guess)
    }

    /// The same guess, held against more answers.
    pub(super) fn again(&self, fit: Fit) -> Fit {
        self.centred(fit.guess, self.cost(fit.guess, f64::INFINITY))
    }

    /// Moves a guess into the middle of the periods that explain as much, with whatever else explains as much then.
    pub(super) fn centred(&self, guess: Guess, cost: f64) -> Fit {
        let bound = cost + TOLERATED;
        let period = |part: f64| Guess { period: guess.period * (1.0 + part), ..guess };
        let explain = |guess: Guess| akin(guess).into_iter().filter(|guess| self.cost(*guess, bound) <= bound);
        let parts = [-1.0, 1.0].map(|sign| {
            let parts = (1..).map(|i| sign * f64::from(i) * ASIDE.1).take_while(|part| part.abs() <= ASIDE.0);
            parts.take_while(|part| explain(period(*part)).next().is_some()).last().unwrap_or(0.0)
        });
        let middle = period(f64::midpoint(parts[0], parts[1]));
        let fitting: Vec<_> = explain(middle).collect();
        let centred = fitting.get(fitting.len() / 2).copied().unwrap_or(guess);
        let rate = |part: f64| centred.period * (1.0 + part) / (1.0 + f64::midpoint(parts[0], parts[1]));
        Fit { guess: centred, cost, periods: (rate(parts[0]), rate(parts[1])) }
    }
}

/// Guesses of the same rate: with an edge that is a little elsewhere, or a few more or less that pass at once.
fn akin(guess: Guess) -> Vec<Guess> {
    match (guess.kind, guess.edges) {
        (Kind::TokenBucket, _) => {
            let interval = guess.period / f64::from(guess.count);
            let counts = guess.count.saturating_sub(COUNTS_ASIDE).max(1)..=guess.count.saturating_add(COUNTS_ASIDE);
            counts.map(|count| Guess { count, period: interval * f64::from(count), ..guess }).collect()
        }
        (_, Edges::Clock(edge)) => {
            let parts = (-EDGE_ASIDE.0..=EDGE_ASIDE.0).map(|i| f64::from(i) * EDGE_ASIDE.1);
            parts.map(|part| Guess { edges: Edges::Clock(edge + guess.period * part), ..guess }).collect()
        }
        _ => vec![guess],
    }
}

/// Guesses all over the place.
fn coarse(kind: Kind, hints: &Hints) -> Vec<Guess> {
    let mut guesses = Vec::new();
    for &suggested in &hints.periods {
        let steps = (SPREAD.ln() / STEP.ln()) as i32;
        for period in (-steps..=steps).map(|i| suggested * STEP.powi(i)) {
            for &count in &hints.counts {
                for edges in edges(kind, period, hints) {
                    let guess = Guess { kind, count, period, edges, counts_denied: false };
                    guesses.push(guess);
                    if kind != Kind::TokenBucket {
                        guesses.push(Guess { counts_denied: true, ..guess });
                    }
                }
            }
        }
    }
    guesses
}

fn edges(kind: Kind, period: f64, hints: &Hints) -> Vec<Edges> {
    let seen = hints.edges.iter().map(|edge| Edges::Clock(*edge));
    let anywhere = (0..PHASES).map(|i| Edges::Clock(period * f64::from(i) / f64::from(PHASES)));
    match kind {
        Kind::TokenBucket | Kind::SlidingLog => vec![Edges::FirstCall],
        Kind::FixedWindow => [Edges::FirstCall].into_iter().chain(seen).collect(),
        Kind::SlidingCounter => [Edges::FirstCall].into_iter().chain(seen).chain(anywhere).collect(),
    }
}

fn neighbours(guess: Guess, step: f64) -> Vec<Guess> {
    let mut near: Vec<_> =
        [1.0 - step, 1.0 + step].map(|factor| Guess { period: guess.period * factor, ..guess }).into();
    if let Edges::Clock(edge) = guess.edges {
        near.extend([-step, step].map(|part| Guess { edges: Edges::Clock(edge + part * guess.period), ..guess }));
    }
    // A bucket's rate is its count by its period: one more that passes at once need not come back sooner.
    let counts = [guess.count.saturating_sub(1), guess.count.saturating_add(1)].into_iter().filter(|count| *count > 0);
    near.extend(counts.map(|count| {
        let kept = if guess.kind == Kind::TokenBucket { f64::from(count) / f64::from(guess.count) } else { 1.0 };
        Guess { count, period: guess.period * kept, ..guess }
    }));
    near
}
