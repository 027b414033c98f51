//! Requests whose charge follows from their response, and keys that are held back for what they did.
//!
//! ```text
//! request   all charges, with the penalties' buckets, in one step     [`Course::ask`]
//!           what only the response can tell is reserved
//! denial    an offence under a policy that counts denials             `penalties`
//! response  the reservation is settled with what it truly costs       [`Open::closing`]
//!           an offence under a policy that counts such responses
//! ```
//!
//! Most requests have no course: [`Course::of`] says so, and they are decided as if there were none of this.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Charge, Cost, Decision, FailureMode, Mode, OPEN_FOR, ReservationId, Settled, Source, Store, Verdict,
};
use tidegate_policy::{NO_RESPONSE, PenaltyPart, Policies, Policy};

use crate::penalties::{is_charged_by, offend, offend_by_denials, show_holds};
use crate::reservation::draw;
use crate::{Gate, OwnedCharges};

/// Whom a limit denies because nothing can be reserved may come back after this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What is to be done for one request, before its response and after it. It owns what it needs.
#[derive(Clone, Debug)]
pub struct Course {
    /// The charges, and behind them what is asked under penalties.
    all: OwnedCharges,
    /// How many are charges.
    limits: usize,
    /// Is something reserved?
    reserves: bool,
}

/// What has been done beside decisions, for whoever counts.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys that are held back from now on.
    pub holds: u32,
    /// Reservations that were settled.
    pub settled: u32,
    /// Reservations that could not be settled: what they took stays spent.
    pub not_settled: u32,
    /// Requests for which nothing could be reserved, so that the limits' failure modes decided.
    pub not_reserved: u32,
}

/// What came of asking.
pub struct Begun<R> {
    /// What the caller made of the answer.
    pub result: R,
    /// What else was done.
    pub tally: Tally,
    outset: Option<Outset>,
}

/// A request that has passed, before its response is there.
struct Outset {
    course: Course,
    id: Option<ReservationId>,
    /// Was this charge made? Not if a limit in shadow would have denied it, or if it only asked.
    is_made: Vec<bool>,
}

/// A request that has passed and whose response says what it costs. [`Open::closing`] is to follow in any case.
pub struct Open<S> {
    gate: Arc<Gate<S>>,
    outset: Outset,
}

/// What was reserved for a request, for whoever settles it by [`Store::settle`].
#[derive(Clone, Debug)]
pub struct Reserved {
    charges: OwnedCharges,
    is_made: Vec<bool>,
}

impl Reserved {
    /// The charges, and whether each was made: not if a limit in shadow would have denied it, or if it only asked.
    pub fn charges(&self) -> impl Iterator<Item = (Charge<'_>, bool)> {
        self.charges.lent().into_iter().zip(self.is_made.iter().copied())
    }
}

/// A response, as far as it matters for what a request costs.
#[derive(Clone, Copy)]
pub struct ResponseOutcome<'a> {
    /// Its status.
    pub status: u16,
    /// The value of its field of this name, if it has one.
    pub field: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

impl Course {
    /// The course of a request that makes these `charges` and asks `penalties`; `None` if the decision is all there is.
    /// A penalty goes with the charges of its policy, so one without them is left out.
    #[must_use]
    pub fn of(policies: &Policies, charges: &[Charge<'_>], penalties: &[Charge<'_>]) -> Option<Self> {
        if !policies.has_outcomes() {
            return None;
        }
        let is_charged = |policy: &Policy| charges.iter().any(|charge| is_charged_by(policies, policy, charge));
        let asked = penalties.iter().filter_map(|charge| Some((charge, policies.penalty_place(charge.limit)?)));
        let asked: Vec<_> = asked.filter(|(_, (policy, _))| is_charged(policy)).collect();
        let settles =
            |charge: &Charge<'_>| policies.place(charge.limit).is_some_and(|place| place.policy.settling().is_some());
        let reserves = charges.iter().any(settles) || asked.iter().any(|(_, (_, part))| *part == PenaltyPart::Suspects);
        if asked.is_empty() && !reserves {
            return None;
        }
        let all: Vec<_> = charges.iter().chain(asked.into_iter().map(|(charge, _)| charge)).copied().collect();
        Some(Self { all: all[..].into(), limits: charges.len(), reserves })
    }

