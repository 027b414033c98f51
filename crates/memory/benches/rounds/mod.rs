//! Two ways to do the same work, measured in turn in one run: a ratio, not a time.
//!
//! One warm-up, then rounds of ours and of the peer's, the order changing each time. What is printed are the medians
//! in nanoseconds per operation, and the median of the rounds' ratios, which a machine that gets slower for a while
//! moves least. A round is a millisecond or two in threads of its own, so that most of them run undisturbed even on a
//! busy machine.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_core::{Limit, Quota, Time};

/// The share of a round that its threads must have spent side by side, on average; else it does not count.
const OVERLAP_MIN: f64 = 0.85;
/// How often a round is tried again that did not count.
const TRIES_MAX: usize = 30;

pub(crate) const ROUNDS: usize = 201;

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

/// Calls `work(thread, i)` for each i below `operations` in each thread; gives nanoseconds per call of one thread, or
/// nothing if the threads did not run at the same time.
pub(crate) fn timed<R>(threads: usize, operations: u64, work: impl Fn(usize, u64) -> R + Sync) -> Option<f64> {
    let barrier = Barrier::new(threads);
    let one = |thread: usize| {
        barrier.wait();
        let start = Instant::now();
        for i in 0..operations {
            black_box(work(thread, i));
        }
        (start, Instant::now())
    };
    let spans: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let all = spans.iter().map(|span| span.1).max()? - spans.iter().map(|span| span.0).min()?;
    let mean = spans.iter().map(|span| span.1 - span.0).sum::<Duration>() / u32::try_from(threads).ok()?;
    (mean.as_secs_f64() >= OVERLAP_MIN * all.as_secs_f64()).then(|| per_operation(mean, operations))
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
pub(crate) fn compare(
    name: &str,
    target: f64,
    rounds: usize,
    ours: impl Fn() -> Option<f64>,
    peer: impl Fn() -> Option<f64>,
) {
    let ours = || (0..TRIES_MAX).find_map(|_| ours());
    let peer = || (0..TRIES_MAX).find_map(|_| peer());
    let _warm_up = (ours(), peer());
    let mut all = Vec::new();
    for round in 0..rounds {
        let pair = if round % 2 == 0 {
            let first = ours();
            (first, peer())
        } else {
            let first = peer();
            (ours(), first)
        };
        if let (Some(ours), Some(peer)) = pair {
            all.push((ours, peer));
        }
    }
    let Some(ratio) = median(all.iter().map(|(ours, peer)| ours / peer)) else {
        println!("{name:<44} the machine was too busy: the threads never ran side by side");
        return;
    };
    let verdict = if ratio <= target { "met" } else { "missed" };
    let ours = median(all.iter().map(|pair| pair.0)).unwrap_or(f64::NAN);
    let peer = median(all.iter().map(|pair| pair.1)).unwrap_or(f64::NAN);
    println!("{name:<44} {ours:>9.1} {peer:>9.1} {ratio:>7.3} {target:>7.3} {verdict} ({} rounds)", all.len());
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
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
