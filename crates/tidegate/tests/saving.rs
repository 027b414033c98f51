//! Buckets that are written down by one process and taken up by the next.

use std::io;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{
    Algorithm, AtBound, Charge, Clock as _, Cost, Decision, Handling, Limit, LimitId, ManualClock, Memory, Quota,
    RestoreError, Saved, TableOptions, Time,
};

type Store = Memory<ManualClock>;

fn quota(text: &str) -> Quota {
    text.parse::<Limit>().unwrap().quota().unwrap()
}

fn limit() -> LimitId {
    LimitId::of("p", "limit-1")
}

fn clock(s: u64) -> ManualClock {
    let clock = ManualClock::new();
    clock.set(Time::from_secs(s));
    clock
}

fn take(store: &Store, text: &str, key: &str, cost: u64, at_bound: AtBound) -> bool {
    let charge = Charge::new(limit(), quota(text), key.as_bytes()).with_cost(Cost::new(cost));
    let charge = charge.with_handling(Handling::default().with_at_bound(at_bound));
    let mut decisions = [Decision::unmade(&charge.quota)];
    store.decide_now(&[charge], &mut decisions).unwrap().allowed
}

fn take_of_log(store: &Store, key: &str, cost: u64) -> bool {
    let quota = quota("3/min").with_algorithm(Algorithm::SlidingLog).unwrap();
    let charge = Charge::new(LimitId::of("p", "log"), quota, key.as_bytes()).with_cost(Cost::new(cost));
    store.decide_now(&[charge], &mut [Decision::unmade(&quota)]).unwrap().allowed
}

fn allows(store: &Store, text: &str, key: &str) -> bool {
    take(store, text, key, 1, AtBound::Displace)
}

/// A store at second 100 in which ann has taken 3 of 3, bob two of a log, and what it writes down.
fn written() -> (Store, Vec<u8>) {
    let store = Memory::new(TableOptions::with_keys(1_000), clock(100));
    assert!(take(&store, "3/min", "ann", 3, AtBound::Displace));
    assert!([1, 1].map(|cost| take_of_log(&store, "bob", cost)).iter().all(|passed| *passed));
    let mut file = Vec::new();
    assert_eq!(store.save(&mut file).unwrap(), Saved { buckets: 2, without_room: 0 });
    (store, file)
}

fn restored(file: &[u8], s: u64) -> Result<(Store, Saved), RestoreError> {
    Memory::restored(TableOptions::with_keys(50), clock(s), file)
}

#[test]
fn what_a_key_owes_is_owed_in_the_next_process() {
    let (_, file) = written();
    let (store, saved) = restored(&file, 110).unwrap();
    assert_eq!(saved, Saved { buckets: 2, without_room: 0 });
    assert!(!allows(&store, "3/min", "ann") && allows(&store, "3/min", "bob"));
    assert!(!take_of_log(&store, "bob", 2) && take_of_log(&store, "bob", 1));
    // Ten seconds of the twenty that a token takes had passed meanwhile.
    let (store, _) = restored(&file, 120).unwrap();
    assert!(allows(&store, "3/min", "ann") && !allows(&store, "3/min", "ann"));
    // A limit that is another one meanwhile keeps what is owed (law 10).
    let (store, _) = restored(&file, 100).unwrap();
    assert!(take(&store, "10/min", "ann", 7, AtBound::Displace) && !allows(&store, "10/min", "ann"));
}

#[test]
fn a_clock_that_was_set_back_gives_nothing_and_takes_at_most_one_fill() {
    let (_, file) = written();
    let (store, _) = restored(&file, 99).unwrap();
    assert!(!allows(&store, "3/min", "ann"));
    let long_ago = clock(10);
    let (store, _) = Memory::restored(TableOptions::with_keys(50), long_ago.clone(), file.as_slice()).unwrap();
    assert!(!allows(&store, "3/min", "ann"));
    long_ago.advance(Duration::from_secs(20));
    assert!(allows(&store, "3/min", "ann"));
}

