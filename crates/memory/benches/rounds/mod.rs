//! Two ways to do the same work, measured in turn in one run: a ratio, not a time.
//!
//! One warm-up, then rounds of ours and of the peer's, the order changing each time. What is printed are the medians
//! in nanoseconds per operation, and the median of the rounds' ratios, which a machine that gets slower for a while
//! moves least.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_core::{Limit, Quota, Time};

pub(crate) const ROUNDS: usize = 41;

/// The clock that governor reads, as nanoseconds.
pub(crate) struct Clock {
    clock: quanta::Clock,
    start: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let clock = quanta::Clock::new();
        Self { start: clock.raw(), clock }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.clock.delta_as_nanos(self.start, self.clock.raw()))
    }
}

pub(crate) fn quota(text: &str) -> Quota {
    text.parse::<Limit>().expect("a limit").quota().expect("with a quota")
}

/// The peer's `count` per `period`, with a burst of `count`.
pub(crate) fn peer_quota(count: u32, period: Duration) -> governor::Quota {
    let interval = governor::Quota::with_period(period / count).expect("not zero");
    interval.allow_burst(NonZeroU32::new(count).expect("not zero"))
}

/// Calls `work(thread, i)` for each i below `operations` in each thread; gives nanoseconds per call of one thread.
pub(crate) fn timed<R>(threads: usize, operations: u64, work: impl Fn(usize, u64) -> R + Sync) -> f64 {
    let one = |thread: usize| {
        for i in 0..operations {
            black_box(work(thread, i));
        }
    };
    if threads == 1 {
        let start = Instant::now();
        one(0);
        return per_operation(start.elapsed(), operations);
    }
    let barrier = Barrier::new(threads);
    let spans: Vec<Duration> = thread::scope(|scope| {
        let timed = |thread: usize| {
            let (barrier, one) = (&barrier, &one);
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                one(thread);
                start.elapsed()
            })
        };
        let threads: Vec<_> = (0..threads).map(timed).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    spans.iter().map(|span| per_operation(*span, operations)).sum::<f64>() / spans.len() as f64
}

fn per_operation(span: Duration, operations: u64) -> f64 {
    span.as_nanos() as f64 / operations as f64
}

/// Prints the header of what [`compare`] prints.
pub(crate) fn header(title: &str) {
    println!("\n{title}");
    println!("{:<44} {:>9} {:>9} {:>7} {:>7}", "", "ours ns", "peer ns", "ratio", "target");
}

/// Measures both in turn and prints one line.
pub(crate) fn compare(name: &str, target: f64, rounds: usize, ours: impl Fn() -> f64, peer: impl Fn() -> f64) {
    let _warm_up = (ours(), peer());
    let (mut all_ours, mut all_peer, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (a, b) = if round % 2 == 0 {
            let a = ours();
            (a, peer())
        } else {
            let b = peer();
            (ours(), b)
        };
        all_ours.push(a);
        all_peer.push(b);
        ratios.push(a / b);
    }
    let ratio = median(ratios);
    let verdict = if ratio <= target { "met" } else { "missed" };
    let (ours, peer) = (median(all_ours), median(all_peer));
    println!("{name:<44} {ours:>9.1} {peer:>9.1} {ratio:>7.3} {target:>7.3} {verdict}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The i-th of some numbers that look random, below `end`.
#[inline]
pub(crate) fn scattered(i: u64, end: u64) -> u64 {
    let mixed = (i ^ (i >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(mixed ^ (mixed >> 32)) * u128::from(end)) >> 64) as u64
}

/// What is resident of this process, in bytes; 0 where that cannot be told.
pub(crate) fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok()).unwrap_or(0) * 1024
}
