//! The policies in force, and all that is made from them: names, counters, the watch for a mistake. One value, so that
//! a request sees all of the old or all of the new.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Request;
use tidegate::policy::{Attributes, Client, OnePrivatePeer, Policies};
use tidegate::{Cause, Gate, GateAnswer, LimitId, ReservationId, Reserved, Store, Time};
use tidegate_http::{Ask, Asked, ByPolicies, Later, LimitLayer, RequestAttributes, Sight, Task, peer_in_extensions};
use tokio::runtime::Handle;

use crate::operating::admin::Refusal;
use crate::operating::denied::Denied;
use crate::operating::runtime_overrides::RuntimeOverrides;
use crate::telling::metrics::{LimitName, Metrics};
use crate::telling::record::{ClientLookup, Ruling};
use crate::{Clock, LimitMetrics, Notice};

/// Counts what was decided.
type Watch = Arc<dyn Fn(&Sight<'_>) + Send + Sync>;

/// The policies in force, asked and observed: how long a decision took, and whether everybody seems to be one peer.
pub(crate) struct Observed<S> {
    in_force: Arc<ArcSwap<InForce<S>>>,
    /// The file's policies and what an operator has added. Whoever puts others in force holds it.
    overrides: Arc<Mutex<RuntimeOverrides>>,
    clock: Clock,
    metrics: Arc<Metrics>,
    denied: Option<Arc<Denied>>,
    notice: Notice,
}

/// What is in force.
pub(crate) struct InForce<S> {
    ask: ByPolicies<S>,
    watch: Watch,
    one_private_peer: Arc<OnePrivatePeer>,
}

impl<S: Store + 'static> Observed<S> {
    pub(crate) fn new(
        gate: Gate<S>,
        clock: Clock,
        metrics: Arc<Metrics>,
        denied: Option<Arc<Denied>>,
        notice: Notice,
    ) -> Self {
        let overrides = Arc::new(Mutex::new(RuntimeOverrides::new(gate.policies().clone())));
        let one_private_peer = Arc::new(OnePrivatePeer::new(&gate.policies().client().trust));
        let in_force = InForce::new(gate, &clock, &metrics, denied.as_ref(), one_private_peer);
        Self { in_force: Arc::new(ArcSwap::from_pointee(in_force)), overrides, clock, metrics, denied, notice }
    }

    /// Calls `with` with the policies in force.
    pub(crate) fn with_policies<R>(&self, with: impl FnOnce(&Policies) -> R) -> R {
        with(self.in_force.load().ask.gate().policies())
    }

    /// Tells an operator something.
    pub(crate) fn tell(&self, text: &str) {
        (self.notice)(text);
    }

    /// The client of a request that says who its peer is.
    pub(crate) fn client_of<B>(&self, request: &Request<B>) -> Client {
        let attributes = RequestAttributes::new(request, peer_in_extensions(request.extensions()));
        self.with_policies(|policies| policies.client().of(&attributes))
    }

    /// What is in force now, for who asks in a way of their own.
    pub(crate) fn now(&self) -> Arc<InForce<S>> {
        self.in_force.load_full()
    }

    /// Finds clients as the policies in force do.
    pub(crate) fn client_lookup(&self) -> ClientLookup {
        let in_force = Arc::clone(&self.in_force);
        Arc::new(move |attributes| in_force.load().ask.gate().policies().client().of(attributes))
    }

    /// Puts the policies of another file in force, for the requests that come from now on. What an operator has added
    /// goes on.
    pub(crate) fn replace(&self, policies: Policies) {
        let mut overrides = self.overrides.lock().unwrap_or_else(PoisonError::into_inner);
        self.put_in_force(overrides.with_file(policies, self.now_s()));
    }

    /// Changes what an operator has added, and says whether that changed the policies, which are then put in force.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut RuntimeOverrides) -> Result<Option<Policies>, Refusal>,
    ) -> Result<bool, Refusal> {
        let mut overrides = self.overrides.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut overrides)?;
        let is_changed = changed.is_some();
        changed.into_iter().for_each(|policies| self.put_in_force(policies));
        Ok(is_changed)
    }

    /// Calls `with` with what an operator has added.
    pub(crate) fn with_overrides<R>(&self, with: impl FnOnce(&RuntimeOverrides) -> R) -> R {
        with(&self.overrides.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now_s(&self) -> u64 {
        (self.clock)().since(Time::ZERO).as_secs()
    }

    /// Whoever calls it holds the overrides, so that no change is lost.
    fn put_in_force(&self, policies: Policies) {
        let old = self.in_force.load_full();
        let gate = old.ask.gate().with_policies(policies, (self.clock)());
        let (before, now) = (&old.ask.gate().policies().client().trust, &gate.policies().client().trust);
        let one_private_peer = match before == now {
            true => Arc::clone(&old.one_private_peer),
            false => Arc::new(OnePrivatePeer::new(now)),
        };
        let in_force = InForce::new(gate, &self.clock, &self.metrics, self.denied.as_ref(), one_private_peer);
        self.in_force.store(Arc::new(in_force));
    }
}

impl<S: Store + 'static> Observed<S> {
    /// Decides on what is no request of HTTP, counts the decision, and calls `with` with it.
    ///
    /// # Errors
    /// The store could not answer.
    pub(crate) async fn decide<A, R>(
        &self,
        attributes: &A,
        with: impl FnOnce(&GateAnswer<'_>) -> R,
    ) -> Result<R, S::Error>
    where
        A: Attributes + ?Sized,
    {
        let (in_force, asked_at) = (self.in_force.load_full(), (self.clock)());
        let shown = |answer: GateAnswer<'_>| {
            (in_force.watch)(&Sight::from(&answer));
            with(&answer)
        };
        let result = in_force.ask.gate().decide(attributes, shown).await;
        self.metrics.decision.observe((self.clock)().since(asked_at));
        result.inspect_err(|_| self.metrics.requests.count(Ruling::Failed))
    }

    /// Reserves what a request is charged, as [`Gate::reserve`] does, and counts the decision.
    ///
    /// # Errors
    /// The store could not answer, or has no room for another reservation.
    pub(crate) async fn reserve<A, R>(
        &self,
        attributes: &A,
        reservation: (ReservationId, Duration),
        with: impl FnOnce(&GateAnswer<'_>) -> R,
    ) -> Result<(R, Option<Reserved>), S::Error>
    where
        A: Attributes + ?Sized,
    {
        let in_force = self.in_force.load_full();
        let shown = |answer: GateAnswer<'_>| {
            (in_force.watch)(&Sight::from(&answer));
            with(&answer)
        };
        let result = in_force.ask.gate().reserve(attributes, reservation, shown).await;
        result.inspect_err(|_| self.metrics.requests.count(Ruling::Failed))
    }

    /// Looks what would be decided, and calls `with` with it. Nothing changes, and nothing is counted.
    ///
    /// # Errors
    /// The store could not answer.
    pub(crate) async fn peek<A, R>(
        &self,
        attributes: &A,
        with: impl FnOnce(&GateAnswer<'_>) -> R,
    ) -> Result<R, S::Error>
    where
        A: Attributes + ?Sized,
    {
        let in_force = self.in_force.load_full();
        in_force.ask.gate().peek(attributes, |answer| with(&answer)).await
    }
}

impl<S> Observed<S> {
    fn timed(&self, later: Later, asked_at: Time) -> Later {
        let (clock, metrics, waiting) =
            (Arc::clone(&self.clock), Arc::clone(&self.metrics), self.metrics.store.waiting());
        Box::pin(async move {
            let ruled = later.await;
            let wait = clock().since(asked_at);
            metrics.decision.observe(wait);
            waiting.ruled_after(wait);
            ruled
        })
    }
}

impl<S: Store + 'static, B> Ask<B> for Observed<S> {
    fn ask(&self, request: &Request<B>) -> Asked {
        let in_force = self.in_force.load();
        if !in_force.one_private_peer.is_settled() {
            let attributes = RequestAttributes::new(request, peer_in_extensions(request.extensions()));
            in_force.one_private_peer.look(&attributes).iter().for_each(|text| (self.notice)(text));
        }
        let asked_at = (self.clock)();
        match in_force.ask.ask(request) {
            Asked::Now(ruled) => {
                self.metrics.decision.observe((self.clock)().since(asked_at));
                Asked::Now(ruled)
            }
            Asked::Later(later) => Asked::Later(self.timed(later, asked_at)),
        }
    }
}

