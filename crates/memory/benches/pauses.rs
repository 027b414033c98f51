//! No pause: the slowest of ten million checks while the table fills from empty and ages, beside the slowest turn of
//! a loop that reads the same clock and writes to memory of the same size.
//!
//! Both loops are interrupted by whatever else the machine does, so the two are run in turn, five times, and a turn in
//! which the processor was given to someone else does not count.

mod rounds;

use std::time::Duration;

use rounds::{Clock, quota, scattered};
use tidegate_core::{AtBound, Cost, LimitId, Time};
use tidegate_memory::{Table, TableOptions};

const CHECKS: u64 = 10_000_000;
const KEYS: u64 = 1_000_000;
const EXCESS_MAX: Duration = Duration::from_micros(100);

fn main() {
    println!("\nthe slowest of {CHECKS} checks on a table that fills and ages, in microseconds");
    for _ in 0..5 {
        let (control, ours) = (slowest(control()), slowest(ours()));
        let excess = ours.saturating_sub(control);
        let verdict = if excess < EXCESS_MAX { "met" } else { "missed" };
        println!("control {:>8.1}  ours {:>8.1}  excess {:>8.1}  {verdict}", us(control), us(ours), us(excess));
    }
}

fn us(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1_000.0
}

fn slowest(mut turn: impl FnMut(u64, Time)) -> Duration {
    let clock = Clock::new();
    let mut interruptions = Interruptions::default();
    let (mut before, mut slowest) = (clock.now(), Duration::ZERO);
    for i in 0..CHECKS {
        turn(i, before);
        let mut after = clock.now();
        if after.since(before) > slowest {
            if !interruptions.had_another() {
                slowest = after.since(before);
            }
            after = clock.now();
        }
        before = after;
    }
    slowest
}

/// How often the kernel took the processor away from this process, and how long a hypervisor took it from the kernel,
/// where they say so.
#[derive(Default)]
struct Interruptions(u64);

impl Interruptions {
    fn had_another(&mut self) -> bool {
        let count =
            number_in("/proc/self/status", "nonvoluntary_ctxt_switches:", 0) + number_in("/proc/stat", "cpu ", 7);
        std::mem::replace(&mut self.0, count) != count
    }
}

/// The number at `place` behind `name` in a file of names and numbers; 0 if there is none.
fn number_in(path: &str, name: &str, place: usize) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let numbers = text.lines().find_map(|line| line.strip_prefix(name));
    numbers.and_then(|numbers| numbers.split_whitespace().nth(place)?.parse().ok()).unwrap_or(0)
}

/// New keys all the time: each lives for as long as a million and more others need to come, so that first the slots
/// fill and then they are taken over from those that have refilled.
fn ours() -> impl FnMut(u64, Time) {
    let table = Table::new(TableOptions::with_keys(KEYS as usize));
    let limit = table.know(LimitId::of("bench", "limit"), &quota("10/s"), AtBound::Displace).expect("few quotas");
    move |i, now| {
        let _ = std::hint::black_box(table.check_at(&limit, &(i / 2), Cost::ONE, now));
    }
}

fn control() -> impl FnMut(u64, Time) {
    let mut words = vec![0_u64; KEYS as usize * 25 / 8];
    move |i, now| {
        let at = scattered(i / 2, words.len() as u64) as usize;
        words[at] = words[at].wrapping_add(now.as_nanos());
    }
}
