//! Simulations as their users meet them: patterns, comparisons, sweeps, plots.

mod comparison;
mod patterns;
mod pictures;
mod policies;
mod snapshot;

use tidegate_core::{Algorithm, Limit};
use tidegate_lab::simulate::{Contestant, Keyed, Report, Row, Simulation};

/// A run of these patterns, from the seed 1.
fn simulation(patterns: &[&str]) -> Simulation {
    Simulation {
        patterns: patterns.iter().map(|text| text.parse().unwrap()).collect(),
        clients: None,
        keyed: Keyed::Client,
        seed: 1,
        length: None,
        bins: None,
        pace: None,
    }
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

/// Under one limit, by the token bucket.
fn run(pattern: &str, text: &str) -> Row {
    let contestant = Contestant::new(Algorithm::TokenBucket, &[limit(text)]).unwrap();
    let report: Report = simulation(&[pattern]).run(&[contestant]).unwrap();
    report.rows.into_iter().next().unwrap()
}
