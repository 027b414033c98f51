//! Limits by policies: a gate, whose store is asked about the charges that the policies make.
//!
//! What the store knows at once is concluded at once. Otherwise a future that owns the charges asks it, and concludes in
//! the same way.

use std::fmt;
use std::sync::Arc;

use http::Request;
use tidegate::policy::{Charging, Keys, Place};
use tidegate::{
    Answer, Cause, Charge, Charged, Course, Decision, Gate, GateAnswer, LimitId, Mode, OwnedCharges, Store, Time,
    Verdict,
};

use crate::attributes::{PeerLookup, RequestAttributes, peer_in_extensions};
use crate::awaited::Told;
use crate::denial::STORE_RETRY_AFTER;
use crate::errand::Spawn;
use crate::once::{Marks, uncharged};
use crate::roster::{Applied, Rosters};
use crate::{Ask, Asked, Denial, LimitLayer, Onlooker, Reason, Report, Ruled, Ruling};

/// This many decisions stay on the stack.
const INLINE_DECISIONS: usize = 4;

type Watch = Arc<dyn Fn(&Sight<'_>) + Send + Sync>;
type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// Asks a gate about each request. Made by [`LimitLayer::by_policies`].
///
/// Header fields show a limit under its own name, or as `policy/limit` if there are several policies.
pub struct ByPolicies<S> {
    pub(crate) gate: Arc<Gate<S>>,
    /// Names that show the policy too; empty if there is but one policy.
    names: Arc<[(LimitId, String)]>,
    peer: PeerLookup,
    time: Option<Clock>,
    watch: Option<Watch>,
    pub(crate) told: Option<Told>,
    pub(crate) spawn: Option<Spawn>,
    rosters: Arc<Rosters>,
    is_innermost: bool,
}

/// One request and what was decided on it, seen by whoever counts.
#[derive(Debug)]
pub struct Sight<'a> {
    /// The answer; `None` if the store gave none. Its `binding` is a place in [`Sight::charges`].
    pub answer: Option<Answer>,
    /// Did a policy match?
    pub is_matched: bool,
    charged: Charged<'a>,
}

impl<'a> Sight<'a> {
    /// The charges with the limits that they come from, those in shadow too, and the decision on each. Empty if nothing
    /// was decided, or if an outer layer had charged all of it.
    pub fn charges(&self) -> impl Iterator<Item = (Place<'a>, &'a Charge<'a>, &'a Decision)> + use<'a> {
        self.charged.iter()
    }
}

impl<'a> From<&GateAnswer<'a>> for Sight<'a> {
    /// What a gate has answered that was asked without a request of HTTP.
    fn from(answer: &GateAnswer<'a>) -> Self {
        Self { answer: Some(answer.answer), is_matched: answer.is_matched, charged: answer.charged }
    }
}

impl<S: Store> ByPolicies<S> {
    /// The gate that is asked.
    #[must_use]
    pub fn gate(&self) -> &Gate<S> {
        &self.gate
    }
}

impl<S: Store> LimitLayer<ByPolicies<S>> {
    /// How the peer's address is found. By default as [`peer_in_extensions`] does.
    pub fn peer(mut self, peer: PeerLookup) -> Self {
        self.ask.peer = peer;
        self
    }

    /// How the time is told, on a clock whose epoch is that of Unix. It is asked for only if an override that ends some
    /// day concerns the request; unless it can be told, such an override has ended.
    pub fn time(mut self, time: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        self.ask.time = Some(Arc::new(time));
        self
    }

    /// Says that no layer further in carries limits, so that nothing has to be remembered for it.
    pub fn innermost(mut self) -> Self {
        self.ask.is_innermost = true;
        self
    }

    /// Shows each decision to `watch`, before the request goes on: for metrics, say.
    pub fn watch(mut self, watch: impl Fn(&Sight<'_>) + Send + Sync + 'static) -> Self {
        self.ask.watch = Some(Arc::new(watch));
        self
    }
}

impl<S: Store> ByPolicies<S> {
    pub(crate) fn new(gate: Arc<Gate<S>>) -> Self {
        let names = full_names(&gate).into();
        Self {
            gate,
            names,
            peer: peer_in_extensions,
            time: None,
            watch: None,
            told: None,
            spawn: None,
            rosters: Arc::new(Rosters::new()),
            is_innermost: false,
        }
    }