    /// A look of these cost: a penalty that would deny shows, and nothing is taken.
    pub(crate) fn look(policies: &Policies, charges: &[Charge<'_>], penalties: &[Charge<'_>]) -> Self {
        let penalties: Vec<_> = penalties.iter().map(asking_only).collect();
        Self::of(policies, charges, &penalties).map_or_else(|| Self::plain(charges), Self::without_response)
    }

    /// The course of a request that is charged this and has no other consequences.
    pub(crate) fn plain(charges: &[Charge<'_>]) -> Self {
        Self { all: charges.into(), limits: charges.len(), reserves: false }
    }

    /// The same for a request that has no response to speak of: what it takes stays taken, and no response of it is an
    /// offence.
    #[must_use]
    pub fn without_response(self) -> Self {
        Self { reserves: false, ..self }
    }

    /// Asks the gate's store about all of it in one step. `with` is called with the charges, the decisions on them and
    /// the verdict: a key that is held back shows as such in the decisions on the limits of its policy.
    pub async fn ask<S: Store, R>(
        self,
        gate: &Gate<S>,
        with: impl FnOnce(&[Charge<'_>], &[Decision], Result<Verdict, S::Error>) -> R,
    ) -> Begun<R> {
        let (all, mut tally) = (self.all.lent(), Tally::default());
        let mut decisions: Vec<_> = all.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let decided = self.decide(gate.store(), &all, &mut decisions, &mut tally).await;
        let (verdict, id) = match decided {
            Ok(decided) => decided,
            Err(error) => {
                let result = with(&all[..self.limits], &decisions[..self.limits], Err(error));
                return Begun { result, tally, outset: None };
            }
        };
        let is_made = made(&all, &decisions);
        let verdict = self.concluded(gate, &all, &mut decisions, verdict.source, &mut tally).await;
        let result = with(&all[..self.limits], &decisions[..self.limits], Ok(verdict));
        drop(all);
        let is_open = verdict.allowed && self.reserves;
        Begun { result, tally, outset: is_open.then_some(Outset { course: self, id, is_made }) }
    }

    /// Reserves all of it, as [`Course::ask`] asks about it. The reservation is for whoever calls to settle.
    pub(crate) async fn reserve<S: Store, R>(
        self,
        gate: &Gate<S>,
        (id, open_for): (ReservationId, Duration),
        with: impl FnOnce(&[Charge<'_>], &[Decision], Verdict) -> R,
    ) -> Result<(R, Option<Reserved>), S::Error> {
        let (all, mut tally) = (self.all.lent(), Tally::default());
        let mut decisions: Vec<_> = all.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let verdict = gate.store().reserve(&all, &mut decisions, id, open_for).await?;
        let mut is_made = made(&all, &decisions);
        // What is asked under penalties is no part of what a request costs.
        is_made[self.limits..].fill(false);
        let verdict = self.concluded(gate, &all, &mut decisions, verdict.source, &mut tally).await;
        let result = with(&all[..self.limits], &decisions[..self.limits], verdict);
        drop(all);
        Ok((result, verdict.allowed.then_some(Reserved { charges: self.all, is_made })))
    }

    /// The verdict, once what was found under penalties shows in the decisions on the limits.
    async fn concluded<S: Store>(
        &self,
        gate: &Gate<S>,
        all: &[Charge<'_>],
        decisions: &mut [Decision],
        source: Source,
        tally: &mut Tally,
    ) -> Verdict {
        let (charges, asked) = all.split_at(self.limits);
        let (decisions, answers) = decisions.split_at_mut(self.limits);
        show_holds(gate.policies(), charges, decisions, asked, answers);
        offend_by_denials(gate, charges, decisions, tally).await;
        Verdict::over(charges, decisions).from_source(source)
    }

    async fn decide<S: Store>(
        &self,
        store: &S,
        all: &[Charge<'_>],
        decisions: &mut [Decision],
        tally: &mut Tally,
    ) -> Result<(Verdict, Option<ReservationId>), S::Error> {
        if !self.reserves {
            return Ok((store.decide(all, decisions).await?, None));
        }
        let id = draw();
        if let Ok(verdict) = store.reserve(all, decisions, id, OPEN_FOR).await {
            return Ok((verdict, Some(id)));
        }
        tally.not_reserved += 1;
        Ok((decide_unreserved(store, all, decisions).await?, None))
    }
}

/// Which of these charges were made: not what a limit in shadow would have denied, and not what only asked.
fn made(all: &[Charge<'_>], decisions: &[Decision]) -> Vec<bool> {
    all.iter().zip(decisions).map(|(charge, it)| it.is_allowed() && charge.mode != Mode::Guard).collect()
}

/// The same question, if it took something.
fn asking_only<'k>(charge: &Charge<'k>) -> Charge<'k> {
    match charge.mode {
        Mode::Shadow => charge.with_cost(Cost::ZERO),
        Mode::Enforce | Mode::Guard => charge.with_mode(Mode::Guard),
    }
}

/// What the failure modes of the limits say where nothing can be reserved. What goes on by itself is charged, and stays
/// spent.
async fn decide_unreserved<S: Store>(
    store: &S,
    all: &[Charge<'_>],
    decisions: &mut [Decision],
) -> Result<Verdict, S::Error> {
    for (decision, charge) in decisions.iter_mut().zip(all) {
        let is_denied = charge.handling.on_failure == FailureMode::Deny && charge.cost > Cost::ZERO;
        *decision = match is_denied {
            true => Decision::without_store(&charge.quota, charge.cost, RETRY_AFTER),
            false => Decision::unmade(&charge.quota),
        };
    }
    if Verdict::over(all, decisions).allowed {
        let local = all.iter().enumerate().filter(|(_, it)| matches!(it.handling.on_failure, FailureMode::Local(_)));
        let (places, local): (Vec<_>, Vec<_>) = local.map(|(place, charge)| (place, *charge)).unzip();
        let mut made: Vec<_> = local.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        let _ = store.decide(&local, &mut made).await?;
        places.into_iter().zip(made).for_each(|(place, decision)| decisions[place] = decision);
    }
    Ok(Verdict::over(all, decisions).from_source(Source::Fallback))
}

impl<R> Begun<R> {
    /// What the caller made of the answer, what else was done, and what is open until the response is there.
    pub fn into_parts<S>(self, gate: &Arc<Gate<S>>) -> (R, Tally, Option<Open<S>>) {
        let open = self.outset.map(|outset| Open { gate: Arc::clone(gate), outset });
        (self.result, self.tally, open)
    }
}

impl<S: Store> Open<S> {
    /// Settles with what the response says, or with what it means that there is none, and counts an offence. The future
    /// holds nothing of the response; if it is dropped before it is done, what was reserved stays spent.
    pub fn closing(self, response: Option<ResponseOutcome<'_>>) -> impl Future<Output = Tally> + Send + use<S> {
        let Self { gate, outset: Outset { mut course, id, is_made } } = self;
        let actual = course.settle_by(gate.policies(), &is_made, response);
        let status = response.map_or(NO_RESPONSE, |response| response.status);
        async move {
            let (all, mut tally) = (course.all.lent(), Tally::default());
            if let Some(id) = id {
                match gate.store().settle(id, &all, &actual).await {
                    Ok(Settled::Settled) => tally.settled += 1,
                    Ok(Settled::Unknown) | Err(_) => tally.not_settled += 1,
                }
            }
            for charge in &all[course.limits..] {
                if let Some((policy, PenaltyPart::Suspects)) = gate.policies().penalty_place(charge.limit)
                    && policy.is_offence(status)
                {
                    offend(&gate, policy, charge.key, &mut tally).await;
                }
            }
            tally
        }
    }
}

impl Course {
    /// Makes the cost of each charge what was taken, and says what it truly is.
    fn settle_by(&mut self, policies: &Policies, is_made: &[bool], response: Option<ResponseOutcome<'_>>) -> Vec<Cost> {
        let status = response.map_or(NO_RESPONSE, |response| response.status);
        let actual_of = |charge: &Charge<'_>| match policies.penalty_place(charge.limit) {
            Some((policy, _)) => {
                if policy.is_offence(status) {
                    charge.cost
                } else {
                    Cost::ZERO
                }
            }
            None => match policies.place(charge.limit).and_then(|place| place.policy.settling()) {
                Some(settling) => {
                    let field = settling.field().zip(response);
                    let field = field.and_then(|(name, response)| (response.field)(name.as_str()));
                    settling.cost(status, field, charge.cost)
                }
                None => charge.cost,
            },
        };
        let all = self.all.lent();
        let made = all.iter().zip(is_made);
        let actual = made.map(|(charge, is_made)| if *is_made { actual_of(charge) } else { Cost::ZERO }).collect();
        drop(all);
        self.all.take_back(|i| !is_made[i]);
        actual
    }
}
