//! Far more keys than there is room for. One test, alone in its process: it measures the process's memory.
#![cfg(all(not(loom), target_os = "linux"))]

mod common;

use common::{limit, ms, quota};
use tidegate_core::{AtBound, Cost, Time};
use tidegate_memory::{KEYS_DEFAULT, Table, TableLimit, TableOptions};

const FLOOD: u64 = 10_000_000;
/// Keys that were exhausted before the flood.
const EXHAUSTED: u64 = 1_000;
/// What else may become resident: code that is run for the first time, the index of quotas, the allocator's own.
const SLACK_BYTES: usize = 4 << 20;
/// The table's pages beside its slots.
const QUOTA_INDEX_BYTES: usize = 512 << 10;

/// A field of `/proc/self/status`, in bytes: `VmRSS` is what is resident, `VmHWM` the most that ever was.
fn resident_bytes(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a field");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

#[test]
fn memory_stays_within_its_bound_whoever_chooses_the_keys() {
    for at_bound in [AtBound::Deny, AtBound::Pool, AtBound::Displace] {
        flood(at_bound);
    }
    br_104_five_million_keys_and_a_maximum_of_a_hundred_thousand();
}

fn assert_resident(before: usize, table: &Table) {
    let grown = resident_bytes("VmHWM").saturating_sub(before);
    let bound = table.bytes() + QUOTA_INDEX_BYTES + SLACK_BYTES;
    assert!(grown <= bound, "{grown} bytes became resident, {bound} are stated");
}

fn flood(at_bound: AtBound) {
    let before = resident_bytes("VmRSS");
    let table = Table::new(TableOptions::with_keys(KEYS_DEFAULT));
    let limit = limit(&table, "2/h", at_bound);
    for key in 0..EXHAUSTED {
        assert!(table.check_at(&limit, &key, Cost::new(2), ms(0)).is_allowed());
    }
    let mut admitted = 0;
    for key in EXHAUSTED..EXHAUSTED + FLOOD {
        // A microsecond each.
        let now = Time::from_nanos(1_000 * key);
        admitted += u64::from(table.check_at(&limit, &key, Cost::ONE, now).is_allowed());
        if key % 500_000 == 0 && at_bound != AtBound::Displace {
            assert_exhausted(&table, &limit, now);
        }
    }
    assert_resident(before, &table);
    let capacity = table.capacity() as u64;
    let (stats, live) = (table.stats(), table.live_keys_at(ms(11_000)) as u64);
    match at_bound {
        AtBound::Deny => {
            assert_eq!((stats.displaced, stats.pooled), (0, 0));
            assert_eq!((admitted, live), (FLOOD - stats.refused, admitted + EXHAUSTED));
        }
        AtBound::Pool => {
            // The pool's two tokens; it takes half an hour to get another.
            assert_eq!((stats.displaced, stats.refused, stats.pooled), (0, 0, 2));
            assert_eq!(admitted, live - EXHAUSTED + 2);
        }
        AtBound::Displace => {
            assert_eq!((stats.refused, stats.pooled, admitted), (0, 0, FLOOD));
            assert_eq!(stats.displaced, EXHAUSTED + FLOOD - live);
        }
    }
    // Uniform hashing and eight groups to look in: the table is as good as full before anyone is turned away.
    assert!(live * 100 >= capacity * 97, "{live} of {capacity} slots in use");
    if at_bound != AtBound::Displace {
        assert_exhausted(&table, &limit, Time::from_secs(1_799));
        let passed = |key: &u64| table.check_at(&limit, key, Cost::ONE, Time::from_secs(1_800)).is_allowed();
        assert!((0..EXHAUSTED).all(|key| passed(&key)), "the wait was true");
    }
}

fn assert_exhausted(table: &Table, limit: &TableLimit, now: Time) {
    for key in 0..EXHAUSTED {
        let decision = table.check_at(limit, &key, Cost::ONE, now);
        assert_eq!(decision.retry_after(), Some(Time::from_secs(1_800).since(now)), "key {key}");
    }
}

/// 12 microseconds apart, 10/s: about 8,300 keys are live at any time.
fn br_104_five_million_keys_and_a_maximum_of_a_hundred_thousand() {
    const KEYS: u64 = 5_000_000;
    let before = resident_bytes("VmHWM");
    let table = Table::new(TableOptions::with_keys(100_000));
    let limit = table.know(common::limit_id(), &quota("10/s"), AtBound::Displace).unwrap();
    let at = |key| Time::from_nanos(12_000 * key);
    for key in 0..KEYS {
        assert!(table.check_at(&limit, &key, Cost::ONE, at(key)).is_allowed());
        if key % 1_000_000 == 999_999 {
            let live = table.live_keys_at(at(key));
            assert!((8_300..8_400).contains(&live), "{live} keys are live");
        }
    }
    assert_eq!(table.stats().displaced, 0, "there was always room");
    assert_resident(before, &table);
    let later = at(KEYS).saturating_add(std::time::Duration::from_secs(10));
    assert_eq!(table.live_keys_at(later), 0);
    assert_eq!(table.check_at(&limit, &0u64, Cost::ONE, later).remaining(), 9);
}
