//! Limits by policies: a gate, whose store is asked about the charges that the policies make.

use std::fmt;
use std::sync::Arc;

use http::{Extensions, Request};
use tidegate::policy::{Charging, Keys, Place};
use tidegate::{Answer, Cause, Charge, Clock, Decision, Gate, LimitId, Memory, Mode, Source, TooManyQuotas};

use crate::attributes::{PeerLookup, RequestAttributes, peer_in_extensions};
use crate::claim::Claim;
use crate::denial::STORE_RETRY_AFTER;
use crate::once::{Mark, remember};
use crate::roster::{Applied, Rosters};
use crate::{Ask, Asked, Denial, LimitLayer, Reason, Report, Ruling};

/// This many decisions stay on the stack.
const INLINE_DECISIONS: usize = 4;

type Watch = Arc<dyn Fn(&Sight<'_>) + Send + Sync>;

/// Asks a gate about each request. Made by [`LimitLayer::by_policies`].
///
/// Header fields show a limit under its own name, or as `policy/limit` if there are several policies.
pub struct ByPolicies<C> {
    gate: Arc<Gate<Memory<C>>>,
    /// Names that show the policy too; empty if there is but one policy.
    names: Arc<[(LimitId, String)]>,
    peer: PeerLookup,
    watch: Option<Watch>,
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
    claim: Option<&'a Claim<'a>>,
    decisions: &'a [Decision],
}

impl<'a> Sight<'a> {
    /// The charges with the limits that they come from, those in shadow too, and the decision on each. Empty if nothing
    /// was decided, or if an outer layer had charged all of it.
    pub fn charges(&self) -> impl Iterator<Item = (Place<'a>, &'a Charge<'a>, &'a Decision)> + use<'a> {
        let charges = self.claim.into_iter().flat_map(Claim::iter);
        charges.zip(self.decisions).map(|((place, charge), decision)| (place, charge, decision))
    }

    fn without_charges(answer: Answer, is_matched: bool) -> Self {
        Self { answer: Some(answer), is_matched, claim: None, decisions: &[] }
    }
}

