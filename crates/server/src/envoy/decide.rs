//! One call, decided: all of its descriptors in one step, all of them charged or none.

use tidegate::policy::Policies;
use tidegate::{Answer, Cause, Charged, Course, GateAnswer};
use tidegate_core::{Charge, Cost, Decision, Source, Store, Time, Verdict};
use tidegate_http::Sight;
use tidegate_policy::Peer;

use super::asked::{Asked, Asking, Entries, Hits, Manner, Met, Room};
use super::messages::{Code, DescriptorStatus, RateLimitRequest, RateLimitResponse};
use super::statuses::{Named, overall, statuses};
use super::{BROUGHT, RateLimits};
use crate::grpc::status::{CallError, Code as GrpcCode};
use crate::imported::imports::Imported;
use crate::operating::in_force::InForce;
use crate::telling::record::Ruling;

/// What is in force while one call is decided.
struct Now<'a, S> {
    limits: &'a RateLimits<S>,
    in_force: &'a InForce<S>,
    imported: &'a Imported,
}

/// What was decided.
struct Concluded {
    overall: Code,
    statuses: Vec<DescriptorStatus>,
}

impl<S: Store + 'static> RateLimits<S> {
    /// Decides on a call of `asker`.
    ///
    /// # Errors
    /// It asks for nothing that can be decided, or the store gave no answer.
    pub(crate) async fn decide(&self, request: &RateLimitRequest, asker: Peer) -> Result<RateLimitResponse, CallError> {
        let (in_force, imported) = (self.desk.in_force.now(), self.desk.imports.in_force());
        let now = Now { limits: self, in_force: &in_force, imported: &imported };
        let started = (self.desk.clock)();
        let concluded = now.decide(request, asker, started).await?;
        self.desk.metrics.decision.observe((self.desk.clock)().since(started));
        let fields = self.headers.fields(concluded.overall, &concluded.statuses);
        Ok(RateLimitResponse {
            overall_code: concluded.overall.into(),
            statuses: concluded.statuses,
            response_headers_to_add: fields,
        })
    }
}

impl<S: Store + 'static> Now<'_, S> {
    async fn decide(&self, request: &RateLimitRequest, asker: Peer, started: Time) -> Result<Concluded, CallError> {
        let policies = self.policies();
        let entries = Entries::new(request)?;
        let met = Met::all(self.imported.rules(), request, &entries)?;
        let mut room = Room::new(policies, request.descriptors.len());
        let manner = Manner { algorithm: self.limits.algorithm, handling: self.limits.handling };
        let unix_s = started.since(Time::ZERO).as_secs();
        let limitador = self.imported.limitador();
        let asking = Asking { request, entries: &entries, met: &met, policies, limitador, manner, asker, unix_s };
        let asked = asking.charges(&mut room)?;
        let conclude = |charges: &[Charge<'_>], decisions: &[Decision], verdict: Verdict| {
            self.conclude(&asked, &met, charges, decisions, verdict)
        };
        let mut concluded = self.ask(&asked, conclude).await.map_err(|error| self.failed(&asked, &met, &error))?;
        let is_refund = |descriptor| Hits::of(request, descriptor).is_refund;
        if concluded.overall == Code::Ok && request.descriptors.iter().any(is_refund) {
            self.give_back(request, &asked, &met, &mut concluded).await;
        }
        Ok(concluded)
    }

