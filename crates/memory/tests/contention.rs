//! Exact counts from many threads at once, under a clock that is handed in.
#![cfg(not(loom))]

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::{limit, ms, quota, shown, table};
use tidegate_core::{AtBound, Cost, Decision, Time};
use tidegate_memory::{Bucket, Table, TableLimit};

/// One bucket, whatever it lives in.
trait Shared: Sync {
    fn ask(&self, now: Time) -> Decision;
}

impl Shared for Bucket {
    fn ask(&self, now: Time) -> Decision {
        self.decide_at(Cost::ONE, now)
    }
}

struct Keyed(Table, TableLimit);

impl Shared for Keyed {
    fn ask(&self, now: Time) -> Decision {
        self.0.check_at(&self.1, "key", Cost::ONE, now)
    }
}

fn each_kind(text: &str, body: impl Fn(&dyn Shared)) {
    body(&Bucket::new(&quota(text)));
    let table = table(1_000);
    let limit = limit(&table, text, AtBound::Displace);
    body(&Keyed(table, limit));
}

/// How many were allowed of `calls(now)`, made by all threads at each of `instants`, one instant after the other.
fn admitted_by(threads: usize, instants: std::ops::Range<u64>, calls: impl Fn(usize, Time) -> u64 + Sync) -> u64 {
    let (admitted, barrier) = (AtomicU64::new(0), Barrier::new(threads));
    thread::scope(|scope| {
        for i in 0..threads {
            let (admitted, barrier, calls, instants) = (&admitted, &barrier, &calls, instants.clone());
            scope.spawn(move || {
                for t in instants {
                    barrier.wait();
                    admitted.fetch_add(calls(i, ms(t)), Ordering::Relaxed);
                }
            });
        }
    });
    admitted.into_inner()
}

/// 1,000/s, burst 1,000, five requests in each of 10,000 milliseconds, shared among eight threads.
#[test]
fn br_014_eight_threads_admit_the_burst_and_every_token_that_came_back() {
    each_kind("1000/s", |shared| {
        // Five of the eight ask, others each time.
        let admitted = admitted_by(8, 0..10_000, |i, now| {
            let asks = (i as u64 + now.as_nanos() / 1_000_000) % 8 < 5;
            u64::from(asks && shared.ask(now).is_allowed())
        });
        assert_eq!(admitted, 10_999);
    });
}

#[test]
fn br_072_two_hundred_threads_at_once_get_exactly_the_burst() {
    let table = table(1_000);
    let limit = limit(&table, "10/min", AtBound::Displace);
    for repetition in 0..50u32 {
        let bucket = Bucket::new(&quota("10/min"));
        let of_bucket = admitted_by(200, 0..1, |_, now| u64::from(bucket.decide_at(Cost::ONE, now).is_allowed()));
        let of_key = admitted_by(200, 0..1, |_, now| {
            u64::from(table.check_at(&limit, &repetition, Cost::ONE, now).is_allowed())
        });
        assert_eq!((of_bucket, of_key), (10, 10));
    }
}

#[test]
fn br_154_threads_that_ask_until_denied_lose_no_token_and_find_none() {
    each_kind("1000/s", |shared| {
        let admitted = admitted_by(8, 0..10_001, |_, now| {
            std::iter::repeat_with(|| shared.ask(now)).take_while(Decision::is_allowed).count() as u64
        });
        assert_eq!(admitted, 11_000);
        let later = (0..1_000).filter(|_| shared.ask(ms(12_000)).is_allowed()).count();
        assert_eq!((later, shown(&shared.ask(ms(12_000)))), (1_000, "deny 1ms".to_owned()));
    });
}

/// Threads that insert, forget and displace around each other: nobody gets more than the law permits.
#[test]
fn buckets_that_come_and_go_under_eight_threads_stay_sound() {
    const KEYS: u64 = 60;
    let table = table(40);
    let limit = limit(&table, "2/s burst 1", AtBound::Deny);
    let admitted: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    admitted_by(8, 0..2_000, |i, now| {
        for j in 0..8 {
            let key = (now.as_nanos() / 1_000_000 * 7 + i as u64 * 5 + j * 11) % KEYS;
            let passed = table.check_at(&limit, &key, Cost::ONE, now).is_allowed();
            admitted[key as usize].fetch_add(u64::from(passed), Ordering::Relaxed);
        }
        0
    });
    for (key, admitted) in admitted.into_iter().enumerate() {
        // Two seconds less a millisecond: 1 + 2 x 1.999.
        assert!(admitted.into_inner() <= 4, "key {key}");
    }
    assert!(table.stats().refused > 0, "there was not room for all");
}
