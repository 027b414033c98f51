//! Real threads that get into each other's way, and the proof that they did.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate_core::{AtBound, Cost, Limit, LimitId, Quota, Time};

use crate::{Bucket, Table, TableOptions};

/// Attempts that were lost to another thread, in this process.
pub(crate) static LOST: AtomicU64 = AtomicU64::new(0);

const THREADS: usize = 4;
/// So many attempts must have been lost before a test is content.
const LOST_ENOUGH: u64 = 200;
/// But no longer than so many rounds of [`ROUND`] calls in each thread.
const ROUNDS_MAX: u32 = 10_000;
const ROUND: u32 = 1_000;

fn quota() -> Quota {
    "4294967296/year".parse::<Limit>().unwrap().quota().unwrap()
}

/// Calls `take` from all threads at once until enough attempts were lost; gives how often it said yes.
fn contend(take: impl Fn(u32) -> bool + Sync) -> u64 {
    let (before, admitted, barrier) = (LOST.load(Ordering::Relaxed), AtomicU64::new(0), Barrier::new(THREADS));
    let lost = || LOST.load(Ordering::Relaxed) - before;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                for _ in (0..ROUNDS_MAX).take_while(|_| lost() < LOST_ENOUGH) {
                    let passed = (0..ROUND).filter(|&i| take(i)).count();
                    admitted.fetch_add(passed as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(lost() >= LOST_ENOUGH, "only {} attempts were lost: this was no contention", lost());
    admitted.into_inner()
}

#[test]
fn a_contended_bucket_counts_every_admission_once() {
    let bucket = Bucket::new(&quota());
    let admitted = contend(|_| bucket.decide_at(Cost::ONE, Time::ZERO).is_allowed());
    assert_eq!(bucket.peek_at(Time::ZERO).remaining(), quota().burst() - admitted);
}

#[test]
fn contended_keys_count_every_admission_once() {
    // Twenty keys of one home: most of them sit behind it, and are decided on under locks.
    let table = Table::new(TableOptions { seed: Some(7), ..TableOptions::with_keys(40) });
    let limit = table.know(LimitId::of("stress", "limit"), &quota(), AtBound::Deny).unwrap();
    let admitted = contend(|i| table.check_at(&limit, &(i % 20), Cost::ONE, Time::ZERO).is_allowed());
    let left: u64 = (0..20u32).map(|key| table.peek_at(&limit, &key, Time::ZERO).remaining()).sum();
    assert_eq!(left, 20 * quota().burst() - admitted);
    assert_eq!(table.live_keys_at(Time::ZERO), 20);
}