    /// Why the store did not decide: it cannot keep a limit that the call brought, or it could decide on no call.
    ///
    /// A store that is away is no failure: then each limit does what it declared.
    fn failed(&self, asked: &Asked<'_>, met: &[Met<'_>], error: &S::Error) -> CallError {
        let desk = &self.limits.desk;
        desk.metrics.requests.count(Ruling::Failed);
        let brought = asked.of.iter().zip(met).filter(|(_, met)| matches!(met, Met::Brought(_)));
        match desk.refuses(brought.filter_map(|(range, _)| asked.charges.get(range.start))) {
            Some(why) => CallError::invalid(why),
            None => CallError::new(GrpcCode::Unavailable, format!("the store could not decide: {error}")),
        }
    }

    /// Asks the store, if there is something to ask.
    async fn ask<R>(
        &self,
        asked: &Asked<'_>,
        with: impl FnOnce(&[Charge<'_>], &[Decision], Verdict) -> R,
    ) -> Result<R, S::Error> {
        let Some(first) = asked.charges.first() else {
            return Ok(with(&[], &[], Verdict { allowed: true, binding: None, source: Source::Store }));
        };
        let gate = self.in_force.gate();
        if let Some(course) = Course::of(self.policies(), &asked.charges, &asked.penalties) {
            let with = |charges: &[Charge<'_>], decisions: &[Decision], verdict: Result<Verdict, S::Error>| {
                verdict.map(|verdict| with(charges, decisions, verdict))
            };
            return course.without_response().ask(gate, with).await.result;
        }
        let mut decisions = vec![Decision::unmade(&first.quota); asked.charges.len()];
        let verdict = gate.store().decide(&asked.charges, &mut decisions).await?;
        Ok(with(&asked.charges, &decisions, verdict))
    }

    /// Counts what was decided, and says it.
    fn conclude(
        &self,
        asked: &Asked<'_>,
        met: &[Met<'_>],
        charges: &[Charge<'_>],
        decisions: &[Decision],
        verdict: Verdict,
    ) -> Concluded {
        let answer = match asked.lacking.is_empty() {
            true => Answer::from_verdict(verdict, decisions),
            false => Answer::without_charges(Some(Cause::MissingKey)),
        };
        let charged = Charged::new(self.policies(), charges, decisions);
        self.in_force.saw(&Sight::from(&GateAnswer { answer, is_matched: asked.is_matched, charged }));
        self.imported.count(charges, decisions, verdict.source);
        for (range, _) in asked.of.iter().zip(met).filter(|(_, met)| matches!(met, Met::Brought(_))) {
            let (charge, decision) = (&charges[range.start], &decisions[range.start]);
            self.limits.brought.count(decision, verdict.source);
            self.limits.desk.denied().into_iter().for_each(|denied| denied.count_brought(charge, decision, BROUGHT));
        }
        let statuses = statuses(asked, met, self.named(), decisions);
        Concluded { overall: overall(&statuses, met), statuses }
    }

    /// Gives back what the call says, and looks what is there then. What cannot be given back stays spent.
    async fn give_back(
        &self,
        request: &RateLimitRequest,
        asked: &Asked<'_>,
        met: &[Met<'_>],
        concluded: &mut Concluded,
    ) {
        let store = self.in_force.gate().store();
        let refunds = request.descriptors.iter().map(|descriptor| Hits::of(request, descriptor)).zip(&asked.of);
        for (hits, range) in refunds.filter(|(hits, _)| hits.is_refund) {
            for charge in &asked.charges[range.clone()] {
                let _ = store.grant(charge.limit, &charge.quota, charge.key, hits.count).await;
            }
        }
        let looks: Vec<_> = asked.charges.iter().map(|charge| charge.with_cost(Cost::ZERO)).collect();
        let Some(first) = looks.first() else { return };
        let mut decisions = vec![Decision::unmade(&first.quota); looks.len()];
        if store.decide(&looks, &mut decisions).await.is_ok() {
            let fresh = statuses(asked, met, self.named(), &decisions);
            let of_refunds = request.descriptors.iter().zip(concluded.statuses.iter_mut().zip(fresh));
            let of_refunds = of_refunds.filter(|(descriptor, _)| descriptor.is_negative_hits);
            of_refunds.for_each(|(_, (status, fresh))| *status = fresh);
        }
    }

    fn named(&self) -> Named<'_> {
        Named { policies: self.policies(), imported: self.imported }
    }

    fn policies(&self) -> &Policies {
        self.in_force.gate().policies()
    }
}
