//! `POST /v1/check`: may this go on now, and if not, when?

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body::Body;
use tidegate::policy::Keys;
use tidegate_core::{Charge, Cost, Decision, Sharing, Store};

use super::brought::Brought;
use super::described::Described;
use super::manner::Manner;
use super::question::{Question, Subject};
use super::refusal::Refusal;
use super::rendered::Rendered;
use super::{Face, body};
use crate::ProxyBody;

type Answered = Result<Response<ProxyBody>, Refusal>;

/// Answers a call.
pub(super) async fn check<S, B>(face: &Face<S>, parts: &Parts, body: B) -> Answered
where
    S: Store + 'static,
    B: Body<Data = Bytes>,
{
    let manner = Manner::asked(parts, face.setup.dialects)?;
    let bytes = body::json(parts, body).await?;
    let text = body::text(&bytes)?;
    let Question { subject, is_peek, .. } = Question::check(text).map_err(|fault| Refusal::body(text, &fault))?;
    match subject {
        Subject::Charges(brought) => decide(face, &brought, is_peek, manner).await,
        Subject::Request(request) => decide_request(face, &*face.timed(request)?, is_peek, manner).await,
    }
}

async fn decide<S: Store + 'static>(
    face: &Face<S>,
    brought: &[Brought<'_>],
    is_peek: bool,
    manner: Manner,
) -> Answered {
    let handling = match is_peek {
        // Nothing is taken ahead for a look.
        true => face.handling.with_sharing(Sharing::Exact),
        false => face.handling,
    };
    let charges = brought.iter().filter_map(|one| one.charge(handling));
    let charges: Vec<Charge<'_>> = match is_peek {
        true => charges.map(|charge| charge.with_cost(Cost::ZERO)).collect(),
        false => charges.collect(),
    };
    let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let verdict = face.desk.store.decide(&charges, &mut decisions).await;
    let verdict = verdict.map_err(|error| face.refused(&charges, &error))?;
    if !is_peek {
        face.count(brought, &charges, &decisions, verdict.source);
    }
    let answer = tidegate::Answer::from_verdict(verdict, &decisions);
    Ok(Rendered::by_brought(answer, brought, &decisions).draft(manner).response(None))
}

async fn decide_request<S: Store + 'static>(
    face: &Face<S>,
    request: &Described<'_>,
    is_peek: bool,
    manner: Manner,
) -> Answered {
    let respond = |gate: &tidegate::GateAnswer<'_>| Rendered::by_policies(gate).draft(manner).response(None);
    let decided = match is_peek {
        true => face.desk.in_force.peek(request, respond).await,
        false => face.desk.in_force.decide(request, respond).await,
    };
    decided.map_err(Refusal::store)
}

impl<S: Store + 'static> Face<S> {
    /// The request as of now, if it says all that the policies in force ask for.
    pub(super) fn timed<'a>(&self, mut request: Box<Described<'a>>) -> Result<Box<Described<'a>>, Refusal> {
        request.time = (self.desk.clock)();
        if !request.has_client() {
            self.desk.with_policies(|policies| drop(policies.charging(&*request, &mut Keys::new())));
        }
        match request.is_client_missed() {
            false => Ok(request),
            true => {
                let detail = "a policy goes by the client's address, and the request does not say it; add `client`";
                Err(Refusal::new(StatusCode::CONFLICT, detail))
            }
        }
    }
}

impl<S: Store + 'static> Face<S> {
    /// Why the store did not decide on these: it cannot keep one of the limits, or it is away.
    pub(super) fn refused(&self, charges: &[Charge<'_>], error: &S::Error) -> Refusal {
        match self.desk.refuses(charges) {
            Some(why) => Refusal::new(StatusCode::BAD_REQUEST, why),
            None => Refusal::store(error),
        }
    }
}
