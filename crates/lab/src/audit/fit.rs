//! Which limiter explains the answers: guesses are held against all of them, and the one that is wrong least is kept.
//!
//! A guess pays 1 for each answer that it did not expect, and little for one that it would have expected a moment
//! earlier or later, since nobody outside knows when exactly a call was decided. Each kind is searched by itself, first
//! on a coarse grid around what the experiments suggest, then step by step towards less; a kind that needs more
//! assumptions must explain more.

use std::collections::BTreeSet;

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
const PHASES: u32 = 20;
/// Guesses of a coarse search that are looked at closely.
const KEPT: usize = 5;
/// The leeway of the coarse search, and of each closer one, as parts of the period.
const LEEWAYS: [f64; 4] = [0.03, 0.01, 0.003, 0.0];
/// What an answer costs that leeway forgives.
const FORGIVEN: f64 = 0.2;
/// The largest step of a search without leeway, and the smallest of all, as parts of the period.
const STEPS: (f64, f64) = (0.002, 0.0003);
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
    /// The middle of all calls. Seconds from the first.
    pub(super) middle: f64,
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

    /// What a guess leaves unexplained; no more is told than that it is beyond `bound`. With some leeway, as a part of
    /// the period, an answer that would be expected that much earlier or later costs less: so that a guess that is not
    /// quite right is told from one that is quite wrong.
    fn cost(&self, guess: Guess, leeway: f64, bound: f64) -> f64 {
        let mut models: Vec<_> = (0..self.keys).map(|_| Model::new(guess)).collect();
        let mut cost = if guess.counts_denied { ASSUMED } else { 0.0 };
        let aside = leeway * guess.period;
        for &Observed { key, is_admitted, at, between: [from, to] } in &self.answers {
            let model = &mut models[key as usize];
            if model.admits(at) != is_admitted {
                let agrees = |aside: f64| [from - aside, to + aside].iter().any(|at| model.admits(*at) == is_admitted);
                cost += match (agrees(0.0), aside > 0.0) {
                    (true, _) => NEARLY,
                    (false, true) if agrees(aside) => FORGIVEN,
                    _ => 1.0,
                };
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
            let cost = self.cost(guess, LEEWAYS[0], bound);
            if cost < bound {
                let at = kept.partition_point(|(other, _)| *other <= cost);
                kept.insert(at, (cost, guess));
                kept.truncate(KEPT);
            }
        }
        let close = kept.into_iter().map(|(_, guess)| self.improve(guess));
        let (cost, guess) = close.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(self.centred(guess, cost))
    }

    /// Goes from a guess to neighbours that explain more, in smaller and smaller steps, with less and less leeway.
    fn improve(&self, mut guess: Guess) -> (f64, Guess) {
        let mut cost = f64::INFINITY;
        for leeway in LEEWAYS {
            cost = self.cost(guess, leeway, f64::INFINITY);
            let mut step = leeway.max(STEPS.0);
            while step > STEPS.1 {
                let better = neighbours(guess, step).into_iter().map(|near| (self.cost(near, leeway, cost), near));
                match better.min_by(|a, b| a.0.total_cmp(&b.0)) {
                    Some((less, near)) if less < cost => (cost, guess) = (less, near),
                    _ => step /= 2.0,
                }
            }
        }
        (cost, guess)
    }

    /// The same guess, held against more answers.
    pub(super) fn again(&self, fit: Fit) -> Fit {
        self.centred(fit.guess, self.cost(fit.guess, 0.0, f64::INFINITY))
    }

    /// Moves a guess into the middle of the periods that explain as much, with whatever else explains as much then.
    pub(super) fn centred(&self, guess: Guess, cost: f64) -> Fit {
        let bound = cost + TOLERATED;
        let period = |part: f64| Guess { period: guess.period * (1.0 + part), ..guess };
        let explain = |guess: Guess| akin(guess).into_iter().filter(|guess| self.cost(*guess, 0.0, bound) <= bound);
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
    // One grid for all that is suggested, so that no period is tried twice.
    let nearest = |period: f64| (period.ln() / STEP.ln()).round() as i32;
    let around = |period: &f64| nearest(period / SPREAD)..=nearest(period * SPREAD);
    let periods: BTreeSet<_> = hints.periods.iter().flat_map(around).collect();
    let mut guesses = Vec::new();
    for period in periods.into_iter().map(|i| STEP.powi(i)) {
        for &count in &hints.counts {
            for edges in edges(kind, period, hints) {
                let guess = Guess { kind, count, period, edges, counts_denied: false, rounds_down: true };
                guesses.extend(variants(guess));
            }
        }
    }
    guesses
}

/// The same limiter as it counts, or not, what may be counted or not.
fn variants(guess: Guess) -> Vec<Guess> {
    let denied = Guess { counts_denied: true, ..guess };
    let exact = |guess| Guess { rounds_down: false, ..guess };
    match guess.kind {
        Kind::TokenBucket => vec![guess],
        Kind::FixedWindow | Kind::SlidingLog => vec![guess, denied],
        Kind::SlidingCounter => vec![guess, denied, exact(guess), exact(denied)],
    }
}

fn edges(kind: Kind, period: f64, hints: &Hints) -> Vec<Edges> {
    let seen = hints.edges.iter().map(|edge| Edges::Clock(*edge));
    // In the middle of all answers, so that a period that is not quite right does harm to neither end.
    let anywhere = (0..PHASES).map(|i| Edges::Clock(hints.middle + period * f64::from(i) / f64::from(PHASES)));
    match kind {
        Kind::TokenBucket | Kind::SlidingLog => vec![Edges::FirstCall],
        Kind::FixedWindow => [Edges::FirstCall].into_iter().chain(seen).collect(),
        Kind::SlidingCounter => [Edges::FirstCall].into_iter().chain(seen).chain(anywhere).collect(),
    }
}

fn neighbours(guess: Guess, step: f64) -> Vec<Guess> {
    let aside = [-step, 0.0, step];
    let periods = aside.map(|part| Guess { period: guess.period * (1.0 + part), ..guess });
    let mut near: Vec<_> = match guess.edges {
        Edges::FirstCall => periods.into(),
        Edges::Clock(edge) => {
            let edges = aside.map(|part| Edges::Clock(edge + part * guess.period));
            periods.iter().flat_map(|period| edges.map(|edges| Guess { edges, ..*period })).collect()
        }
    };
    // A bucket's rate is its count by its period: one more that passes at once need not come back sooner.
    let counts = [guess.count.saturating_sub(1), guess.count.saturating_add(1)].into_iter().filter(|count| *count > 0);
    near.extend(counts.map(|count| {
        let kept = if guess.kind == Kind::TokenBucket { f64::from(count) / f64::from(guess.count) } else { 1.0 };
        Guess { count, period: guess.period * kept, ..guess }
    }));
    near
}
