//! What the table does for each kind of call.
#![cfg(not(loom))]

mod common;

use common::{limit, limit_id, ms, quota, shown, table};
use tidegate_core::{
    AtBound, CHARGES_MAX, Charge, Cost, Decision, Handling, LimitId, Mode, Quota, Source, Time, Verdict,
};
use tidegate_memory::{BATCH_MAX, Table, TableOptions};

fn charge<'a>(limit: &str, quota: Quota, key: &'a str, cost: u64) -> Charge<'a> {
    Charge {
        limit: LimitId::of("test", limit),
        quota,
        key: key.as_bytes(),
        cost: Cost::new(cost),
        mode: Mode::Enforce,
        handling: Handling::default().with_at_bound(AtBound::Displace),
    }
}

/// The verdict, and what each decision shows.
fn decide(table: &Table, charges: &[Charge<'_>], now: Time) -> (Verdict, Vec<String>) {
    let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let verdict = table.decide_at(charges, &mut decisions, now).unwrap();
    (verdict, decisions.iter().map(shown).collect())
}

#[test]
fn each_key_has_its_bucket_and_it_refills() {
    let table = table(1_000);
    let limit = limit(&table, "2/s burst 2", AtBound::Displace);
    let take = |key: &str, t| shown(&table.check_at(&limit, key, Cost::ONE, ms(t)));
    assert_eq!([take("a", 0), take("a", 0), take("a", 0)], ["allow 1 left", "allow 0 left", "deny 500ms"]);
    assert_eq!(take("b", 0), "allow 1 left");
    assert_eq!([take("a", 499), take("a", 500), take("a", 500)], ["deny 1ms", "allow 0 left", "deny 500ms"]);
    assert_eq!(take("a", 10_000), "allow 1 left");
}

#[test]
fn one_key_under_two_limits_has_two_buckets() {
    let table = table(1_000);
    let (one, other) = (quota("1/s"), quota("1/min"));
    let one = table.know(LimitId::of("p", "one"), &one, AtBound::Displace).unwrap();
    let other = table.know(LimitId::of("p", "other"), &other, AtBound::Displace).unwrap();
    assert!(table.check_at(&one, "k", Cost::ONE, ms(0)).is_allowed());
    assert!(table.check_at(&other, "k", Cost::ONE, ms(0)).is_allowed());
    assert_eq!(shown(&table.check_at(&other, "k", Cost::ONE, ms(0))), "deny 60s");
    assert_eq!(shown(&table.check_at(&one, "k", Cost::ONE, ms(0))), "deny 1s");
}

#[test]
fn a_look_reports_and_changes_nothing() {
    let table = table(5);
    let limit = limit(&table, "2/s", AtBound::Displace);
    let look = |t| shown(&table.peek_at(&limit, "a", ms(t)));
    assert_eq!(look(0), "allow 2 left");
    assert_eq!(table.live_keys_at(ms(0)), 0, "a look makes no bucket");
    assert!(table.check_at(&limit, "a", Cost::new(2), ms(0)).is_allowed());
    assert_eq!(
        [look(0), look(499), look(500), look(1_000)],
        ["allow 0 left", "allow 0 left", "allow 1 left", "allow 2 left"]
    );
    assert_eq!(shown(&table.check_at(&limit, "a", Cost::ONE, ms(500))), "allow 0 left");
}

#[test]
fn reset_fills_and_grant_gives_back_at_most_to_full() {
    let table = table(1_000);
    let limit = limit(&table, "10/min", AtBound::Displace);
    let take = |cost| shown(&table.check_at(&limit, "a", Cost::new(cost), ms(0)));
    assert_eq!(take(10), "allow 0 left");
    table.grant_at(limit_id(), "a", 3, ms(0));
    assert_eq!(take(4), "deny 6s");
    assert_eq!(take(3), "allow 0 left");
    table.grant_at(limit_id(), "a", u64::MAX, ms(0));
    assert_eq!(take(0), "allow 10 left");
    assert_eq!(take(10), "allow 0 left");
    table.reset(limit_id(), "a");
    assert_eq!(take(10), "allow 0 left");
    // Neither makes a bucket for a key that has none.
    table.grant_at(limit_id(), "b", 3, ms(0));
    table.reset(limit_id(), "b");
    assert_eq!(table.live_keys_at(ms(0)), 1);
}

#[test]
fn a_changed_quota_keeps_what_the_key_owes() {
    let table = table(1_000);
    let before = limit(&table, "10/s", AtBound::Displace);
    for _ in 0..3 {
        assert!(table.check_at(&before, "a", Cost::ONE, ms(0)).is_allowed());
    }
    let lowered = limit(&table, "5/s", AtBound::Displace);
    let take = |limit, t| shown(&table.check_at(limit, "a", Cost::ONE, ms(t)));
    assert_eq!(
        [take(&lowered, 0), take(&lowered, 0), take(&lowered, 0)],
        ["allow 1 left", "allow 0 left", "deny 200ms"]
    );
    assert_eq!(take(&before, 0), "allow 4 left");
}

#[test]
fn what_a_key_owed_is_carried_over_as_it_stood_when_the_quota_changed() {
    let table = table(1_000);
    let before = limit(&table, "10/s", AtBound::Displace);
    for key in ["a", "b"] {
        assert!(table.check_at(&before, key, Cost::new(10), ms(0)).is_allowed());
    }
    let now_on = limit(&table, "10/h", AtBound::Displace);
    let since = now_on.in_force_since(ms(100));
    // One token had come back under the old rate; the next takes six minutes.
    assert_eq!(shown(&table.check_at(&since, "a", Cost::ONE, ms(900))), "allow 0 left");
    assert_eq!(shown(&table.check_at(&since, "a", Cost::ONE, ms(900))), "deny 359.2s");
    // Without that time it is carried over as it stands when the key is seen.
    assert_eq!(shown(&table.check_at(&now_on, "b", Cost::ONE, ms(900))), "allow 8 left");
}

#[test]
fn a_known_number_brings_its_limit_back() {
    let table = table(1_000);
    let limit = limit(&table, "3/s", AtBound::Deny);
    let number = limit.quota().number();
    let recalled = table.recall(limit_id(), number, AtBound::Deny).unwrap();
    assert_eq!(recalled.quota(), limit.quota());
    assert_eq!(recalled.quota().quota(), &quota("3/s"));
    assert!(table.recall(limit_id(), number + 1, AtBound::Deny).is_none());
    assert!(table.recall(limit_id(), 0, AtBound::Deny).is_none());
    assert!(table.recall(limit_id(), u32::MAX, AtBound::Deny).is_none());
}

#[test]
fn what_can_never_pass_and_what_is_blocked_make_no_bucket() {
    let table = table(1_000);
    let limit = limit(&table, "10/s", AtBound::Displace);
    assert_eq!(shown(&table.check_at(&limit, "a", Cost::new(11), ms(0))), "never");
    let blocked = table.know(limit_id(), &quota("0/min"), AtBound::Displace).unwrap();
    assert_eq!(shown(&table.check_at(&blocked, "a", Cost::ONE, ms(0))), "never");
    assert_eq!(shown(&table.peek_at(&blocked, "a", ms(0))), "allow 0 left");
    assert_eq!(table.live_keys_at(ms(0)), 0);
}

#[test]
fn a_batch_answers_like_one_call_after_the_other() {
    let (batched, single) = (table(200), table(200));
    let limits = [&batched, &single].map(|table| limit(table, "2/s", AtBound::Displace));
    for t in 0..50 {
        let keys: Vec<u64> = (0..BATCH_MAX as u64).map(|i| i * i * t % 23).collect();
        let mut decisions = [Decision::unmade(&quota("2/s")); BATCH_MAX];
        batched.check_each_at(&limits[0], &keys, Cost::ONE, ms(100 * t), &mut decisions);
        let one_by_one: Vec<_> = keys.iter().map(|k| single.check_at(&limits[1], k, Cost::ONE, ms(100 * t))).collect();
        assert_eq!(decisions.as_slice(), one_by_one);
    }
    batched.check_each_at::<u64>(&limits[0], &[], Cost::ONE, ms(0), &mut []);
}

#[test]
fn several_charges_pass_together_or_not_at_all_in_any_order() {
    let (a, b) = (quota("10/min"), quota("30/h"));
    let forth = [charge("a", a, "k", 1), charge("b", b, "k", 1)];
    let back = [forth[1], forth[0]];
    for charges in [forth, back] {
        let table = table(1_000);
        let of_a = charges.iter().position(|c| c.quota == a).unwrap();
        for _ in 0..10 {
            assert!(decide(&table, &charges, ms(0)).0.allowed);
        }
        for _ in 0..21 {
            let (verdict, shown) = decide(&table, &charges, ms(0));
            assert_eq!(verdict, Verdict { allowed: false, binding: Some(of_a), source: Source::Store });
            assert_eq!(shown[of_a], "deny 6s");
            assert_eq!(shown[1 - of_a], "allow 20 left");
        }
    }
}

#[test]
fn charges_on_one_bucket_are_summed() {
    for at_bound in [AtBound::Displace, AtBound::Deny, AtBound::Pool] {
        let table = table(1_000);
        let one =
            Charge { handling: Handling::default().with_at_bound(at_bound), ..charge("a", quota("10/min"), "k", 4) };
        let (verdict, shown) = decide(&table, &[one, one], ms(0));
        assert!(verdict.allowed);
        assert_eq!(shown, ["allow 2 left", "allow 2 left"]);
        let (verdict, shown) = decide(&table, &[one, one], ms(0));
        assert!(!verdict.allowed, "8 of 2");
        assert_eq!(shown, ["deny 36s", "deny 36s"]);
    }
}

#[test]
fn a_shadow_is_charged_only_if_the_others_pass_and_denies_nobody() {
    let table = table(1_000);
    let enforced = charge("a", quota("2/min"), "k", 1);
    let shadow = Charge { mode: Mode::Shadow, ..charge("b", quota("3/min"), "k", 2) };
    let looks = |table: &Table| decide(table, &[enforced, shadow].map(|c| Charge { cost: Cost::ZERO, ..c }), ms(0)).1;
    assert!(decide(&table, &[shadow, enforced], ms(0)).0.allowed);
    assert_eq!(looks(&table), ["allow 1 left", "allow 1 left"]);
    // The shadow would deny: it is not charged, the other one is.
    let (verdict, shown) = decide(&table, &[shadow, enforced], ms(0));
    assert_eq!(verdict, Verdict { allowed: true, binding: Some(1), source: Source::Store });
    assert_eq!(shown, ["deny 20s", "allow 0 left"]);
    // The enforced one denies: neither is charged.
    assert!(!decide(&table, &[shadow, enforced], ms(20_000)).0.allowed);
    assert_eq!(looks(&table), ["allow 0 left", "allow 1 left"]);
}

#[test]
fn no_charge_is_allowed_and_one_is_a_check() {
    let table = table(1_000);
    assert_eq!(decide(&table, &[], ms(0)), (Verdict { allowed: true, binding: None, source: Source::Store }, vec![]));
    let one = charge("a", quota("1/s"), "k", 1);
    assert_eq!(decide(&table, &[one], ms(0)).1, ["allow 0 left"]);
    let limit = table.know(one.limit, &one.quota, AtBound::Displace).unwrap();
    assert_eq!(shown(&table.check_at(&limit, "k".as_bytes(), Cost::ONE, ms(0))), "deny 1s");
}

#[test]
fn as_many_charges_as_there_may_be_find_their_seats_in_a_table_that_they_fill() {
    // One home, eight groups: three in four of these sit elsewhere, and two rounds are needed.
    let table = table(40);
    let names: Vec<String> = (0..CHARGES_MAX).map(|i| format!("k{i}")).collect();
    let charges: Vec<_> = names.iter().map(|name| charge("a", quota("2/min"), name, 1)).collect();
    for left in ["allow 1 left", "allow 0 left"] {
        let (verdict, shown) = decide(&table, &charges, ms(0));
        assert!(verdict.allowed);
        assert!(shown.iter().all(|shown| shown == left));
    }
    let (verdict, _) = decide(&table, &charges, ms(29_999));
    assert!(!verdict.allowed);
    assert_eq!(table.live_keys_at(ms(0)), CHARGES_MAX);
    assert_eq!(table.stats(), Default::default());
}

#[test]
fn keys_that_their_home_has_no_room_for_are_limited_all_the_same() {
    let table = table(40);
    let limit = limit(&table, "1/s", AtBound::Deny);
    let round = |t: u64| (0..40u32).filter(|key| table.check_at(&limit, key, Cost::ONE, ms(t)).is_allowed()).count();
    assert_eq!([round(0), round(0), round(999), round(1_000), round(1_999), round(5_000)], [40, 0, 0, 40, 0, 40]);
    assert_eq!(table.stats().refused, 0);
    // Each can be looked at, given back to and reset, wherever it sits.
    for key in 0..40u32 {
        assert_eq!(shown(&table.peek_at(&limit, &key, ms(5_000))), "allow 0 left");
        table.grant_at(limit_id(), &key, 1, ms(5_000));
        assert_eq!(shown(&table.check_at(&limit, &key, Cost::ONE, ms(5_000))), "allow 0 left");
        table.reset(limit_id(), &key);
        assert_eq!(shown(&table.check_at(&limit, &key, Cost::ONE, ms(5_000))), "allow 0 left");
    }
}

/// The sixth key of a home sits behind it. It refills, another newcomer finds nobody away and lowers the home's flag,
/// in the same decision that charges the sixth again: whoever looks for it next must still find it.
#[test]
fn a_bucket_charged_again_while_the_flag_of_its_home_is_lowered_is_found() {
    let table = table(40);
    let quick = quota("1/s");
    let slow = limit(&table, "1/h", AtBound::Displace);
    for key in ["1", "2", "3"] {
        assert!(table.check_at(&slow, key.as_bytes(), Cost::ONE, ms(0)).is_allowed());
    }
    let quick_limit = limit(&table, "1/s", AtBound::Displace);
    for key in ["4", "5", "6"] {
        assert!(table.check_at(&quick_limit, key.as_bytes(), Cost::ONE, ms(0)).is_allowed());
    }
    let both = ["6", "7"].map(|key| Charge { limit: limit_id(), ..charge("", quick, key, 1) });
    assert!(decide(&table, &both, ms(1_000)).0.allowed);
    for key in ["6", "7"] {
        assert_eq!(shown(&table.check_at(&quick_limit, key.as_bytes(), Cost::ONE, ms(1_000))), "deny 1s", "key {key}");
    }
}

/// A key sits behind its home, refills, and leaves that seat behind full; it gets one in its home, which is forgotten
/// at 3 s. Whoever read the clock before that must not take the old seat for the truth.
#[test]
fn a_seat_left_behind_gives_no_token_early() {
    let table = table(40);
    let slow = limit(&table, "1/h", AtBound::Displace);
    let quick = limit(&table, "1/s", AtBound::Displace);
    let take = |limit, key: &str, t| {
        assert!(table.check_at(limit, key, Cost::ONE, ms(t)).is_allowed(), "{key} at {t}");
    };
    ["1", "2", "3", "4"].iter().for_each(|key| take(&slow, key, 0));
    ["5", "other", "away"].iter().for_each(|key| take(&quick, key, 0));
    // Nobody owes anything behind the home any more: its flag is lowered, and `away` is seated in it.
    take(&quick, "new", 1_000);
    take(&quick, "away", 2_000);
    // The flag is up again, and the seat in the home is given away.
    take(&quick, "newer", 2_000);
    take(&quick, "newest", 3_000);
    let late = table.check_at(&quick, "away", Cost::ONE, ms(2_999));
    assert!(!late.is_allowed() || late.decided_at() >= ms(3_000), "{late:?}");
}

/// One key behind the home still owes something, so the flag stays up while a newcomer takes another's seat there.
#[test]
fn a_seat_behind_the_home_that_is_taken_gives_no_token_early() {
    let table = table(40);
    let slow = limit(&table, "1/h", AtBound::Displace);
    let quick = limit(&table, "1/s", AtBound::Displace);
    for key in ["1", "2", "3", "4", "5", "behind"] {
        assert!(table.check_at(&slow, key, Cost::ONE, ms(0)).is_allowed());
    }
    assert!(table.check_at(&quick, "away", Cost::ONE, ms(0)).is_allowed());
    assert!(table.check_at(&quick, "new", Cost::ONE, ms(1_000)).is_allowed());
    let late = table.check_at(&quick, "away", Cost::ONE, ms(500));
    assert!(late.is_allowed() && late.decided_at() == ms(1_000), "{late:?}");
    assert!(!table.check_at(&slow, "behind", Cost::ONE, ms(1_000)).is_allowed(), "it is still found");
}

/// A decision that charges nothing lowers the flag of a home in which a slot is free.
#[test]
fn a_flag_that_is_lowered_gives_no_token_early() {
    let table = table(40);
    let slow = limit(&table, "1/h", AtBound::Displace);
    for key in ["1", "2", "3", "4", "5"] {
        assert!(table.check_at(&slow, key.as_bytes(), Cost::ONE, ms(0)).is_allowed());
    }
    let quick = limit(&table, "1/s", AtBound::Displace);
    assert!(table.check_at(&quick, "away".as_bytes(), Cost::ONE, ms(0)).is_allowed());
    table.reset(limit_id(), "5".as_bytes());
    let of_this_limit = |key| Charge { limit: limit_id(), ..charge("", quota("1/s"), key, 1) };
    let blocked = charge("blocked", quota("0/min"), "new", 1);
    assert!(!decide(&table, &[of_this_limit("new"), blocked], ms(1_000)).0.allowed);
    let late = table.check_at(&quick, "away".as_bytes(), Cost::ONE, ms(500));
    assert!(!late.is_allowed() || late.decided_at() >= ms(1_000), "{late:?}");
}

/// Once nobody owes anything behind a home whose slots are free, a key sits in its home again, and is found there.
#[test]
fn a_key_behind_its_home_is_found_when_the_home_has_room_again() {
    let table = table(40);
    let slow = limit(&table, "1/h", AtBound::Displace);
    for key in ["1", "2", "3", "4", "5", "behind"] {
        assert!(table.check_at(&slow, key, Cost::ONE, ms(0)).is_allowed());
    }
    for key in ["1", "2", "3"] {
        table.reset(limit_id(), key);
    }
    assert_eq!(shown(&table.check_at(&slow, "behind", Cost::ONE, ms(0))), "deny 3600s");
}

#[test]
fn a_table_is_as_large_as_it_says() {
    for (keys, capacity) in [(0, 5), (1, 5), (5, 5), (6, 10), (1_000, 1_000), (1_048_576, 1_048_580)] {
        let table = Table::new(TableOptions::with_keys(keys));
        assert_eq!(table.capacity(), capacity);
        // Five slots in 128 bytes, and one group more for the alignment.
        assert_eq!(table.bytes(), capacity / 5 * 128 + 128);
    }
    let shown = format!("{:?}", table(5));
    assert!(shown.contains("capacity: 5") && shown.contains("displaced: 0"), "{shown}");
}

#[test]
fn keys_that_owe_nothing_any_more_are_not_live() {
    let table = table(1_000);
    let limit = limit(&table, "1/s", AtBound::Displace);
    for key in 0..100u32 {
        assert!(table.check_at(&limit, &key, Cost::ONE, ms(10 * u64::from(key))).is_allowed());
    }
    assert_eq!([999, 1_000, 1_005, 1_990, 1_991].map(|t| table.live_keys_at(ms(t))), [100, 99, 99, 0, 0]);
}

#[test]
fn br_071_a_guard_denies_and_takes_nothing_alone_and_beside_others() {
    let table = table(1_000);
    let hold = |mode| charge("hold", quota("1/10min"), "k", 1).with_mode(mode);
    let both = [charge("limit", quota("5/h"), "k", 1), hold(Mode::Guard)];
    let allowed = |charges: &[Charge<'_>], t| decide(&table, charges, ms(t)).0.allowed;
    assert!(allowed(&[hold(Mode::Guard)], 0) && allowed(&[hold(Mode::Guard)], 0));
    assert_eq!(table.live_keys_at(ms(0)), 0, "it makes no bucket");
    assert!(allowed(&both, 0) && allowed(&[hold(Mode::Enforce)], 0));
    let held = decide(&table, &both, ms(60_000));
    assert_eq!((held.0.allowed, held.0.binding, held.1[1].as_str()), (false, Some(1), "deny 540s"));
    assert!(!allowed(&[hold(Mode::Guard)], 599_999) && !allowed(&both, 599_999));
    assert_eq!(decide(&table, &both, ms(600_000)).1, ["allow 3 left", "allow 1 left"]);
}
