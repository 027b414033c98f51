//! Requests of policies for which the decision is not all: what is open is told of the response.

use std::sync::Arc;

use tidegate::{Charge, Course, Decision, Store, Tally};

use crate::awaited::Awaited;
use crate::errand::{Errand, Task};
use crate::{Asked, ByPolicies, LimitLayer, Onlooker, Ruled};

impl<S: Store> LimitLayer<ByPolicies<S>> {
    /// Tells `told` what was done beside decisions: keys that are held back, reservations that were settled or could not
    /// be.
    pub fn tell(mut self, told: impl Fn(&Tally) + Send + Sync + 'static) -> Self {
        self.ask.told = Some(Arc::new(told));
        self
    }

    /// How work is done of which nobody waits for the end: settling what a client has left open who went away, over a
    /// store that takes its time. Without it such a reservation is not settled, and what it took stays spent.
    ///
    /// `spawn` may be called from any thread that drops a request.
    pub fn spawn(mut self, spawn: impl Fn(Task) + Send + Sync + 'static) -> Self {
        self.ask.spawn = Some(Arc::new(spawn));
        self
    }
}

impl<S: Store + 'static> ByPolicies<S> {
    /// Kept out of the way of requests that have no course.
    #[cold]
    pub(crate) fn follow(&self, course: Course, onlooker: Option<Onlooker>) -> Asked {
        // A client that goes away while it is asked leaves nothing reserved.
        let errand = Errand::new(self.clone().begin(course, onlooker), self.spawn.clone());
        match if S::AT_ONCE { errand.at_once() } else { Err(errand) } {
            Ok(ruled) => Asked::Now(ruled),
            Err(errand) => Asked::Later(Box::pin(errand)),
        }
    }

    async fn begin(self, course: Course, onlooker: Option<Onlooker>) -> Ruled {
        let conclude = |charges: &[Charge<'_>], decisions: &[Decision], verdict| {
            self.conclude(charges, decisions, verdict, onlooker.as_ref())
        };
        let (ruled, tally, open) = course.ask(&self.gate, conclude).await.into_parts(&self.gate);
        self.told.iter().for_each(|told| told(&tally));
        let Some(open) = open else { return ruled };
        ruled.awaiting(|report| Awaited::new(report, open, self.told.clone(), self.spawn.clone()))
    }
}
