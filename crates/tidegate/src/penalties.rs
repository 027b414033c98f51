//! Keys that are held back: how a hold shows, and how it begins.
//!
//! A hold is a bucket that requests only ask about (`tidegate_policy`, `penalty_buckets`). What is found there shows in
//! the decisions on the limits of the policy, as if they themselves denied for as long; a longer wait of their own
//! stays, so that the wait that is told is true.

use std::slice;
use std::time::Duration;

use tidegate_core::{Charge, Cost, Decision, HeldBy, Store, Time};
use tidegate_policy::{Offence, OffenceCharges, Policies, Policy};

use crate::{Gate, Tally};

/// Why the limits of a policy deny, whatever their buckets hold, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    by: HeldBy,
    wait: Duration,
    at: Time,
}

impl Held {
    /// What was found when a penalty's bucket was asked; `None` if it holds nobody back.
    fn found(asked: &Charge<'_>, answer: &Decision) -> Option<Self> {
        let wait = match asked.cost {
            // A look, of a penalty in shadow.
            Cost::ZERO => (answer.remaining() == 0).then(|| answer.next_token_after()),
            _ => answer.retry_after(),
        };
        Some(Self { by: answer.held_by().unwrap_or(HeldBy::Penalty), wait: wait?, at: answer.decided_at() })
    }

    fn decision(&self, charge: &Charge<'_>) -> Decision {
        match self.by {
            HeldBy::StoreDown => Decision::without_store(&charge.quota, charge.cost, self.wait),
            HeldBy::Room => Decision::held(&charge.quota, charge.cost, self.at, self.wait),
            _ => Decision::held_back(&charge.quota, charge.cost, self.at, self.wait),
        }
    }

    /// Shows it in the decisions on the limits of this policy.
    fn show(&self, policies: &Policies, policy: &Policy, charges: &[Charge<'_>], decisions: &mut [Decision]) {
        for (charge, decision) in charges.iter().zip(decisions) {
            let is_shorter = decision.retry_after().is_none_or(|wait| wait < self.wait);
            if is_shorter && !decision.is_never() && is_charged_by(policies, policy, charge) {
                *decision = self.decision(charge);
            }
        }
    }
}

/// Is it a charge of this policy, and one that counts? Where some limits of a policy are enforced, those in shadow do
/// not.
pub(crate) fn is_charged_by(policies: &Policies, policy: &Policy, charge: &Charge<'_>) -> bool {
    let is_its_own = policies.place(charge.limit).is_some_and(|place| std::ptr::eq(place.policy, policy));
    is_its_own && charge.mode.is_enforced() == policy.holds_back()
}

/// Shows what was found when penalties were asked about, in the decisions on the limits of their policies.
pub(crate) fn show_holds(
    policies: &Policies,
    charges: &[Charge<'_>],
    decisions: &mut [Decision],
    asked: &[Charge<'_>],
    answers: &[Decision],
) {
    for (asked, answer) in asked.iter().zip(answers) {
        if let (Some(held), Some((policy, _))) = (Held::found(asked, answer), policies.penalty_place(asked.limit)) {
            held.show(policies, policy, charges, decisions);
        }
    }
}

/// Counts an offence for each policy that counts denials and has denied. Who is held back for it is told so at once.
pub(crate) async fn offend_by_denials<S: Store>(
    gate: &Gate<S>,
    charges: &[Charge<'_>],
    decisions: &mut [Decision],
    tally: &mut Tally,
) {
    let policies = gate.policies();
    let counts_denials = |policy: &&Policy| policy.penalty().is_some_and(|penalty| penalty.of == Offence::Denials);
    for policy in policies.as_slice().iter().filter(counts_denials) {
        let denied = charges.iter().zip(&*decisions).find(|(charge, decision)| {
            !decision.is_allowed() && decision.held_by().is_none() && is_charged_by(policies, policy, charge)
        });
        let Some((charge, _)) = denied else { continue };
        if let Some(held) = offend(gate, policy, charge.key, tally).await {
            held.show(policies, policy, charges, decisions);
        }
    }
}

/// Counts an offence, and holds the key back if it is one too many: for how long is said. A store that cannot answer
/// counts nothing.
pub(crate) async fn offend<S: Store>(gate: &Gate<S>, policy: &Policy, key: &[u8], tally: &mut Tally) -> Option<Held> {
    let OffenceCharges { offence, hold } = policy.offence(key)?;
    let counted = decide_one(gate.store(), &offence).await?;
    if counted.is_allowed() && counted.remaining() > 0 {
        return None;
    }
    let held = decide_one(gate.store(), &hold).await?;
    tally.holds += u32::from(held.is_allowed());
    let wait = held.retry_after().unwrap_or_else(|| held.next_token_after());
    Some(Held { by: HeldBy::Penalty, wait, at: held.decided_at() }).filter(|held| held.wait > Duration::ZERO)
}

/// What the bucket of a charge says; `None` if nothing could be said of it.
async fn decide_one<S: Store>(store: &S, charge: &Charge<'_>) -> Option<Decision> {
    let mut decision = Decision::unmade(&charge.quota);
    let decided = store.decide(slice::from_ref(charge), slice::from_mut(&mut decision)).await;
    decided.ok().filter(|_| decision.held_by().is_none()).map(|_| decision)
}
