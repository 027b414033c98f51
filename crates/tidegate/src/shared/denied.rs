//! Denials of the store, remembered for a moment: a flood does not reach it.
//!
//! What is kept is not the answer but the bucket that it was decided on, so that any other cost can be answered too.
//! It is kept for as long as the key would have to wait, and at most for [`REMEMBERED_MAX`]: somebody elsewhere may
//! have reset the key. A changed quota is another one, and what is reset, granted or settled here is forgotten here.
//!
//! The memory is fixed: [`DENIALS_MAX`] denials, in sets of a few. A new one takes the place of the one in its set
//! that ends first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{Algorithm, Charge, Cost, Decision, LimitId, Mode, Quota, Source, Time, Verdict, total_cost};
use tidegate_memory::Fingerprints;

use super::elsewhere;
use super::seen::{Answered, Asking, Seen};

/// The longest that a denial is remembered.
const REMEMBERED_MAX: Duration = Duration::from_secs(1);
/// Denials that can be remembered at once.
const DENIALS_MAX: usize = 16_384;
/// Denials in a set.
const WAYS: usize = 4;

pub(super) struct Denials {
    sets: Box<[Mutex<[Option<Denial>; WAYS]>]>,
    fingerprints: Fingerprints,
    /// How often something was forgotten: an answer that was on its way meanwhile is not remembered.
    forgotten: AtomicU64,
}

#[derive(Clone, Copy)]
struct Denial {
    fingerprint: u64,
    quota: Quota,
    seen: Seen,
    until: Time,
}

impl Denials {
    pub(super) fn new() -> Self {
        let sets = (0..DENIALS_MAX / WAYS).map(|_| Mutex::new([None; WAYS])).collect();
        Self { sets, fingerprints: Fingerprints::random(), forgotten: AtomicU64::new(0) }
    }

    /// To be called before the store is asked.
    pub(super) fn asking_at(&self, now: Time) -> Asking {
        Asking { at: now, forgotten: self.forgotten.load(Ordering::Acquire) }
    }

