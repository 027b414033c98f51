//! Policies over a store: the whole road from a request's attributes to its answer.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{CHARGES_MAX, Charge, Decision, Store, Time};
use tidegate_policy::{Attributes, Charging, Keys, Place, Policies};

use crate::{Answer, Cause, Charged};

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
    /// # Errors
    /// The store could not answer.
    pub async fn decide<A, R>(&self, attributes: &A, with: impl FnOnce(GateAnswer<'_>) -> R) -> Result<R, S::Error>
    where
        A: Attributes + ?Sized,
    {
        let mut keys = Keys::new();
        let without_charges = |cause, is_matched| GateAnswer {
            answer: Answer::without_charges(cause),
            is_matched,
            charged: Charged::nothing(&self.policies),
        };
        let charges = match self.policies.charging(attributes, &mut keys) {
            Charging::Charged(charges) => charges,
            Charging::Free => return Ok(with(without_charges(None, true))),
            Charging::Unmatched => return Ok(with(without_charges(None, false))),
            Charging::Denied { .. } => return Ok(with(without_charges(Some(Cause::MissingKey), true))),
        };
        let Some(first) = charges.first() else { return Ok(with(without_charges(None, true))) };
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

impl<S> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policies", &self.policies).finish_non_exhaustive()
    }
}
