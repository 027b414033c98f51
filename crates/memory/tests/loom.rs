//! Models of the atomic steps: every interleaving of two threads, up to a bound on preemptions, under the weak memory
//! of the language and not of one processor.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p tidegate-memory --release --test loom
//! ```
//!
//! Two preemptions are tried unless `LOOM_MAX_PREEMPTIONS` says otherwise. The table never grows and its memory never
//! moves, so there is no model of an insert while the table grows: that race does not exist.
#![cfg(loom)]

mod common;

use common::{limit, limit_id, ms, quota, table};
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use tidegate_core::{Algorithm, AtBound, Charge, Cost, Decision, Handling, LimitId, Mode, Time};
use tidegate_memory::{Bucket, QuotaCell, Table, TableLimit};

const PREEMPTIONS_MAX: usize = 2;
/// Steps of one interleaving: the longest model takes about a thousand.
const STEPS_MAX: usize = 20_000;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS_MAX);
    builder.max_branches = STEPS_MAX;
    builder.check(body);
}

/// Runs both at once, the second one here, and gives both answers.
fn both<A: 'static, B>(a: impl FnOnce() -> A + Send + 'static, b: impl FnOnce() -> B) -> (A, B) {
    let a = thread::spawn(a);
    let b = b();
    (a.join().unwrap(), b)
}

fn take(table: &Table, limit: &TableLimit, key: &str, now: Time) -> Decision {
    table.check_at(limit, key, Cost::ONE, now)
}

// One bucket.

#[test]
fn a_bucket_admits_exactly_its_burst() {
    model(|| {
        let bucket = Arc::new(Bucket::new(&quota("2/h")));
        let there = bucket.clone();
        let take = |bucket: &Bucket| u32::from(bucket.decide_at(Cost::ONE, ms(0)).is_allowed());
        let (a, b) = both(move || take(&there) + take(&there), || take(&bucket));
        assert_eq!(a + b, 2);
        assert_eq!(bucket.peek_at(ms(0)).remaining(), 0);
    });
}

/// The state goes from (4 missing at 0 s) to (1 missing at 4 s). Half of each would be 4 missing at 4 s.
#[test]
fn a_look_and_a_denial_never_see_half_of_a_state() {
    model(|| {
        let bucket = Arc::new(Bucket::new(&quota("1/s burst 4")));
        assert!(bucket.decide_at(Cost::new(4), ms(0)).is_allowed());
        let there = bucket.clone();
        let (taken, seen) =
            both(move || there.decide_at(Cost::ONE, ms(4_000)), || bucket.peek_at(ms(4_000)).remaining());
        assert!(taken.is_allowed());
        assert!(seen == 4 || seen == 3, "{seen} left");
    });
    model(|| {
        let bucket = Arc::new(Bucket::new(&quota("1/s burst 4")));
        assert!(bucket.decide_at(Cost::new(4), ms(0)).is_allowed());
        let there = bucket.clone();
        let (one, four) =
            both(move || there.decide_at(Cost::ONE, ms(4_000)), || bucket.decide_at(Cost::new(4), ms(4_000)));
        assert_ne!(one.is_allowed(), four.is_allowed(), "the first one passes");
        if !four.is_allowed() {
            assert_eq!(four.retry_after(), Some(ms(1_000).since(ms(0))));
        }
        assert_eq!(bucket.peek_at(ms(4_000)).remaining(), if one.is_allowed() { 3 } else { 0 });
    });
}

#[test]
fn a_quota_is_replaced_between_decisions() {
    model(|| {
        let bucket = Arc::new(Bucket::new(&quota("4/s")));
        let there = bucket.clone();
        let ((), taken) =
            both(move || there.replace_at(&quota("2/h"), ms(0)), || bucket.decide_at(Cost::ONE, ms(0)).remaining());
        assert!(taken == 3 || taken == 1, "{taken} left");
        assert_eq!((bucket.peek_at(ms(0)).remaining(), bucket.quota()), (1, quota("2/h")));
    });
}

#[test]
fn a_cell_is_read_whole() {
    model(|| {
        let cell = Arc::new(QuotaCell::new(Some(quota("4/s"))));
        let there = cell.clone();
        let ((), seen) = both(move || there.replace(Some(quota("2/h")), ms(1)), || cell.load());
        assert!(seen == (Some(quota("4/s")), ms(0)) || seen == (Some(quota("2/h")), ms(1)), "{seen:?}");
    });
}

// The table.

