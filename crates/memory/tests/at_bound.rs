//! Law 8 at the memory bound: what each behaviour does for a key that there is no room for.
#![cfg(not(loom))]

mod common;

use common::{limit, limit_id, ms, quota, shown, table};
use tidegate_core::{AtBound, Charge, Cost, Decision, Handling, LimitId, Mode, Time};
use tidegate_memory::{Table, TableLimit, TableStats};

fn take(table: &Table, limit: &TableLimit, key: &str, t: u64) -> String {
    shown(&table.check_at(limit, key.as_bytes(), Cost::ONE, ms(t)))
}

/// A table of five whose buckets `1` to `5` were emptied at 0, 1, 2, 3 and 4 seconds.
fn full_table(text: &str, at_bound: AtBound) -> (Table, TableLimit) {
    let table = table(5);
    let limit = limit(&table, text, at_bound);
    for (i, key) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
        let burst = Cost::new(quota(text).burst());
        assert!(table.check_at(&limit, key.as_bytes(), burst, Time::from_secs(i as u64)).is_allowed());
    }
    (table, limit)
}

#[test]
fn deny_holds_the_newcomer_until_the_first_of_the_probed_is_full() {
    let (table, limit) = full_table("1/min", AtBound::Deny);
    assert_eq!(take(&table, &limit, "new", 10_000), "deny 50s");
    assert_eq!(take(&table, &limit, "new", 59_999), "deny 1ms");
    assert_eq!(table.stats(), TableStats { refused: 2, ..TableStats::default() });
    // A look is answered and changes nothing; what is above the burst never passes.
    let look = table.peek_at(&limit, "new", ms(10_000));
    assert_eq!((shown(&look), look.reset_after()), ("allow 0 left".into(), Time::from_secs(50).since(Time::ZERO)));
    assert_eq!(shown(&table.check_at(&limit, "new", Cost::new(2), ms(10_000))), "never");
    // Waiting exactly that long gets it a seat, and the next newcomer waits for the next bucket.
    assert_eq!(take(&table, &limit, "new", 60_000), "allow 0 left");
    assert_eq!(take(&table, &limit, "newer", 60_000), "deny 1s");
}

#[test]
fn under_deny_and_pool_an_exhausted_key_stays_denied_until_its_wait_is_over() {
    for at_bound in [AtBound::Deny, AtBound::Pool] {
        let (table, limit) = full_table("1/min", at_bound);
        for t in (5_000..60_000).step_by(500) {
            let _ = take(&table, &limit, &format!("new {t}"), t);
            for (i, key) in ["1", "2", "3", "4", "5"].into_iter().enumerate() {
                assert_eq!(
                    take(&table, &limit, key, t),
                    format!("deny {:?}", ms(60_000 + 1_000 * i as u64).since(ms(t)))
                );
            }
        }
        assert_eq!(take(&table, &limit, "1", 60_000), "allow 0 left");
    }
}

#[test]
fn pool_lets_newcomers_share_one_bucket_of_their_limit() {
    let (table, limit) = full_table("2/min", AtBound::Pool);
    assert_eq!(take(&table, &limit, "a", 5_000), "allow 1 left");
    assert_eq!(shown(&table.peek_at(&limit, "b", ms(5_000))), "allow 1 left", "a look sees the pool");
    assert_eq!(take(&table, &limit, "b", 5_000), "allow 0 left");
    assert_eq!(take(&table, &limit, "c", 5_000), "deny 30s");
    assert_eq!(take(&table, &limit, "a", 5_000), "deny 30s");
    assert_eq!(table.stats(), TableStats { pooled: 2, ..TableStats::default() });
    // Another limit has a pool of its own.
    let other = table.know(LimitId::of("test", "other"), &quota("2/min"), AtBound::Pool).unwrap();
    assert_eq!(take(&table, &other, "a", 5_000), "allow 1 left");
    // And one whose newcomers are denied has none.
    let deny = table.know(LimitId::of("test", "third"), &quota("2/min"), AtBound::Deny).unwrap();
    assert_eq!(take(&table, &deny, "a", 5_000), "deny 55s");
}

#[test]
fn a_newcomer_that_later_gets_a_bucket_starts_with_what_the_pool_lacks() {
    let (table, limit) = full_table("2/min", AtBound::Pool);
    assert_eq!(take(&table, &limit, "a", 59_000), "allow 1 left");
    assert_eq!(take(&table, &limit, "a", 59_000), "allow 0 left");
    // At 60 s the first bucket is full and its slot is free: the pool lacks 2 - 1/30, so nothing passes yet.
    assert_eq!(take(&table, &limit, "a", 60_000), "deny 29s");
    assert_eq!(take(&table, &limit, "b", 60_000), "deny 29s");
    // At 89 s each of them has a bucket, and takes the one token that has come back.
    assert_eq!(take(&table, &limit, "a", 89_000), "allow 0 left");
    assert_eq!(take(&table, &limit, "b", 89_000), "allow 0 left");
    assert_eq!(take(&table, &limit, "a", 89_000), "deny 30s");
    assert_eq!(table.stats().pooled, 2, "neither was charged to the pool again");
}