impl<C: Clock> LimitLayer<ByPolicies<C>> {
    /// How the peer's address is found. By default as [`peer_in_extensions`] does.
    pub fn peer(mut self, peer: PeerLookup) -> Self {
        self.ask.peer = peer;
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

impl<C: Clock> ByPolicies<C> {
    pub(crate) fn new(gate: Arc<Gate<Memory<C>>>) -> Self {
        let names = full_names(&gate).into();
        Self {
            gate,
            names,
            peer: peer_in_extensions,
            watch: None,
            rosters: Arc::new(Rosters::new()),
            is_innermost: false,
        }
    }

    fn rule(&self, attributes: &RequestAttributes<'_>, charged: &Extensions, keys: &mut Keys) -> Ruled {
        let charging = self.gate.policies().charging(attributes, keys);
        if attributes.is_peer_missed() {
            return Ruling::Denied(Denial::without_limit(Reason::PeerUnknown)).into();
        }
        match charging {
            Charging::Charged(charges) => self.decide(&Claim::new(&charges, charged)),
            Charging::Free => self.unlimited(true),
            Charging::Unmatched => self.unlimited(false),
            Charging::Denied { .. } => {
                let cause = Some(Cause::MissingKey);
                let answer = Answer { binding: None, decision: None, source: Source::Store, cause };
                self.show(&Sight::without_charges(answer, true));
                Ruling::Denied(Denial::without_limit(Reason::MissingKey)).into()
            }
        }
    }

    fn unlimited(&self, is_matched: bool) -> Ruled {
        self.show(&Sight::without_charges(Answer::UNLIMITED, is_matched));
        Ruling::Free.into()
    }

    fn decide(&self, claim: &Claim<'_>) -> Ruled {
        let Some(first) = claim.charges().first() else { return Ruling::Repeated.into() };
        let (unmade, count) = (Decision::unmade(&first.quota), claim.charges().len());
        let (mut inline, mut more) = ([unmade; INLINE_DECISIONS], Vec::new());
        let decisions = match inline.get_mut(..count) {
            Some(decisions) => decisions,
            None => {
                more.resize(count, unmade);
                &mut more
            }
        };
        let verdict = self.gate.store().decide_now(claim.charges(), decisions);
        let answer = verdict.map(|verdict| verdict.binding.map_or(Answer::UNLIMITED, |i| Answer::of(i, decisions[i])));
        self.show(&Sight { answer: answer.ok(), is_matched: true, claim: Some(claim), decisions });
        match answer {
            Ok(answer) => Ruled { ruling: self.ruling(&answer, claim), charged: self.marks(&answer, claim) },
            Err(TooManyQuotas) => Ruling::Denied(Denial::by_store(STORE_RETRY_AFTER)).into(),
        }
    }

    fn ruling(&self, answer: &Answer, claim: &Claim<'_>) -> Ruling {
        let (Some(place), Some(decision)) = (answer.binding, answer.decision) else { return Ruling::Free };
        let applied = || {
            let enforced = claim.iter().enumerate().filter(|(_, (_, charge))| charge.mode == Mode::Enforce);
            enforced.map(|(i, (from, charge))| Applied { place: i, name: self.name(from), quota: charge.quota })
        };
        match Report::new(self.rosters.of(applied), place, decision) {
            Some(report) if answer.is_allowed() => Ruling::Allowed(report),
            Some(report) => Ruling::Denied(Denial::by_limit(report)),
            None => Ruling::Free,
        }
    }

    fn name<'a>(&'a self, place: Place<'a>) -> &'a str {
        let full = self.names.iter().find(|(id, _)| *id == place.limit.id);
        full.map_or(&place.limit.name, |(_, name)| name)
    }

    /// What the layers further in have to know of.
    fn marks(&self, answer: &Answer, claim: &Claim<'_>) -> Vec<Mark> {
        match answer.is_allowed() && !self.is_innermost {
            true => claim.charges().iter().map(|charge| Mark::Limit(charge.limit)).collect(),
            false => Vec::new(),
        }
    }

    fn show(&self, sight: &Sight<'_>) {
        if let Some(watch) = &self.watch {
            watch(sight);
        }
    }
}

/// A ruling, and what was charged for it.
struct Ruled {
    ruling: Ruling,
    charged: Vec<Mark>,
}

impl From<Ruling> for Ruled {
    fn from(ruling: Ruling) -> Self {
        Self { ruling, charged: Vec::new() }
    }
}

fn full_names<S>(gate: &Gate<S>) -> Vec<(LimitId, String)>
where
    S: tidegate::Store,
{
    let policies = gate.policies().as_slice();
    if policies.len() < 2 {
        return Vec::new();
    }
    let limits = policies.iter().flat_map(|policy| policy.limits().iter().map(move |limit| (policy.name(), limit)));
    limits.map(|(policy, limit)| (limit.id, format!("{policy}/{}", limit.name))).collect()
}

impl<C: Clock, B> Ask<B> for ByPolicies<C> {
    fn ask(&self, request: &mut Request<B>) -> Asked {
        let attributes = RequestAttributes::new(request, (self.peer)(request.extensions()));
        let Ruled { ruling, charged } = self.rule(&attributes, request.extensions(), &mut Keys::new());
        remember(request.extensions_mut(), &charged);
        Asked::Now(ruling)
    }
}

impl<C> Clone for ByPolicies<C> {
    fn clone(&self) -> Self {
        let Self { gate, names, peer, watch, rosters, is_innermost } = self;
        Self {
            gate: Arc::clone(gate),
            names: Arc::clone(names),
            peer: *peer,
            watch: watch.clone(),
            rosters: Arc::clone(rosters),
            is_innermost: *is_innermost,
        }
    }
}

impl<C> fmt::Debug for ByPolicies<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPolicies").field("gate", &self.gate).finish_non_exhaustive()
    }
}