/// `a` owes until 1 s. `b` read the clock at 1 s and claims the slot; `a` read it at half past, and comes by whenever.
#[test]
fn a_forgotten_bucket_gives_no_token_early() {
    model(|| {
        let table = Arc::new(table(5));
        let limit = limit(&table, "1/s", AtBound::Displace);
        assert!(take(&table, &limit, "a", ms(0)).is_allowed());
        let there = table.clone();
        let (b, a) = both(move || take(&there, &limit, "b", ms(1_000)), || take(&table, &limit, "a", ms(500)));
        assert!(b.is_allowed());
        assert!(!a.is_allowed() || a.decided_at() >= ms(1_000), "a token before its time");
        assert_eq!(take(&table, &limit, "a", ms(1_500)).is_allowed(), !a.is_allowed());
        assert!(!take(&table, &limit, "b", ms(1_500)).is_allowed());
    });
}

#[test]
fn two_threads_that_insert_one_key_make_one_bucket() {
    model(|| {
        let table = Arc::new(table(5));
        let limit = limit(&table, "1/h", AtBound::Displace);
        let there = table.clone();
        let (a, b) = both(move || take(&there, &limit, "k", ms(1)), || take(&table, &limit, "k", ms(0)));
        assert!(a.is_allowed() != b.is_allowed());
        assert_eq!(table.live_keys_at(ms(1)), 1);
    });
}

#[test]
fn two_threads_that_insert_two_keys_make_two_buckets() {
    model(|| {
        let table = Arc::new(table(5));
        let limit = limit(&table, "1/h", AtBound::Displace);
        let there = table.clone();
        let (a, b) = both(move || take(&there, &limit, "a", ms(1)), || take(&table, &limit, "b", ms(0)));
        assert!(a.is_allowed() && b.is_allowed());
        assert!(["a", "b"].iter().all(|key| !take(&table, &limit, key, ms(2)).is_allowed()));
    });
}

#[test]
fn a_reset_comes_before_or_after_a_check() {
    model(|| {
        let table = Arc::new(table(5));
        let limit = limit(&table, "2/h", AtBound::Displace);
        assert!(table.check_at(&limit, "k", Cost::new(2), ms(0)).is_allowed());
        let there = table.clone();
        let ((), taken) = both(move || there.reset(limit_id(), "k"), || take(&table, &limit, "k", ms(0)));
        let left = if taken.is_allowed() { 1 } else { 2 };
        assert_eq!(table.peek_at(&limit, "k", ms(0)).remaining(), left);
    });
}

/// One decision on both keys, in this order.
fn take_all(table: &Table, limit: &TableLimit, keys: [&str; 2]) -> bool {
    let charges = keys.map(|key| Charge {
        limit: limit_id(),
        quota: *limit.quota().quota(),
        key: key.as_bytes(),
        cost: Cost::ONE,
        mode: Mode::Enforce,
        handling: Handling::default().with_at_bound(AtBound::Displace),
    });
    let mut decisions = charges.map(|charge| Decision::unmade(&charge.quota));
    table.decide_at(&charges, &mut decisions, ms(0)).unwrap().allowed
}

/// A table of nine groups has two homes. Under this seed they are not the same for these keys.
const KEY_OF_EACH_HOME: [&str; 2] = ["0", "1"];

#[test]
fn two_decisions_over_two_groups_in_opposite_order_neither_wait_for_each_other_nor_mix() {
    model(|| {
        let table = Arc::new(table(45));
        let limit = limit(&table, "1/h", AtBound::Displace);
        let there = table.clone();
        let [first, second] = KEY_OF_EACH_HOME;
        let (forth, back) =
            both(move || take_all(&there, &limit, [first, second]), || take_all(&table, &limit, [second, first]));
        assert!(forth != back, "one takes both, the other nothing");
        assert!(KEY_OF_EACH_HOME.iter().all(|key| table.peek_at(&limit, key.as_bytes(), ms(0)).remaining() == 0));
    });
}

/// A log is beside the table, behind a lock that comes after those of the groups.
#[test]
fn decisions_over_a_bucket_and_a_log_neither_wait_for_each_other_nor_mix() {
    model(|| {
        let table = Arc::new(table(5));
        let log = quota("1/h").with_algorithm(Algorithm::SlidingLog).unwrap();
        let [bucket, log] = [("bucket", quota("1/h")), ("log", log)]
            .map(|(name, quota)| Charge::new(LimitId::of("p", name), quota, b"k"));
        let decide = |table: &Table, charges: [Charge<'_>; 2]| {
            let mut decisions = charges.map(|charge| Decision::unmade(&charge.quota));
            table.decide_at(&charges, &mut decisions, ms(0)).unwrap().allowed
        };
        let there = table.clone();
        let (forth, back) = both(move || decide(&there, [bucket, log]), || decide(&table, [log, bucket]));
        assert!(forth != back, "one takes both, the other nothing");
        assert!(!decide(&table, [bucket, bucket.with_cost(Cost::ZERO)]) && !decide(&table, [log, log]));
    });
}

