//! The calls that limitador takes over HTTP, for those who ask it today: if its limits were given.
//!
//! `/check_and_report` decides and charges, `/check` only looks, `/report` only charges. Read `call`, then `told`.

mod call;
mod told;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body::Body;
use tidegate_core::{Charge, Cost, Decision, Store};
use tidegate_policy::Keys;
use tidegate_policy::limitador::{Charged, Limits};

use self::call::Asked;
use super::callers::Deed;
use super::refusal::Refusal;
use super::rendered::json;
use super::{Face, body, query};
use crate::ProxyBody;
use crate::imported::imports::Imported;

/// How often a report is tried that finds less room than a look has shown.
const REPORTS_MAX: usize = 4;

/// Why counters are not listed.
const NO_COUNTERS: &str = "counters are not listed: in memory keys are known by their hashes alone, and a shared store \
                           is not searched; POST /check tells what one caller has left, and on the admin address \
                           GET /v1/keys shows a bucket and DELETE resets it";

/// What is found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    Status,
    Limits(&'p str),
    /// Of a namespace, whichever.
    Counters,
    CheckAndReport,
    Check,
    Report,
}

impl<'p> Route<'p> {
    /// Each with its path, or with the beginning of it up to a name.
    pub(super) const ALL: [(&'static str, Route<'static>); 6] = [
        ("/status", Route::Status),
        ("/limits/", Route::Limits("")),
        ("/counters/", Route::Counters),
        ("/check_and_report", Route::CheckAndReport),
        ("/check", Route::Check),
        ("/report", Route::Report),
    ];

    /// The route of a path.
    pub(super) fn of(path: &'p str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, route)| {
            let name = path.strip_prefix(known)?;
            match route {
                Route::Limits(_) => (!name.is_empty()).then_some(Self::Limits(name)),
                Route::Counters => (!name.is_empty()).then_some(route),
                _ => name.is_empty().then_some(route),
            }
        })
    }

    pub(super) fn allow(self) -> &'static str {
        match self {
            Self::Status | Self::Limits(_) | Self::Counters => "GET, HEAD",
            Self::CheckAndReport | Self::Check | Self::Report => "POST",
        }
    }
}

/// What is in force when a call comes.
#[derive(Clone, Copy)]
struct InForce<'a> {
    imported: &'a Imported,
    /// Its limits of limitador.
    limits: &'a Limits,
}

/// Answers a call, if there are limits.
pub(super) async fn answer<S, B>(
    face: &Face<S>,
    route: Route<'_>,
    parts: &Parts,
    body: B,
) -> Result<Response<ProxyBody>, Refusal>
where
    S: Store + 'static,
    B: Body<Data = Bytes>,
{
    if !route.allow().split(", ").any(|allowed| allowed == parts.method.as_str()) {
        return Err(Refusal::method(route.allow()));
    }
    let imported = face.desk.imports.in_force();
    let limits = imported.limitador().ok_or_else(no_limits)?;
    face.setup.callers.check(if route == Route::Status { Deed::Greet } else { Deed::Ask }, parts)?;
    query::read(parts.uri.query(), &[], &[])?;
    match route {
        Route::Status => return Ok(json("null\n".to_owned())),
        Route::Limits(name) => return told::limits(limits, name),
        Route::Counters => return Err(Refusal::new(StatusCode::NOT_FOUND, NO_COUNTERS)),
        Route::CheckAndReport | Route::Check | Route::Report => {}
    }
    let bytes = body::json(parts, body).await?;
    let text = body::text(&bytes)?;
    let asked = Asked::read(text).map_err(|fault| Refusal::body(text, &fault))?;
    let asking = Asking { face, in_force: InForce { imported: &imported, limits }, asked: &asked };
    match route {
        Route::Report => asking.report().await,
        Route::Check => asking.check().await,
        _ => asking.check_and_report().await,
    }
}

fn no_limits() -> Refusal {
    let detail = "no limits of limitador are in force; --limitador-limits names a file of them";
    Refusal::new(StatusCode::NOT_FOUND, detail)
}

/// A call, and who answers it.
struct Asking<'a, S> {
    face: &'a Face<S>,
    in_force: InForce<'a>,
    asked: &'a Asked<'a>,
}

impl<S: Store + 'static> Asking<'_, S> {
    async fn check_and_report(&self) -> Result<Response<ProxyBody>, Refusal> {
        let mut keys = Keys::new();
        let charged = self.charged(self.asked.delta, &mut keys);
        let decisions = self.decide(&charged.charges).await?;
        let is_denied = decisions.iter().any(|decision| !decision.is_allowed());
        Ok(told::answer(self.in_force.limits, &charged, &decisions, self.asked.wants_fields, is_denied))
    }

    /// A look at all of the buckets: would so much pass?
    async fn check(&self) -> Result<Response<ProxyBody>, Refusal> {
        let mut keys = Keys::new();
        let charged = self.charged(Cost::ZERO, &mut keys);
        let decisions = self.decide(&charged.charges).await?;
        let is_denied = decisions.iter().any(|decision| decision.remaining() < self.asked.delta.tokens());
        Ok(told::answer(self.in_force.limits, &charged, &decisions, self.asked.wants_fields, is_denied))
    }

    /// What is reported has happened, so each bucket is charged for itself: all of it, or as much as is there.
    async fn report(&self) -> Result<Response<ProxyBody>, Refusal> {
        let mut keys = Keys::new();
        let charged = self.charged(self.asked.delta, &mut keys);
        for charge in &charged.charges {
            let mut charge = *charge;
            for _ in 0..REPORTS_MAX {
                let mut decision = [Decision::unmade(&charge.quota)];
                let verdict = self.face.desk.store.decide(&[charge], &mut decision).await;
                let is_charged = verdict.map_err(Refusal::store)?.allowed;
                let [decision] = decision;
                if is_charged || decision.remaining() == 0 {
                    break;
                }
                charge.cost = Cost::new(decision.remaining());
            }
        }
        Ok(json("null\n".to_owned()))
    }

    fn charged<'k>(&'k self, cost: Cost, keys: &'k mut Keys) -> Charged<'k> {
        self.asked.with_call(|call| self.in_force.limits.charging(call, cost, keys))
    }

    /// Asks the store, if there is something to ask, and counts the answer.
    async fn decide(&self, charges: &[Charge<'_>]) -> Result<Vec<Decision>, Refusal> {
        let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
        if charges.is_empty() {
            return Ok(decisions);
        }
        let verdict = self.face.desk.store.decide(charges, &mut decisions).await.map_err(Refusal::store)?;
        self.face.desk.metrics.store.answered(verdict.source);
        self.in_force.imported.count(charges, &decisions, verdict.source);
        Ok(decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_what_they_name() {
        assert_eq!(Route::of("/check"), Some(Route::Check));
        assert_eq!(Route::of("/limits/ns"), Some(Route::Limits("ns")));
        assert_eq!(Route::of("/counters/ns"), Some(Route::Counters));
        for path in ["/limits", "/limits/", "/check/", "/counters", "/counters/", "/v1/check"] {
            assert_eq!(Route::of(path), None, "{path}");
        }
        assert_eq!(Route::of("/report").map(Route::allow), Some("POST"));
    }
}
