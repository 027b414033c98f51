//! A table that takes up what another one held decides as the other would have.
#![cfg(not(loom))]

mod common;

use common::{Numbers, limit, limit_id, ms, quota, shown};
use proptest::prelude::*;
use tidegate_core::{Algorithm, AtBound, Cost, LimitId, State, Time};
use tidegate_memory::{LOG_BYTES_MIN, Table, TableLimit, TableOptions};

/// Another table, with room for so many keys, that takes up what `table` holds.
fn taken_up(table: &Table, keys: usize, now: Time) -> (Table, usize) {
    let mut other = Table::with_seeds(TableOptions::with_keys(keys), table.seeds());
    let lost = table.buckets_at(now).filter(|bucket| !other.take_up_at(bucket, now).unwrap()).count();
    table.pools_at(now).iter().for_each(|pool| assert!(other.take_up_pool(pool).unwrap()));
    table.pooled_keys().for_each(|keys| other.take_up_pooled(keys));
    (other, lost)
}

#[test]
fn logs_are_told_by_what_counts_and_taken_up_with_it() {
    let log = |table: &Table, text: &str| {
        let quota = quota(text).with_algorithm(Algorithm::SlidingLog).unwrap();
        table.know(limit_id(), &quota, AtBound::Deny).unwrap()
    };
    let (table, mut now_ms) = (Table::new(TableOptions::with_keys(100)), 0);
    let known = log(&table, "20/min");
    for (key, times) in [("full", 20), ("half", 10), ("over", 1)] {
        let pass = |i: u64| table.check_at(&known, key, Cost::ONE, ms(now_ms + i * 1_000)).is_allowed();
        assert!((0..times).all(pass));
        now_ms = if key == "half" { 0 } else { 15_000 };
    }
    let told: Vec<_> = table.logs_at(ms(62_000)).map(|log| log.entries.len()).collect();
    assert_eq!((told.iter().sum::<usize>(), told.len()), (17 + 10, 2));
    let mut other = Table::with_seeds(TableOptions::with_keys(5), table.seeds());
    table.logs_at(ms(62_000)).for_each(|log| assert!(other.take_up_log_at(&log, ms(63_000)).unwrap()));
    let (before, after) = (known, log(&other, "20/min"));
    for key in ["full", "half", "over"] {
        for at in (63_000..90_000).step_by(999) {
            let decide = |table: &Table, limit| table.check_at(limit, key, Cost::new(3), ms(at));
            let (one, two) = (decide(&table, &before), decide(&other, &after));
            assert_eq!((shown(&one), one.reset_after()), (shown(&two), two.reset_after()), "{key} at {at}");
        }
    }
}

#[test]
fn logs_that_find_no_room_are_told_and_counted() {
    let quota = quota("10000/h").with_algorithm(Algorithm::SlidingLog).unwrap();
    let table = Table::new(TableOptions::with_keys(5));
    let known = table.know(limit_id(), &quota, AtBound::Deny).unwrap();
    for key in 0..4_u64 {
        assert!((0..6_000).all(|at| table.check_at(&known, &key, Cost::ONE, ms(at)).is_allowed()));
    }
    let mut options = TableOptions::with_keys(5);
    options.log_bytes = LOG_BYTES_MIN;
    let mut other = Table::with_seeds(options, table.seeds());
    let taken: Vec<_> = table.logs_at(ms(7_000)).map(|log| other.take_up_log_at(&log, ms(7_000)).unwrap()).collect();
    assert_eq!(taken, [true, false, false, false], "each takes 160 kB of the 256 kB");
    assert_eq!((other.live_keys_at(ms(7_000)), other.stats().displaced), (1, 3));
}

const LIMITS: [&str; 4] = ["3/min", "100/s burst 7", "5/h burst 60", "1/day"];

fn limits(table: &Table) -> Vec<TableLimit> {
    let know =
        |(i, text): (usize, &&str)| table.know(LimitId::of("p", &i.to_string()), &quota(text), AtBound::Displace);
    LIMITS.iter().enumerate().map(|(i, text)| know((i, text)).unwrap()).collect()
}

