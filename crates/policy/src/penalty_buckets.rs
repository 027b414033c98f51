//! How a penalty is kept: as buckets of the policy's key, beside those of its limits.
//!
//! ```text
//! hold      one token per hold   whoever takes it starts the hold; requests ask whether it is there, and take nothing
//! suspects  `after`              a request whose response may be an offence takes one, and gives it back if it is none
//! offences  `after`              each offence takes one; whoever takes the last one, or finds none, takes the hold
//! ```
//!
//! So a hold ends, is forgotten, is bounded and is shared as every bucket is, and what happens while a key is held cannot
//! make it longer: the token is gone already. The suspects bound what is under way: however many requests come at once,
//! no more can turn out to be offences than `after` has left.

use std::num::NonZeroU64;

use tidegate_core::{AtBound, Charge, Cost, FailureMode, Fraction, Handling, LimitId, Mode, Quota, Sharing};

use crate::{HOLD_MAX, Offence, Penalty, Policies, Policy};

/// Which of a penalty's buckets a request asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PenaltyPart {
    /// Is the key held back?
    Hold,
    /// Are as many requests under way, or found to be offences, as may be?
    Suspects,
}

/// What an offence takes.
#[derive(Clone, Copy, Debug)]
pub struct OffenceCharges<'k> {
    /// The offence itself. If it takes the last token, or finds none, the key is to be held back.
    pub offence: Charge<'k>,
    /// The hold. If it finds none, the key is held back already.
    pub hold: Charge<'k>,
}

impl Policy {
    /// What a request is asked under the penalty, beside the charges of the limits, but for the key. The hold comes
    /// first.
    pub(crate) fn penalty_claims(&self) -> Vec<Charge<'static>> {
        let Some(penalty) = &self.penalty else { return Vec::new() };
        let hold = Charge::new(self.penalty_id("hold"), penalty.hold_quota(), &[]).with_handling(self.hold_handling());
        let suspect = Charge::new(self.penalty_id("suspects"), penalty.after, &[]).with_handling(self.handling());
        let (hold, suspect) = match self.holds_back() {
            true => (hold.with_mode(Mode::Guard), suspect),
            // A look: what is found is counted, and denies nothing.
            false => (hold.with_cost(Cost::ZERO).with_mode(Mode::Shadow), suspect.with_mode(Mode::Shadow)),
        };
        match penalty.of {
            Offence::Denials => vec![hold],
            Offence::Responses(_) => vec![hold, suspect],
        }
    }

    /// What an offence of this key takes; `None` if there is no penalty.
    #[must_use]
    pub fn offence<'k>(&self, key: &'k [u8]) -> Option<OffenceCharges<'k>> {
        let penalty = self.penalty.as_ref()?;
        let offence = Charge::new(self.penalty_id("offences"), penalty.after, key).with_handling(self.handling());
        let hold = Charge::new(self.penalty_id("hold"), penalty.hold_quota(), key).with_handling(self.hold_handling());
        Some(OffenceCharges { offence, hold })
    }

    /// The buckets that a penalty is kept in, for whoever makes a key start afresh. Empty if there is no penalty.
    pub fn penalty_ids(&self) -> impl Iterator<Item = LimitId> {
        let parts = self.penalty.map(|_| ["hold", "suspects", "offences"].map(|part| self.penalty_id(part)));
        parts.into_iter().flatten()
    }

    /// Does its penalty deny? Not if all of its limits are in shadow.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.limits.iter().any(|named| named.mode.is_enforced())
    }

    /// Is a response of this status an offence?
    #[must_use]
    pub fn is_offence(&self, status: u16) -> bool {
        let of = self.penalty.as_ref().map(|penalty| penalty.of);
        matches!(of, Some(Offence::Responses(statuses)) if statuses.has(status))
    }

    fn penalty_id(&self, part: &str) -> LimitId {
        // No limit has an empty name.
        self.limit_id("").beside(part)
    }

    /// As the first limit that counts is handled; but each decision is made where the bucket is, and newcomers share no
    /// bucket in which one could hold back all.
    fn handling(&self) -> Handling {
        let counting = self.limits.iter().find(|named| named.mode.is_enforced() == self.holds_back());
        let handling = counting.map_or_else(Handling::default, |named| named.handling);
        let at_bound = if handling.at_bound == AtBound::Pool { AtBound::Displace } else { handling.at_bound };
        Handling { at_bound, sharing: Sharing::Exact, in_force_since: None, ..handling }
    }

    /// The same; but a hold has no share: it is as long in one process.
    fn hold_handling(&self) -> Handling {
        let handling = self.handling();
        match handling.on_failure {
            FailureMode::Local(_) => handling.with_on_failure(FailureMode::Local(Fraction::WHOLE)),
            FailureMode::Allow | FailureMode::Deny => handling,
        }
    }
}

impl Penalty {
    /// One token, which comes back after the hold.
    fn hold_quota(&self) -> Quota {
        // At most 30 days of nanoseconds, which fit; a hold of nothing is the shortest one.
        let hold_ns = u64::try_from(self.hold.min(HOLD_MAX).as_nanos()).unwrap_or(u64::MAX);
        Quota::one_per(NonZeroU64::new(hold_ns).unwrap_or(NonZeroU64::MIN))
    }
}

impl Policies {
    /// Does what a request is charged, or whether its key is held back, follow from more than its charges: from its
    /// response, or from a denial?
    #[must_use]
    pub fn has_outcomes(&self) -> bool {
        self.has_outcomes
    }

    /// The policy whose penalty has the bucket of this identity, and which bucket it is; `None` if no penalty has it.
    #[must_use]
    pub fn penalty_place(&self, id: LimitId) -> Option<(&Policy, PenaltyPart)> {
        let at = self.penalty_places.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
        let (_, policy, part) = self.penalty_places[at];
        Some((self.policies.get(policy)?, part))
    }
}

/// Where each bucket of a penalty belongs, in the order of the ids.
pub(crate) fn penalty_places(policies: &[Policy]) -> Vec<(LimitId, usize, PenaltyPart)> {
    let parts = [PenaltyPart::Hold, PenaltyPart::Suspects];
    let of = |(place, policy): (usize, &Policy)| {
        let claims = policy.penalty_claims();
        claims.into_iter().zip(parts).map(move |(claim, part)| (claim.limit, place, part)).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = policies.iter().enumerate().flat_map(of).collect();
    places.sort_unstable();
    places
}