#[test]
fn charges_on_one_key_are_summed_in_the_pool_as_well() {
    let (table, limit) = full_table("3/min", AtBound::Pool);
    let one = Charge {
        limit: limit_id(),
        quota: *limit.quota().quota(),
        key: b"new",
        cost: Cost::ONE,
        mode: Mode::Enforce,
        handling: Handling::default().with_at_bound(AtBound::Pool),
    };
    let mut decisions = [Decision::unmade(&one.quota); 2];
    assert!(table.decide_at(&[one, one], &mut decisions, ms(5_000)).unwrap().allowed);
    assert_eq!(decisions.map(|d| shown(&d)), ["allow 1 left", "allow 1 left"]);
    // Two newcomers of one limit draw on the same pool.
    let other = Charge { key: b"newer", ..one };
    assert!(!table.decide_at(&[one, other], &mut decisions, ms(5_000)).unwrap().allowed);
    assert_eq!(decisions.map(|d| shown(&d)), ["deny 20s", "deny 20s"]);
    assert_eq!(take(&table, &limit, "new", 5_000), "allow 0 left");
}

#[test]
fn displace_takes_the_bucket_nearest_to_full_and_counts_it() {
    let (table, limit) = full_table("1/min", AtBound::Displace);
    assert_eq!(take(&table, &limit, "new", 10_000), "allow 0 left");
    assert_eq!(table.stats(), TableStats { displaced: 1, ..TableStats::default() });
    for key in ["2", "3", "4", "5", "new"] {
        assert!(take(&table, &limit, key, 10_000).starts_with("deny"), "{key} kept its bucket");
    }
    // The one that was nearest to full starts again, and displaces the next.
    assert_eq!(take(&table, &limit, "1", 10_000), "allow 0 left");
    assert_eq!(table.stats().displaced, 2);
    assert_eq!(shown(&table.peek_at(&limit, "2", ms(10_000))), "allow 1 left");
    assert_eq!(table.stats().displaced, 2, "a look displaces nobody");
    // What has refilled is not displaced but forgotten: at 63 s the third is full.
    assert_eq!(take(&table, &limit, "newer", 63_000), "allow 0 left");
    assert_eq!(table.stats().displaced, 2);
}

#[test]
fn two_newcomers_of_one_decision_never_get_the_same_slot() {
    for at_bound in [AtBound::Displace, AtBound::Deny, AtBound::Pool] {
        let (table, limit) = full_table("1/min", at_bound);
        let charge = |key| Charge {
            limit: limit_id(),
            quota: *limit.quota().quota(),
            key,
            cost: Cost::ONE,
            mode: Mode::Enforce,
            handling: Handling::default().with_at_bound(at_bound),
        };
        let mut decisions = [Decision::unmade(limit.quota().quota()); 2];
        // At 60 s one slot is free, and one newcomer too many.
        let verdict = table.decide_at(&[charge(b"a"), charge(b"b")], &mut decisions, ms(60_000)).unwrap();
        assert_eq!(verdict.allowed, at_bound != AtBound::Deny, "{at_bound:?}");
        let shown = decisions.map(|d| shown(&d));
        match at_bound {
            AtBound::Displace => assert_eq!(shown, ["allow 0 left", "allow 0 left"]),
            AtBound::Deny => assert_eq!(shown, ["allow 1 left", "deny 1s"]),
            AtBound::Pool => assert_eq!(shown, ["allow 0 left", "allow 0 left"]),
        }
    }
}

#[test]
fn a_key_that_owes_nothing_is_forgotten_before_anyone_is_denied_or_displaced() {
    for at_bound in [AtBound::Displace, AtBound::Deny, AtBound::Pool] {
        let table = table(40);
        let limit = limit(&table, "1/s", at_bound);
        for key in 0..4_000u64 {
            // Forty live keys at any time, in forty slots.
            assert!(table.check_at(&limit, &key, Cost::ONE, ms(25 * key)).is_allowed());
        }
        assert_eq!(table.stats(), TableStats::default(), "{at_bound:?}");
    }
}

/// Two newcomers were charged to the pool in one decision. Each owes what the pool owes when it gets a bucket.
#[test]
fn every_newcomer_that_was_pooled_owes_what_the_pool_owes() {
    let (table, limit) = full_table("2/min", AtBound::Pool);
    let charge = |key| Charge {
        limit: limit_id(),
        quota: *limit.quota().quota(),
        key,
        cost: Cost::ONE,
        mode: Mode::Enforce,
        handling: Handling::default().with_at_bound(AtBound::Pool),
    };
    let mut decisions = [Decision::unmade(limit.quota().quota()); 2];
    assert!(table.decide_at(&[charge(b"a"), charge(b"b")], &mut decisions, ms(59_000)).unwrap().allowed);
    assert_eq!(table.stats().pooled, 2);
    assert_eq!([take(&table, &limit, "b", 60_000), take(&table, &limit, "a", 60_000)], ["deny 29s", "deny 29s"]);
}
