//! What limits do while the store is away: each what it declared.
//!
//! If one of the enforced limits denies, the request is denied, and none of the others is charged. Otherwise those that
//! go on alone are charged in this process, to the share that they declared; those that allow say yes to everything.

use std::time::Duration;

use tidegate_core::{
    CHARGES_MAX, Charge, Cost, Decision, FailureMode, LimitId, ReservationId, Source, Time, Verdict, settlements,
};
use tidegate_memory::{RESERVATIONS_DEFAULT, Reservations, Table, TableOptions, TooManyQuotas};

use super::elsewhere;

/// Who is denied because the store is away may come back after this long: by then it was probed once more.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Fallback {
    table: Table,
    reservations: Reservations,
}

impl Fallback {
    pub(super) fn new(options: TableOptions) -> Self {
        Self { table: Table::new(options), reservations: Reservations::with_room_for(RESERVATIONS_DEFAULT) }
    }

    pub(super) fn decide_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        now: Time,
    ) -> Result<Verdict, TooManyQuotas> {
        for (decision, charge) in decisions.iter_mut().zip(charges) {
            *decision = match charge.handling.on_failure {
                FailureMode::Deny if charge.cost > Cost::ZERO => {
                    Decision::without_store(&charge.quota, charge.cost, RETRY_AFTER)
                }
                FailureMode::Allow | FailureMode::Deny | FailureMode::Local(_) => Decision::unmade(&charge.quota),
            };
        }
        let is_denied =
            |(charge, decision): (&Charge<'_>, &Decision)| charge.mode.is_enforced() && !decision.is_allowed();
        if !charges.iter().zip(&*decisions).any(is_denied) {
            self.decide_alone(charges, decisions, now)?;
        }
        Ok(elsewhere(charges, decisions, Source::Fallback))
    }

    /// The same, to be settled here. Beyond what there is room for, what was charged stays spent.
    pub(super) fn reserve_at(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
        now: Time,
    ) -> Result<Verdict, TooManyQuotas> {
        let is_open = self.reservations.open_at(id, open_for, now).is_ok();
        let verdict = self.decide_at(charges, decisions, now);
        if is_open && !verdict.as_ref().is_ok_and(|verdict| verdict.allowed) {
            self.reservations.close_at(id, now);
        }
        verdict
    }

    /// Settles what was reserved here; `false` if no reservation of this id is open.
    pub(super) fn settle_at(
        &self,
        id: ReservationId,
        charges: &[Charge<'_>],
        actual: &[Cost],
        now: Time,
    ) -> Result<bool, TooManyQuotas> {
        let Some(reserved_at) = self.reservations.close_at(id, now) else { return Ok(false) };
        for (charge, actual) in settlements(charges, actual) {
            if let FailureMode::Local(fraction) = charge.handling.on_failure {
                let alone = Charge { quota: fraction.of(&charge.quota), ..charge };
                self.table.settle_at(&alone, reserved_at, actual, now)?;
            }
        }
        Ok(true)
    }

    /// Decides those that go on alone, all or nothing.
    fn decide_alone(&self, charges: &[Charge<'_>], decisions: &mut [Decision], now: Time) -> Result<(), TooManyQuotas> {
        let goes_alone = |charge: &Charge<'_>| matches!(charge.handling.on_failure, FailureMode::Local(_));
        let Some(first) = charges.iter().find(|charge| goes_alone(charge)) else { return Ok(()) };
        if let ([charge], FailureMode::Local(fraction)) = (charges, first.handling.on_failure) {
            // Nearly every request makes one charge.
            let alone = Charge { quota: fraction.of(&charge.quota), ..*charge };
            return self.table.decide_at(&[alone], decisions, now).map(|_| ());
        }
        let (mut alone, mut places, mut count) = ([*first; CHARGES_MAX], [0; CHARGES_MAX], 0);
        for (place, charge) in charges.iter().enumerate() {
            if let FailureMode::Local(fraction) = charge.handling.on_failure {
                alone[count] = Charge { quota: fraction.of(&charge.quota), ..*charge };
                places[count] = place;
                count += 1;
            }
        }
        let mut decided = [Decision::unmade(&first.quota); CHARGES_MAX];
        let _ = self.table.decide_at(&alone[..count], &mut decided[..count], now)?;
        places[..count].iter().zip(decided).for_each(|(place, decision)| decisions[*place] = decision);
        Ok(())
    }

    pub(super) fn reset(&self, limit: LimitId, key: &[u8]) {
        self.table.reset(limit, key);
    }

    pub(super) fn grant_at(&self, limit: LimitId, key: &[u8], tokens: u64, now: Time) {
        self.table.grant_at(limit, key, tokens, now);
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Handling, HeldBy, Limit, Mode, Quota};

    use super::*;

    fn quota(text: &str) -> Quota {
        text.parse::<Limit>().unwrap().quota().unwrap()
    }

    fn charge(limit: &'static str, text: &str, mode: &str) -> Charge<'static> {
        let handling = Handling::default().with_on_failure(mode.parse().unwrap());
        Charge::new(LimitId::of("p", limit), quota(text), b"k").with_handling(handling)
    }

    fn decide(fallback: &Fallback, charges: &[Charge<'_>]) -> (Verdict, Vec<Decision>) {
        let mut decisions = vec![Decision::unmade(&charges[0].quota); charges.len()];
        let verdict = fallback.decide_at(charges, &mut decisions, Time::from_secs(9)).unwrap();
        assert_eq!(verdict.source, Source::Fallback);
        (verdict, decisions)
    }

    fn admitted(fallback: &Fallback, charges: &[Charge<'_>], tries: u32) -> usize {
        (0..tries).filter(|_| decide(fallback, charges).0.allowed).count()
    }

    #[test]
    fn br_097_each_mode_does_what_it_says() {
        let fallback = Fallback::new(TableOptions::with_keys(100));
        assert_eq!(admitted(&fallback, &[charge("a", "3/min", "allow")], 100), 100);
        assert_eq!(admitted(&fallback, &[charge("b", "3/min", "deny")], 100), 0);
        assert_eq!(admitted(&fallback, &[charge("c", "3/min", "local")], 100), 3);
        assert_eq!(admitted(&fallback, &[charge("d", "8/min", "local:0.25")], 100), 2);
        assert_eq!(admitted(&fallback, &[charge("e", "2/min", "local:0.001")], 100), 1, "a burst is never below one");
        let unset = Charge::new(LimitId::of("p", "f"), quota("3/min"), b"k");
        assert_eq!(admitted(&fallback, &[unset], 100), 3, "unset is local");
    }

    #[test]
    fn who_is_denied_is_told_that_the_store_is_down_and_when_to_come_back() {
        let fallback = Fallback::new(TableOptions::with_keys(100));
        let (verdict, decisions) = decide(&fallback, &[charge("a", "3/min", "deny")]);
        assert_eq!((verdict.allowed, verdict.binding), (false, Some(0)));
        assert_eq!(decisions[0].held_by(), Some(HeldBy::StoreDown));
        assert_eq!(decisions[0].retry_after(), Some(RETRY_AFTER));
    }

    #[test]
    fn one_limit_that_denies_denies_the_request_and_the_others_are_not_charged() {
        let fallback = Fallback::new(TableOptions::with_keys(100));
        let (local, deny) = (charge("a", "3/min", "local"), charge("b", "3/min", "deny"));
        assert_eq!(admitted(&fallback, &[local, deny], 5), 0);
        assert_eq!(admitted(&fallback, &[local], 5), 3);
    }

    #[test]
    fn a_limit_that_allows_does_not_hide_one_that_goes_on_alone() {
        let fallback = Fallback::new(TableOptions::with_keys(100));
        let (local, allow) = (charge("a", "3/min", "local"), charge("b", "3/min", "allow"));
        assert_eq!(admitted(&fallback, &[allow, local], 100), 3);
        let (verdict, _) = decide(&fallback, &[allow, local]);
        assert_eq!(verdict.binding, Some(1));
    }

    #[test]
    fn a_shadow_that_would_deny_denies_nothing_and_a_look_is_always_answered() {
        let fallback = Fallback::new(TableOptions::with_keys(100));
        let shadow = charge("a", "3/min", "deny").with_mode(Mode::Shadow);
        assert_eq!(admitted(&fallback, &[shadow, charge("b", "2/min", "local")], 10), 2);
        assert_eq!(admitted(&fallback, &[charge("c", "3/min", "deny").with_cost(Cost::ZERO)], 10), 10);
    }
}
