//! Policies over a store: the whole road from a request's attributes to its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{CHARGES_MAX, Charge, Cost, Decision, ReservationId, Store, Time, Verdict};
use tidegate_policy::{Attributes, Charging, Keys, Place, Policies};

use crate::{Answer, Begun, Cause, Charged, Course, Open, Reserved};

/// Policies, and the store that they are charged to.
pub struct Gate<S> {
    policies: Policies,
    store: Arc<S>,
}

/// The answer to one request, with the limits that it was charged to.
///
/// It lives on the stack of whoever asked: [`Gate::decide`] hands it to a closure.
#[derive(Debug)]
pub struct GateAnswer<'a> {
    /// The answer. Its `binding` is a place among the charges.
    pub answer: Answer,
    /// Did a policy match?
    pub is_matched: bool,
    /// The charges and the decision on each. Empty if nothing was charged.
    pub charged: Charged<'a>,
}

impl<'a> GateAnswer<'a> {
    /// The charges with the limits they come from, and the decision on each. Empty if nothing was charged.
    pub fn charges(&self) -> impl Iterator<Item = (Place<'a>, &'a Charge<'a>, &'a Decision)> + use<'a> {
        self.charged.iter()
    }

    /// The limit that binds.
    #[must_use]
    pub fn binding(&self) -> Option<Place<'a>> {
        self.charged.place(self.answer.binding?)
    }
}

impl<S: Store> Gate<S> {
    /// A gate.
    #[must_use]
    pub fn new(policies: Policies, store: S) -> Self {
        Self { policies, store: Arc::new(store) }
    }

    /// A gate with other policies over the same store, from `now` on, on the clock of that store. Whoever asks the old
    /// gate is answered by the old policies.
    ///
    /// What keys owe is kept under limits whose names, key parts and algorithm are the same.
    #[must_use]
    pub fn with_policies(&self, policies: Policies, now: Time) -> Self {
        Self { policies: policies.in_place_of(&self.policies, now), store: Arc::clone(&self.store) }
    }

    /// The policies in force.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store, for those who look at it as long as they like.
    #[must_use]
    pub fn shared_store(&self) -> Arc<S> {
        Arc::clone(&self.store)
    }

    /// Decides on a request, and calls `with` with the answer.
    ///
    /// A key that is held back is denied, and a denial can hold one back. What a policy charges for some responses only
    /// is charged for any: [`Gate::begin`] is told of the response.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn decide<A, R>(&self, attributes: &A, with: impl FnOnce(GateAnswer<'_>) -> R) -> Result<R, S::Error>
    where
        A: Attributes + ?Sized,
    {
        let mut keys = Keys::new();
        let charges = match self.policies.charging(attributes, &mut keys) {
            Charging::Charged(charges) => charges,
            charging => return Ok(with(self.uncharged(&charging))),
        };
        if let Some(course) = Course::of(&self.policies, &charges, charges.penalties()) {
            return self.follow(course.without_response(), with).await.result;
        }
        let Some(first) = charges.first() else { return Ok(with(self.uncharged(&Charging::Free))) };
        let mut decisions = [Decision::unmade(&first.quota); CHARGES_MAX];
        let decisions = &mut decisions[..charges.len()];
        let verdict = self.store.decide(&charges, decisions).await?;
        Ok(with(GateAnswer {
            answer: Answer::from_verdict(verdict, decisions),
            is_matched: true,
            charged: Charged::new(&self.policies, &charges, decisions),
        }))
    }
}

impl<S: Store> Gate<S> {
    /// As [`Gate::decide`], for a request whose response will be told of: what only that can say is reserved. If
    /// something is open until then, it is returned, and [`Open::closing`] is to follow in any case.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn begin<A, R>(
        self: &Arc<Self>,
        attributes: &A,
        with: impl FnOnce(GateAnswer<'_>) -> R,
    ) -> Result<(R, Option<Open<S>>), S::Error>
    where
        A: Attributes + ?Sized,
    {
        let mut keys = Keys::new();
        let course = match self.policies.charging(attributes, &mut keys) {
            Charging::Charged(charges) => Course::of(&self.policies, &charges, charges.penalties()),
            _ => None,
        };
        let Some(course) = course else { return Ok((self.decide(attributes, with).await?, None)) };
        let (result, _, open) = self.follow(course, with).await.into_parts(self);
        Ok((result?, open))
    }

    /// Looks what would be decided on a request, and changes nothing. A key that is held back is shown as denied.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn peek<A, R>(&self, attributes: &A, with: impl FnOnce(GateAnswer<'_>) -> R) -> Result<R, S::Error>
    where
        A: Attributes + ?Sized,
    {
        let mut keys = Keys::new();
        let charges = match self.policies.charging(attributes, &mut keys) {
            Charging::Charged(charges) => charges,
            charging => return Ok(with(self.uncharged(&charging))),
        };
        let looks: Vec<_> = charges.iter().map(|charge| charge.with_cost(Cost::ZERO)).collect();
        let course = Course::look(&self.policies, &looks, charges.penalties());
        self.follow(course, with).await.result
    }

    /// Reserves what a request is charged, under a number that nobody else draws, for as long as `open_for`: a year at most.
    /// What was reserved is returned with what `with` made of the answer, and is to be settled by [`Store::settle`]; nothing
    /// was if the request is denied, or charged nothing.
    ///
    /// # Errors
    /// The store could not answer, or has no room for another open reservation; then nothing was charged.
    pub async fn reserve<A, R>(
        &self,
        attributes: &A,
        (id, open_for): (ReservationId, Duration),
        with: impl FnOnce(GateAnswer<'_>) -> R,
    ) -> Result<(R, Option<Reserved>), S::Error>
    where
        A: Attributes + ?Sized,
    {
        let mut keys = Keys::new();
        let charges = match self.policies.charging(attributes, &mut keys) {
            Charging::Charged(charges) => charges,
            charging => return Ok((with(self.uncharged(&charging)), None)),
        };
        let course = Course::of(&self.policies, &charges, charges.penalties());
        let course = course.unwrap_or_else(|| Course::plain(&charges));
        let conclude = |charges: &[Charge<'_>], decisions: &[Decision], verdict: Verdict| {
            with(GateAnswer {
                answer: Answer::from_verdict(verdict, decisions),
                is_matched: true,
                charged: Charged::new(&self.policies, charges, decisions),
            })
        };
        course.reserve(self, (id, open_for), conclude).await
    }

    async fn follow<R>(&self, course: Course, with: impl FnOnce(GateAnswer<'_>) -> R) -> Begun<Result<R, S::Error>> {
        let conclude = |charges: &[Charge<'_>], decisions: &[Decision], verdict: Result<Verdict, S::Error>| {
            Ok(with(GateAnswer {
                answer: Answer::from_verdict(verdict?, decisions),
                is_matched: true,
                charged: Charged::new(&self.policies, charges, decisions),
            }))
        };
        course.ask(self, conclude).await
    }

    /// The answer to a request that is charged nothing.
    fn uncharged(&self, charging: &Charging<'_>) -> GateAnswer<'_> {
        let cause = matches!(charging, Charging::Denied { .. }).then_some(Cause::MissingKey);
        GateAnswer {
            answer: Answer::without_charges(cause),
            is_matched: charging.is_matched(),
            charged: Charged::nothing(&self.policies),
        }
    }
}

impl<S> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policies", &self.policies).finish_non_exhaustive()
    }
}