    /// What follows from what the store answered, at once or later.
    pub(crate) fn conclude(
        &self,
        charges: &[Charge<'_>],
        decisions: &[Decision],
        verdict: Result<Verdict, S::Error>,
        onlooker: Option<&Onlooker>,
    ) -> Ruled {
        let policies = self.gate.policies();
        let Ok(verdict) = verdict else {
            self.show(&Sight { answer: None, is_matched: true, charged: Charged::nothing(policies) }, onlooker);
            return Ruling::Denied(Denial::by_store(STORE_RETRY_AFTER)).into();
        };
        let (answer, charged) = (Answer::from_verdict(verdict, decisions), Charged::new(policies, charges, decisions));
        self.show(&Sight { answer: Some(answer), is_matched: true, charged }, onlooker);
        let is_to_be_marked = answer.is_allowed() && !self.is_innermost;
        let marks = if is_to_be_marked { Marks::of(charges) } else { None };
        Ruled::from(self.ruling(&answer, &charged)).having_charged(marks)
    }

    fn without_charges(&self, cause: Option<Cause>, is_matched: bool, onlooker: Option<&Onlooker>) -> Ruled {
        let answer = Answer::without_charges(cause);
        let charged = Charged::nothing(self.gate.policies());
        self.show(&Sight { answer: Some(answer), is_matched, charged }, onlooker);
        match answer.is_allowed() {
            true => Ruling::Free.into(),
            false => Ruling::Denied(Denial::without_limit(Reason::MissingKey)).into(),
        }
    }

    fn ruling(&self, answer: &Answer, charged: &Charged<'_>) -> Ruling {
        let applied = || {
            let enforced = charged.iter().enumerate().filter(|(_, (_, charge, _))| charge.mode == Mode::Enforce);
            enforced.map(|(i, (from, charge, _))| Applied { place: i, name: self.name(from), quota: charge.quota })
        };
        match Report::new(answer, || self.rosters.of(applied)) {
            Some(report) if answer.is_allowed() => Ruling::Allowed(report),
            Some(report) => Ruling::Denied(Denial::by_limit(report)),
            None => Ruling::Free,
        }
    }

    fn name<'a>(&'a self, place: Place<'a>) -> &'a str {
        let full = self.names.iter().find(|(id, _)| *id == place.limit.id);
        full.map_or(&place.limit.name, |(_, name)| name)
    }

    fn show(&self, sight: &Sight<'_>, onlooker: Option<&Onlooker>) {
        if let Some(watch) = &self.watch {
            watch(sight);
        }
        if let Some(onlooker) = onlooker {
            onlooker.see(sight);
        }
    }
}

impl<S: Store + 'static> ByPolicies<S> {
    fn decide(&self, charges: &[Charge<'_>], onlooker: Option<Onlooker>) -> Asked {
        let Some(first) = charges.first() else { return Asked::Now(Ruling::Repeated.into()) };
        let (unmade, count) = (Decision::unmade(&first.quota), charges.len());
        let (mut inline, mut more) = ([unmade; INLINE_DECISIONS], Vec::new());
        let decisions = match inline.get_mut(..count) {
            Some(decisions) => decisions,
            None => {
                more.resize(count, unmade);
                &mut more
            }
        };
        match self.gate.store().decide_now(charges, decisions) {
            Some(verdict) => Asked::Now(self.conclude(charges, decisions, verdict, onlooker.as_ref())),
            None => Asked::Later(Box::pin(self.clone().decide_later(charges.into(), onlooker))),
        }
    }

    async fn decide_later(self, charges: OwnedCharges, onlooker: Option<Onlooker>) -> Ruled {
        let conclude = |charges: &[Charge<'_>], decisions: &[Decision], verdict| {
            self.conclude(charges, decisions, verdict, onlooker.as_ref())
        };
        charges.decide(self.gate.store(), conclude).await
    }
}

fn full_names<S: Store>(gate: &Gate<S>) -> Vec<(LimitId, String)> {
    let policies = gate.policies().as_slice();
    if policies.len() < 2 {
        return Vec::new();
    }
    let limits = policies.iter().flat_map(|policy| policy.limits().iter().map(move |limit| (policy.name(), limit)));
    limits.map(|(policy, limit)| (limit.id, format!("{policy}/{}", limit.name))).collect()
}

impl<S: Store + 'static, B> Ask<B> for ByPolicies<S> {
    fn ask(&self, request: &Request<B>) -> Asked {
        let attributes = RequestAttributes::new(request, (self.peer)(request.extensions()));
        let attributes = match &self.time {
            Some(time) => attributes.at(&**time),
            None => attributes,
        };
        let mut keys = Keys::new();
        let charging = self.gate.policies().charging(&attributes, &mut keys);
        if attributes.is_peer_missed() {
            return Asked::Now(Ruling::Denied(Denial::without_limit(Reason::PeerUnknown)).into());
        }
        let onlooker = Onlooker::of(request.extensions());
        let without = |cause, is_matched| Asked::Now(self.without_charges(cause, is_matched, onlooker.as_ref()));
        match charging {
            Charging::Charged(charges) => {
                let left = uncharged(&charges, request.extensions());
                match Course::of(self.gate.policies(), &left, charges.penalties()) {
                    None => self.decide(&left, onlooker),
                    Some(course) => self.follow(course, onlooker),
                }
            }
            Charging::Free => without(None, true),
            Charging::Unmatched => without(None, false),
            Charging::Denied { .. } => without(Some(Cause::MissingKey), true),
        }
    }
}

impl<S> Clone for ByPolicies<S> {
    fn clone(&self) -> Self {
        let Self { gate, names, peer, time, watch, told, spawn, rosters, is_innermost } = self;
        Self {
            gate: Arc::clone(gate),
            names: Arc::clone(names),
            peer: *peer,
            time: time.clone(),
            watch: watch.clone(),
            told: told.clone(),
            spawn: spawn.clone(),
            rosters: Arc::clone(rosters),
            is_innermost: *is_innermost,
        }
    }
}

impl<S> fmt::Debug for ByPolicies<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPolicies").field("gate", &self.gate).finish_non_exhaustive()
    }
}