/// `1` is nearest to full. Either it is charged first, and `2` is displaced in its stead; or it is displaced, starts
/// again, and displaces `2` itself.
#[test]
fn a_displaced_bucket_is_not_written_to() {
    model(|| {
        let table = Arc::new(table(5));
        let limit = limit(&table, "2/h", AtBound::Displace);
        for (i, key) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
            assert!(take(&table, &limit, key, ms(i as u64)).is_allowed());
        }
        let there = table.clone();
        let (newcomer, first) = both(move || take(&there, &limit, "new", ms(10)), || take(&table, &limit, "1", ms(10)));
        assert_eq!(newcomer.remaining(), 1);
        assert_eq!(table.stats().displaced, 1 + first.remaining());
        assert_eq!(table.peek_at(&limit, "1", ms(10)).remaining(), first.remaining());
        assert_eq!(table.peek_at(&limit, "new", ms(10)).remaining(), 1);
        assert_eq!(table.peek_at(&limit, "3", ms(10)).remaining(), 1);
    });
}

/// No room at 999 ms, one slot at 1 s: in the pool or in a bucket of its own, the newcomer gets one token.
#[test]
fn a_pool_and_a_bucket_of_its_own_give_a_newcomer_no_more_than_the_burst() {
    model(|| {
        let table = Arc::new(table(5));
        let others = |text| table.know(LimitId::of("test", "others"), &quota(text), AtBound::Deny).unwrap();
        for (key, text) in [("1", "1/d"), ("2", "1/d"), ("3", "1/d"), ("4", "1/d"), ("5", "1/s")] {
            assert!(take(&table, &others(text), key, ms(0)).is_allowed());
        }
        let limit = limit(&table, "1/h", AtBound::Pool);
        let there = table.clone();
        let (early, late) =
            both(move || take(&there, &limit, "new", ms(999)), || take(&table, &limit, "new", ms(1_000)));
        assert!(early.is_allowed() != late.is_allowed());
        assert!(!take(&table, &limit, "new", ms(1_001)).is_allowed());
    });
}

/// `away` sits behind its home, which is full, and owes until 1 s. At 1 s a newcomer lowers the home's flag and takes
/// the slot; `away` read the clock before.
#[test]
fn a_key_away_from_its_home_gets_no_token_early() {
    model(|| {
        let table = Arc::new(table(10));
        let slow = limit(&table, "1/d", AtBound::Deny);
        for key in ["1", "2", "3", "4", "5"] {
            assert!(take(&table, &slow, key, ms(0)).is_allowed());
        }
        let quick = limit(&table, "1/s", AtBound::Deny);
        assert!(take(&table, &quick, "away", ms(0)).is_allowed());
        let there = table.clone();
        let (newcomer, away) =
            both(move || take(&there, &quick, "new", ms(1_000)), || take(&table, &quick, "away", ms(500)));
        assert!(newcomer.is_allowed());
        assert!(!away.is_allowed() || away.decided_at() >= ms(1_000), "a token before its time");
        assert_eq!(take(&table, &quick, "away", ms(1_500)).is_allowed(), !away.is_allowed());
        assert!(!take(&table, &quick, "new", ms(1_500)).is_allowed());
    });
}

/// `away` sits behind its home and is full at 1 s. One thread seats a newcomer, which lowers the home's flag, and then
/// `away` in its home; the other one has found the old seat, or finds the new one. There is one token.
#[test]
fn an_old_seat_and_a_new_one_are_one_bucket() {
    model(|| {
        let table = Arc::new(table(10));
        let slow = limit(&table, "1/d", AtBound::Deny);
        for key in ["1", "2", "3"] {
            assert!(take(&table, &slow, key, ms(0)).is_allowed());
        }
        let quick = limit(&table, "1/s", AtBound::Deny);
        for key in ["4", "5", "away"] {
            assert!(take(&table, &quick, key, ms(0)).is_allowed());
        }
        let there = table.clone();
        let seat_both = move || {
            assert!(take(&there, &quick, "new", ms(1_000)).is_allowed());
            take(&there, &quick, "away", ms(1_000))
        };
        let (here, there) = both(seat_both, || take(&table, &quick, "away", ms(1_000)));
        assert!(here.is_allowed() != there.is_allowed());
        assert!(!take(&table, &quick, "away", ms(1_500)).is_allowed());
    });
}