impl<S> Clone for Observed<S> {
    fn clone(&self) -> Self {
        Self {
            in_force: Arc::clone(&self.in_force),
            overrides: Arc::clone(&self.overrides),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            denied: self.denied.clone(),
            notice: Arc::clone(&self.notice),
        }
    }
}

impl<S: Store + 'static> InForce<S> {
    /// The policies over their store.
    pub(crate) fn gate(&self) -> &Gate<S> {
        self.ask.gate()
    }

    /// Counts what was decided by asking that store.
    pub(crate) fn saw(&self, sight: &Sight<'_>) {
        (self.watch)(sight);
    }

    /// What asks this gate, and counts.
    fn new(
        gate: Gate<S>,
        clock: &Clock,
        metrics: &Arc<Metrics>,
        denied: Option<&Arc<Denied>>,
        one_private_peer: Arc<OnePrivatePeer>,
    ) -> Self {
        let limits = Limits::new(gate.policies(), metrics);
        let denied = denied.cloned();
        let (clock, metrics) = (Arc::clone(clock), Arc::clone(metrics));
        let layer = LimitLayer::by_policies(Arc::new(gate)).innermost().time(move || clock());
        let outcomes = metrics.outcomes.clone();
        let layer = layer.tell(move |tally| outcomes.count(tally)).spawn(spawn);
        let watch: Watch = Arc::new(move |sight: &Sight<'_>| {
            limits.count(&metrics, sight);
            if let Some(denied) = &denied {
                sight.charges().for_each(|(_, charge, decision)| denied.count(charge, decision));
            }
        });
        let each = Arc::clone(&watch);
        Self { ask: layer.watch(move |sight: &Sight<'_>| each(sight)).into_ask(), watch, one_private_peer }
    }
}

