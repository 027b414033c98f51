//! Arrivals per second that a simulation decides and counts, on one core: traffic, decision, true sliding maxima, false
//! denials and all. Beside them the decision alone, to see what the rest costs.
//!
//! The best of several rounds, and in time of the processor where the system tells it, since whatever else runs only
//! makes it slower.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidegate_core::{Algorithm, Cost, Limit, Quota, State, Time, decide};
use tidegate_lab::simulate::{Contestant, Keyed, Simulation, demonstrated};

/// What the token bucket is to reach.
const TARGET: f64 = 10e6;
const ROUNDS: u32 = 7;
/// The arrivals of the decision alone.
const DECISIONS: u64 = 3_000_000;

fn main() {
    println!("simulate: arrivals per second, best of {ROUNDS} rounds; the token bucket's target is 10 million");
    show("the decision alone, nearly all denied", best(|| decisions("1000/s")), None);
    show("the decision alone, all allowed", best(|| decisions("2000000/s")), None);
    let bucket = Algorithm::TokenBucket;
    measure("1 client, evenly, nearly all denied", "steady:rate=1000000/s", "1000/s", bucket);
    measure("1 client, evenly, all allowed", "steady:rate=1000000/s", "2000000/s", bucket);
    measure("1,000 clients in turn, half denied", "steady:rate=1000/s,clients=1000", "500/s", bucket);
    measure("1,000 clients by chance, half denied", "poisson:rate=1000/s,clients=1000", "500/s", bucket);
    for algorithm in demonstrated().into_iter().filter(|algorithm| *algorithm != bucket) {
        let name = format!("1,000 clients by chance, {algorithm}");
        measure(&name, "poisson:rate=1000/s,clients=1000", "500/s", algorithm);
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
    let run = || simulation.run(std::slice::from_ref(&contestant)).expect("it runs").rows[0].arrivals;
    show(name, best(run), (algorithm == Algorithm::TokenBucket).then_some(TARGET));
}

/// One bucket, asked each microsecond.
fn decisions(limit: &str) -> u64 {
    let quota: Quota = limit.parse::<Limit>().expect("a limit").quota().expect("with a rate");
    let mut state = State::FULL;
    let allowed = (0..DECISIONS).filter(|us| {
        let (decision, next) = decide(&quota, state, Cost::ONE, Time::from_nanos(us * 1_000));
        state = next;
        decision.is_allowed()
    });
    black_box(allowed.count());
    DECISIONS
}

/// The most in a second, over all rounds.
fn best(run: impl Fn() -> u64) -> f64 {
    let round = |_| {
        let start = spent();
        let count = black_box(run());
        count as f64 / (spent() - start).as_secs_f64()
    };
    (0..ROUNDS).map(round).fold(0.0, f64::max)
}

/// The time that this program has had a processor; where the system does not tell it, the time of the clock.
fn spent() -> Duration {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let ns = told.as_deref().and_then(|told| told.split(' ').next()).and_then(|ns| ns.parse().ok());
    thread_local!(static START: Instant = Instant::now());
    ns.map_or_else(|| START.with(Instant::elapsed), Duration::from_nanos)
}

fn show(name: &str, best: f64, target: Option<f64>) {
    let verdict = if target.is_some_and(|target| best < target) { "  below the target" } else { "" };
    println!("  {name:<42} {:>6.1} million{verdict}", best / 1e6);
}
