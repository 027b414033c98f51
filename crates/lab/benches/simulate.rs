//! Arrivals per second that a simulation decides and counts, on one core: traffic, decision, true sliding maxima, false
//! denials and all. The best of several rounds, since whatever else runs only makes it slower.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidegate_core::{Algorithm, Limit};
use tidegate_lab::simulate::{Contestant, Keyed, Simulation, demonstrated};

/// What the token bucket is to reach.
const TARGET: f64 = 10e6;
const ROUNDS: u32 = 7;

fn main() {
    println!("simulate: arrivals per second, best of {ROUNDS} rounds; the token bucket's target is 10 million");
    measure("1 client, evenly, nearly all denied", "steady:rate=1000000/s", "1000/s", Algorithm::TokenBucket);
    measure("1 client, evenly, all allowed", "steady:rate=1000000/s", "2000000/s", Algorithm::TokenBucket);
    measure(
        "1,000 clients by chance, half denied",
        "poisson:rate=1000/s,clients=1000",
        "500/s",
        Algorithm::TokenBucket,
    );
    for algorithm in demonstrated().into_iter().filter(|algorithm| *algorithm != Algorithm::TokenBucket) {
        measure(&format!("1,000 clients, {algorithm}"), "poisson:rate=1000/s,clients=1000", "500/s", algorithm);
    }
}

fn measure(name: &str, pattern: &str, limit: &str, algorithm: Algorithm) {
    let simulation = Simulation {
        patterns: vec![pattern.parse().expect("a pattern")],
        clients: None,
        keyed: Keyed::Client,
        seed: 1,
        length: Some(Duration::from_secs(3)),
        bins: None,
        pace: None,
    };
    let contestant = Contestant::new(algorithm, &[limit.parse::<Limit>().expect("a limit")]).expect("it takes it");
    let round = || {
        let start = Instant::now();
        let report = simulation.run(std::slice::from_ref(&contestant)).expect("it runs");
        black_box(&report).rows[0].arrivals as f64 / start.elapsed().as_secs_f64()
    };
    let best = (0..ROUNDS).map(|_| round()).fold(0.0, f64::max);
    let verdict = match algorithm {
        Algorithm::TokenBucket if best < TARGET => "  below the target",
        _ => "",
    };
    println!("  {name:<42} {:>6.1} million{verdict}", best / 1e6);
}
