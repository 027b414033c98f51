//! One bucket, beside governor's direct limiter. Both read the same clock.

mod rounds;

use std::time::Duration;

use governor::RateLimiter;
use governor::clock::QuantaClock;
use rounds::{Clock, ROUNDS, compare, header, peer_quota, quota, timed};
use tidegate_core::Cost;
use tidegate_memory::Bucket;

const OPERATIONS: u64 = 50_000;

fn main() {
    header("one bucket, governor direct beside it");
    let clock = Clock::new();
    compare("the clock alone, on both sides", 1.1, ROUNDS, || read(&clock), read_peers);
    pair("1 thread, nearly all allowed", 1.1, 1, "1000000000/s", 1_000_000_000);
    pair("2 threads on one bucket, nearly all allowed", 0.9, 2, "1000000000/s", 1_000_000_000);
    pair("2 threads on one bucket, 1 in 50 allowed", 0.65, 2, "1000000/s", 1_000_000);
    pair("2 threads on one bucket, all denied", 0.65, 2, "1/s", 1);
}

fn read(clock: &Clock) -> Option<f64> {
    timed(1, OPERATIONS, |_, _| clock.now())
}

fn read_peers() -> Option<f64> {
    let clock = QuantaClock::default();
    timed(1, OPERATIONS, |_, _| governor::clock::Clock::now(&clock))
}

fn pair(name: &str, target: f64, threads: usize, limit: &str, count: u32) {
    let (clock, bucket) = (Clock::new(), Bucket::new(&quota(limit)));
    let peer = RateLimiter::direct_with_clock(peer_quota(count, Duration::from_secs(1)), QuantaClock::default());
    let ours = || timed(threads, OPERATIONS, |_, _| bucket.decide_at(Cost::ONE, clock.now()).is_allowed());
    let peers = || timed(threads, OPERATIONS, |_, _| peer.check().is_ok());
    compare(name, target, ROUNDS, ours, peers);
}