/// Runs what is left over on the worker that it is left on; nowhere, when that is ending.
fn spawn(task: Task) {
    if let Ok(worker) = Handle::try_current() {
        worker.spawn(task);
    }
}

/// The counters of all limits, in the order of their identities.
struct Limits(Box<[(LimitId, LimitMetrics)]>);

impl Limits {
    fn new(policies: &Policies, metrics: &Metrics) -> Self {
        let limits = policies.as_slice().iter().flat_map(|policy| policy.limits().iter().map(move |it| (policy, it)));
        let (ids, names): (Vec<_>, Vec<_>) = limits
            .map(|(policy, limit)| {
                let (policy, name) = (policy.name().to_owned(), limit.name.clone());
                (limit.id, LimitName { policy, limit: name, mode: limit.mode, on_failure: limit.handling.on_failure })
            })
            .unzip();
        let mut limits: Box<[_]> = ids.into_iter().zip(metrics.limits.replace(&names)).collect();
        limits.sort_unstable_by_key(|(id, _)| *id);
        Self(limits)
    }

    fn count(&self, metrics: &Metrics, sight: &Sight<'_>) {
        metrics.requests.count(Ruling::of(sight));
        let Some(answer) = &sight.answer else { return };
        metrics.store.answered(answer.source);
        if answer.cause == Some(Cause::Penalty) {
            metrics.outcomes.held.inc();
        }
        for (place, _, decision) in sight.charges() {
            let known = self.0.binary_search_by_key(&place.limit.id, |(id, _)| *id);
            known.iter().for_each(|at| self.0[*at].1.count(decision, answer.source));
        }
    }
}