    /// Denies what the store would surely still deny; `None` if it must be asked.
    pub(super) fn verdict_at(&self, charges: &[Charge<'_>], decisions: &mut [Decision], now: Time) -> Option<Verdict> {
        let mut is_denied = false;
        for (i, charge) in charges.iter().enumerate() {
            let denial = match charge.mode {
                Mode::Enforce | Mode::Guard => self.denial_at(charge, total_cost(charges, i), now),
                Mode::Shadow => None,
            };
            is_denied |= denial.is_some();
            decisions[i] = denial.unwrap_or_else(|| Decision::unmade(&charge.quota));
        }
        if !is_denied {
            return None;
        }
        Some(elsewhere(charges, decisions, Source::DeniedCache))
    }

    fn denial_at(&self, charge: &Charge<'_>, cost: Cost, now: Time) -> Option<Decision> {
        if cost == Cost::ZERO {
            return None;
        }
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let denial = *self.set(fingerprint).iter().flatten().find(|denial| denial.fingerprint == fingerprint)?;
        if now >= denial.until || denial.quota != charge.quota {
            return None;
        }
        denial.seen.denial_at(charge, cost, now)
    }

    pub(super) fn remember(&self, charge: &Charge<'_>, decision: &Decision, answered: &Answered) {
        if charge.quota.algorithm() == Algorithm::SlidingLog {
            // Two numbers do not tell when enough of a log has left: the store is asked.
            return;
        }
        let wait = decision.retry_after().unwrap_or_default().min(REMEMBERED_MAX);
        let fingerprint = self.fingerprint(charge.limit, charge.key);
        let seen = Seen::new(decision, answered);
        let until = answered.came.saturating_add(wait);
        let mut set = self.set(fingerprint);
        if self.forgotten.load(Ordering::Acquire) != answered.forgotten {
            return;
        }
        let own = set.iter().position(|one| one.is_some_and(|one| one.fingerprint == fingerprint));
        let first_to_end = || (0..WAYS).min_by_key(|i| set[*i].map(|one| one.until));
        if let Some(place) = own.or_else(first_to_end) {
            set[place] = Some(Denial { fingerprint, quota: charge.quota, seen, until });
        }
    }

    /// Forgets the denial of this key, and of what is being asked at this moment.
    pub(super) fn forget(&self, limit: LimitId, key: &[u8]) {
        let fingerprint = self.fingerprint(limit, key);
        let mut set = self.set(fingerprint);
        // Counted under the lock, so that an answer is either removed here or not remembered any more.
        self.forgotten.fetch_add(1, Ordering::Release);
        set.iter_mut().filter(|one| one.is_some_and(|one| one.fingerprint == fingerprint)).for_each(|one| *one = None);
    }

    fn fingerprint(&self, limit: LimitId, key: &[u8]) -> u64 {
        self.fingerprints.of(limit, key).as_u64()
    }

    fn set(&self, fingerprint: u64) -> MutexGuard<'_, [Option<Denial>; WAYS]> {
        // The remainder fits. Whoever panicked while holding the lock has left a denial or none.
        self.sets[(fingerprint % self.sets.len() as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Limit, State, decide};

    use super::*;

    fn quota(text: &str) -> Quota {
        text.parse::<Limit>().unwrap().quota().unwrap()
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A denial that the store made at its time 1,000,000 ms, asked for at local 100 ms and answered at 104 ms.
    fn denials_after_one(charge: &Charge<'_>, state: State) -> Denials {
        let denials = Denials::new();
        let (decision, _) = decide(&charge.quota, state, charge.cost, at(1_000_000));
        denials.remember(charge, &decision, &denials.asking_at(at(100)).answered_at(at(104)));
        denials
    }

    fn verdict(denials: &Denials, charges: &[Charge<'_>], now: Time) -> Option<(Verdict, Vec<Decision>)> {
        let mut decisions = vec![Decision::unmade(&charges[0].quota); charges.len()];
        denials.verdict_at(charges, &mut decisions, now).map(|verdict| (verdict, decisions))
    }

    #[test]
    fn a_denial_stands_until_the_token_may_be_there_and_its_wait_is_long_enough() {
        let charge = Charge::new(LimitId::of("p", "l"), quota("10/s burst 1"), b"k");
        let denials = denials_after_one(&charge, State::from_parts(1, at(1_000_000)));
        let (denied, decisions) = verdict(&denials, &[charge], at(150)).unwrap();
        assert_eq!((denied.allowed, denied.source), (false, Source::DeniedCache));
        // 46 ms are over since it came, and at most 50.
        assert_eq!(decisions[0].retry_after(), Some(Duration::from_millis(54)));
        assert!(verdict(&denials, &[charge], at(199)).is_some());
        // Asked 100 ms ago, so the store may have a token by now.
        assert!(verdict(&denials, &[charge], at(200)).is_none());
    }

    #[test]
    fn br_064_another_cost_is_answered_from_the_same_bucket_and_after_a_second_the_store_is_asked() {
        let charge = Charge::new(LimitId::of("p", "l"), quota("10/h burst 10"), b"k").with_cost(Cost::new(5));
        // Three are left.
        let denials = denials_after_one(&charge, State::from_parts(7, at(1_000_000)));
        assert!(verdict(&denials, &[charge.with_cost(Cost::new(4))], at(500)).is_some());
        assert!(verdict(&denials, &[charge.with_cost(Cost::new(3))], at(500)).is_none(), "the store may allow it");
        assert!(verdict(&denials, &[charge.with_cost(Cost::ZERO)], at(500)).is_none(), "a look is not denied");
        assert!(verdict(&denials, &[charge], at(1_103)).is_some());
        assert!(verdict(&denials, &[charge], at(1_104)).is_none(), "a second is over");
    }

    #[test]
    fn other_keys_limits_and_quotas_are_not_denied() {
        let charge = Charge::new(LimitId::of("p", "l"), quota("1/h"), b"k");
        let denials = denials_after_one(&charge, State::from_parts(1, at(1_000_000)));
        assert!(verdict(&denials, &[charge], at(105)).is_some());
        assert!(verdict(&denials, &[Charge { key: b"other", ..charge }], at(105)).is_none());
        assert!(verdict(&denials, &[Charge { limit: LimitId::of("p", "m"), ..charge }], at(105)).is_none());
        assert!(verdict(&denials, &[Charge { quota: quota("2/h"), ..charge }], at(105)).is_none(), "a changed limit");
        assert!(verdict(&denials, &[charge.with_mode(Mode::Shadow)], at(105)).is_none(), "a shadow denies nothing");
    }

    #[test]
    fn what_is_forgotten_is_not_remembered_by_an_answer_that_was_on_its_way() {
        let charge = Charge::new(LimitId::of("p", "l"), quota("1/h"), b"k");
        let denials = denials_after_one(&charge, State::from_parts(1, at(1_000_000)));
        let asking = denials.asking_at(at(110));
        denials.forget(charge.limit, charge.key);
        assert!(verdict(&denials, &[charge], at(112)).is_none());
        let (decision, _) = decide(&charge.quota, State::from_parts(1, at(1_000_000)), Cost::ONE, at(1_000_010));
        denials.remember(&charge, &decision, &asking.answered_at(at(114)));
        assert!(verdict(&denials, &[charge], at(115)).is_none());
    }

    #[test]
    fn of_several_limits_one_denial_is_enough_and_names_itself() {
        let denied = Charge::new(LimitId::of("p", "hour"), quota("1/h"), b"k");
        let denials = denials_after_one(&denied, State::from_parts(1, at(1_000_000)));
        let other = Charge::new(LimitId::of("p", "second"), quota("100/s"), b"k");
        let (verdict, decisions) = verdict(&denials, &[other, denied], at(105)).unwrap();
        assert_eq!((verdict.allowed, verdict.binding), (false, Some(1)));
        assert!(decisions[0].is_allowed() && !decisions[1].is_allowed());
    }

    #[test]
    fn costs_on_one_bucket_are_summed() {
        let charge = Charge::new(LimitId::of("p", "l"), quota("10/h"), b"k").with_cost(Cost::new(5));
        let denials = denials_after_one(&charge, State::from_parts(6, at(1_000_000)));
        let two = charge.with_cost(Cost::new(2));
        assert!(verdict(&denials, &[two, two], at(105)).is_none(), "four are left");
        let three = charge.with_cost(Cost::new(3));
        assert!(verdict(&denials, &[three, two], at(105)).is_some());
    }

    #[test]
    fn the_memory_is_bounded_and_the_denial_that_ends_first_makes_room() {
        let denials = Denials::new();
        let quota = quota("1/h");
        let (decision, _) = decide(&quota, State::from_parts(1, at(1_000)), Cost::ONE, at(1_000));
        let keys: Vec<_> = (0..3 * DENIALS_MAX as u64).map(u64::to_be_bytes).collect();
        for (i, key) in keys.iter().enumerate() {
            let came = Time::from_nanos(i as u64);
            let answered = denials.asking_at(came).answered_at(came);
            denials.remember(&Charge::new(LimitId::of("p", "l"), quota, key), &decision, &answered);
        }
        let held =
            |key: &&[u8; 8]| verdict(&denials, &[Charge::new(LimitId::of("p", "l"), quota, &key[..])], at(1)).is_some();
        let newest = &keys[keys.len() - 100..];
        assert_eq!(newest.iter().filter(held).count(), 100);
        assert!(keys.iter().filter(held).count() <= DENIALS_MAX);
    }
}