proptest! {
    #[test]
    fn save_and_restore_give_equal_decisions(seed in 1_u64.., keys in 400_usize..4_000, gap_ms in 0_u64..200_000) {
        let (mut numbers, table) = (Numbers(seed), Table::new(TableOptions::with_keys(2_000)));
        let mut now_ms = 0;
        let mut step = |now_ms: &mut u64| {
            *now_ms += numbers.below(400);
            (numbers.below(4) as usize, numbers.below(40), Cost::new(numbers.below(4)))
        };
        let known = limits(&table);
        for _ in 0..300 {
            let (i, key, cost) = step(&mut now_ms);
            let _ = table.check_at(&known[i], &key, cost, ms(now_ms));
        }
        // The first quota is another one, as after a reload, and its keys are seen only later.
        now_ms += gap_ms;
        let (other, lost) = taken_up(&table, keys, ms(now_ms));
        prop_assert_eq!(lost, 0);
        let changed = |table: &Table, mut limits: Vec<TableLimit>| {
            let quota = quota("9/min burst 2");
            limits[0] = table.know(LimitId::of("p", "0"), &quota, AtBound::Displace).unwrap().in_force_since(ms(now_ms));
            limits
        };
        let (before, after) = (changed(&table, known), changed(&other, limits(&other)));
        prop_assert_eq!(table.live_keys_at(ms(now_ms)), other.live_keys_at(ms(now_ms)));
        for _ in 0..300 {
            let (i, key, cost) = step(&mut now_ms);
            let [one, two] =
                [(&table, &before), (&other, &after)].map(|(table, limits)| table.check_at(&limits[i], &key, cost, ms(now_ms)));
            prop_assert_eq!((shown(&one), one.reset_after()), (shown(&two), two.reset_after()));
        }
    }
}

#[test]
fn what_finds_no_room_is_told_and_counted() {
    let table = Table::new(TableOptions::with_keys(1_000));
    let known = limit(&table, "1/day", AtBound::Displace);
    (0..100_u64).for_each(|key| assert!(table.check_at(&known, &key, Cost::ONE, ms(0)).is_allowed()));
    let (other, lost) = taken_up(&table, 40, ms(1));
    assert_eq!((lost, other.live_keys_at(ms(1)), other.stats().displaced), (60, 40, 60));
}

#[test]
fn full_buckets_are_not_told() {
    let table = Table::new(TableOptions::with_keys(1_000));
    let known = limit(&table, "1/min", AtBound::Displace);
    for (key, at) in [("early", 0), ("late", 30_000)] {
        assert!(table.check_at(&known, key, Cost::ONE, ms(at)).is_allowed());
    }
    let told = |at| table.buckets_at(ms(at)).collect::<Vec<_>>();
    assert_eq!([59_999, 60_000, 90_000].map(|at| told(at).len()), [2, 1, 0]);
    assert_eq!(told(60_000)[0].state, State::from_parts(1, ms(30_000)));
    // What was told before it was full is not taken up after.
    let mut other = Table::with_seeds(TableOptions::with_keys(5), table.seeds());
    assert!(other.take_up_at(&told(59_999)[0], ms(90_000)).unwrap());
    assert_eq!(other.live_keys_at(Time::ZERO), 0);
}

#[test]
fn a_newcomer_owes_what_the_pool_owed_before_the_restart() {
    let table = common::table(5);
    let known = limit(&table, "1/min", AtBound::Pool);
    for key in 0..6_u64 {
        assert!(table.check_at(&known, &key, Cost::ONE, ms(0)).is_allowed());
    }
    assert!(!table.check_at(&known, &6_u64, Cost::ONE, ms(1)).is_allowed());
    // There is room for it now, and it starts with what the pool lacks.
    let (other, lost) = taken_up(&table, 1_000, ms(2));
    let known = other.know(limit_id(), &quota("1/min"), AtBound::Pool).unwrap();
    assert_eq!((lost, shown(&other.check_at(&known, &6_u64, Cost::ONE, ms(2)))), (0, "deny 59.998s".to_owned()));
}