#[test]
fn newcomers_of_a_pool_owe_what_they_owed() {
    let store = Memory::new(TableOptions::with_keys(5), clock(100));
    for key in ["1", "2", "3", "4", "5", "6"] {
        assert!(take(&store, "1/min", key, 1, AtBound::Pool));
    }
    let mut file = Vec::new();
    store.save(&mut file).unwrap();
    let (store, _) = restored(&file, 101).unwrap();
    assert!(!take(&store, "1/min", "7", 1, AtBound::Pool));
}

#[test]
fn what_is_damaged_or_foreign_is_told_and_never_taken_up() {
    let (_, file) = written();
    for length in 0..file.len() {
        let error = restored(&file[..length], 100).unwrap_err();
        let is_told = matches!((length, &error), (0..8, RestoreError::Foreign) | (8.., RestoreError::Damaged));
        assert!(is_told, "{length}: {error:?}");
    }
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut altered = file.clone();
            altered[at] ^= 1 << bit;
            assert!(restored(&altered, 100).is_err(), "bit {bit} of byte {at}");
        }
    }
    let version = [&file[..8], &9_u32.to_le_bytes(), &file[12..]].concat();
    assert_eq!(restored(&version, 0).unwrap_err().to_string(), "it is of version 9, and this program writes 1");
    assert_eq!(restored(b"[[policies]]\n", 0).unwrap_err().to_string(), "it holds no saved buckets");
}

#[test]
fn what_stops_the_writing_is_told() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (store, _) = written();
    assert_eq!(store.save(Full).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), has_head in any::<bool>()) {
        if has_head {
            bytes.splice(0..0, written().1[..36].iter().copied());
        }
        // That random bytes end in their own sum does not happen.
        prop_assert!(restored(&bytes, 100).is_err());
    }

    #[test]
    fn save_and_restore_give_equal_decisions(
        takes in prop::collection::vec((0_u8..30, 0_usize..7, 0_u64..4, 0_u64..20), 0..300),
        later in prop::collection::vec((0_u8..30, 0_usize..7, 0_u64..4, 0_u64..20), 1..200),
    ) {
        const LIMITS: [(&str, Algorithm); 7] = [
            ("3/min", Algorithm::TokenBucket),
            ("100/s burst 7", Algorithm::TokenBucket),
            ("5/h burst 60", Algorithm::TokenBucket),
            ("1/day", Algorithm::TokenBucket),
            ("9/min", Algorithm::FixedWindow),
            ("10/min", Algorithm::SlidingCounter),
            ("11/min", Algorithm::SlidingLog),
        ];
        let decide = |store: &Store, (key, limit, cost): (u8, usize, u64)| {
            let (text, algorithm) = LIMITS[limit];
            let (id, quota) = (LimitId::of("p", text), quota(text).with_algorithm(algorithm).unwrap());
            let key = [key];
            let charge = Charge::new(id, quota, &key).with_cost(Cost::new(cost));
            let mut decisions = [Decision::unmade(&charge.quota)];
            let _ = store.decide_now(&[charge], &mut decisions).unwrap();
            (decisions[0].outcome(), decisions[0].remaining(), decisions[0].reset_after())
        };
        let time = clock(1_000);
        let before = Memory::new(TableOptions::with_keys(1_000), time.clone());
        for (key, limit, cost, wait_s) in takes {
            decide(&before, (key, limit, cost));
            time.advance(Duration::from_secs(wait_s));
        }
        let mut file = Vec::new();
        before.save(&mut file).unwrap();
        let (after, saved) = Memory::restored(TableOptions::with_keys(3_000), time.clone(), file.as_slice()).unwrap();
        prop_assert_eq!(saved.without_room, 0);
        prop_assert_eq!(after.table().live_keys_at(time.now()), before.table().live_keys_at(time.now()));
        for (key, limit, cost, wait_s) in later {
            prop_assert_eq!(decide(&before, (key, limit, cost)), decide(&after, (key, limit, cost)));
            time.advance(Duration::from_secs(wait_s));
        }
    }
}
