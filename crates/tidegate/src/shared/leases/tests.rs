use std::num::NonZeroU32;

use tidegate_core::{Handling, Limit, Sharing, State, decide};

use super::*;
use crate::shared::seen::Asking;

fn leased<'a>(key: &'a [u8], limit: &str, most: u32) -> Charge<'a> {
    let quota = limit.parse::<Limit>().unwrap().quota().unwrap();
    let sharing = Sharing::Leased { most: NonZeroU32::new(most).unwrap() };
    let handling = Handling::default().with_sharing(sharing);
    Charge::new(LimitId::of("p", "l"), quota, key).with_handling(handling)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Takes the batch, from a full bucket.
fn fill(leases: &Leases, charge: &Charge<'_>, Batch(tokens): Batch, now: Time) {
    let (decision, _) = decide(&charge.quota, State::FULL, Cost::new(tokens), now);
    let answered = Asking { at: now, forgotten: 0 }.answered_at(now);
    assert_eq!(leases.filled(charge, tokens, &decision, &answered), 0);
}

fn spend(leases: &Leases, charges: &[Charge<'_>], now: Time) -> Option<Decision> {
    let mut decisions = vec![Decision::unmade(&charges[0].quota); charges.len()];
    let spent = leases.spend_at(charges, &mut decisions, now)?;
    assert_eq!((spent.verdict.allowed, spent.verdict.source), (true, Source::Lease));
    Some(decisions[0])
}

/// A lease of four, as a key has after it was asked about twice.
fn lease_of_four<'a>(charge: &Charge<'a>) -> Leases {
    let leases = Leases::new();
    assert_eq!(leases.refill_at(charge, at(1_000)), None, "one request is no demand");
    assert_eq!(leases.refill_at(charge, at(1_001)), Some(Batch(BATCH_FIRST)));
    assert_eq!(leases.refill_at(charge, at(1_001)), None, "one at a time");
    fill(&leases, charge, Batch(4), at(1_002));
    leases
}

#[test]
fn what_was_taken_is_spent_and_no_more() {
    let charge = leased(b"k", "100/s", 50);
    let leases = lease_of_four(&charge);
    assert_eq!(leases.tokens(), 4);
    let remaining: Vec<_> = (0..4).map(|_| spend(&leases, &[charge], at(1_002)).unwrap().remaining()).collect();
    assert_eq!(remaining, [99, 98, 97, 96], "as if each had been taken from the bucket");
    assert!(spend(&leases, &[charge], at(1_002)).is_none());
    assert_eq!(leases.tokens(), 0);
}

#[test]
fn several_charges_are_paid_all_or_none() {
    let (a, b) = (leased(b"a", "100/s", 50), leased(b"b", "100/s", 50));
    let leases = lease_of_four(&a);
    assert!(spend(&leases, &[a, b], at(1_002)).is_none());
    assert_eq!(leases.tokens(), 4, "b had nothing, so a keeps its own");
}

#[test]
fn the_batch_follows_the_demand_up_to_the_most() {
    let charge = leased(b"k", "1000/s", 20);
    let leases = lease_of_four(&charge);
    let mut batches = Vec::new();
    let mut next = |ms: u64| {
        while spend(&leases, &[charge], at(ms)).is_some() {}
        let batch = leases.refill_at(&charge, at(ms)).unwrap();
        fill(&leases, &charge, batch, at(ms));
        batches.push(batch.0);
    };
    [1_010, 1_020, 1_030, 1_040].into_iter().for_each(&mut next);
    [1_300, 2_350, 3_400, 4_450].into_iter().for_each(&mut next);
    assert_eq!(batches, [8, 16, 20, 20, 20, 10, 5, 4]);
}

#[test]
fn a_process_never_holds_more_than_the_most() {
    let charge = leased(b"k", "1000/s", 20);
    let leases = lease_of_four(&charge);
    for ms in 1_003..1_100 {
        if let Some(batch) = leases.refill_at(&charge, at(ms)) {
            fill(&leases, &charge, batch, at(ms));
        }
        assert!(leases.tokens() <= 20);
    }
    assert_eq!(leases.tokens(), 20);
}

#[test]
fn a_small_limit_is_not_leased_and_a_lease_leaves_three_quarters_to_others() {
    assert_eq!(most_of(&leased(b"k", "3/min", 100)), 0);
    assert_eq!(most_of(&leased(b"k", "7/min", 100)), 0);
    assert_eq!(most_of(&leased(b"k", "100/s", 1_000)), 25);
    assert_eq!(most_of(&leased(b"k", "100/s", 10)), 10);
    assert!(!are_leased(&[leased(b"k", "100/s", 10).with_cost(Cost::ZERO)]), "a look is exact");
    let leases = Leases::new();
    for ms in 0..10 {
        assert_eq!(leases.refill_at(&leased(b"k", "3/min", 100), at(ms)), None);
    }
}

#[test]
fn what_nobody_asks_for_is_given_back() {
    let charge = leased(b"k", "100/s", 50);
    let leases = lease_of_four(&charge);
    assert!(spend(&leases, &[charge], at(1_100)).is_some());
    assert_eq!(leases.unneeded_at(Some(at(1_349))), []);
    let given_back = leases.unneeded_at(Some(at(1_350)));
    assert_eq!(given_back.iter().map(|one| (&*one.key, one.tokens)).collect::<Vec<_>>(), [(&b"k"[..], 3)]);
    assert_eq!(leases.tokens(), 0);
    assert!(spend(&leases, &[charge], at(1_350)).is_none());
}

#[test]
fn a_batch_that_comes_after_its_key_was_forgotten_is_given_back() {
    let charge = leased(b"k", "100/s", 50);
    let leases = lease_of_four(&charge);
    leases.forget(charge.limit, charge.key);
    assert_eq!(leases.tokens(), 0);
    let (decision, _) = decide(&charge.quota, State::FULL, Cost::new(4), at(1_003));
    let answered = Asking { at: at(1_002), forgotten: 0 }.answered_at(at(1_003));
    assert_eq!(leases.filled(&charge, 4, &decision, &answered), 4);
}

#[test]
fn a_changed_quota_spends_nothing_of_the_old_one() {
    let charge = leased(b"k", "100/s", 50);
    let leases = lease_of_four(&charge);
    let changed = leased(b"k", "200/s", 50);
    assert!(spend(&leases, &[changed], at(1_003)).is_none());
    assert_eq!(leases.refill_at(&changed, at(1_003)), None);
    assert_eq!(leases.tokens(), 0);
}

#[test]
fn invented_keys_do_not_grow_the_memory() {
    let leases = Leases::new();
    let keys: Vec<_> = (0..2 * LEASES_MAX as u64).map(u64::to_be_bytes).collect();
    keys.iter().for_each(|key| assert_eq!(leases.refill_at(&leased(key, "100/s", 50), at(1_000)), None));
    let held: usize = leases.shards.iter().map(|shard| shard.leases.lock().unwrap().len()).sum();
    assert!(held <= LEASES_MAX, "{held}");
    leases.unneeded_at(Some(at(1_250)));
    let held: usize = leases.shards.iter().map(|shard| shard.leases.lock().unwrap().len()).sum();
    assert_eq!(held, 0);
}
