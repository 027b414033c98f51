//! `POST /v1/reserve` takes an estimate, `POST /v1/settle` says what it truly was.
//!
//! No server remembers a reservation: its charges go to the caller and come back with the settling, in a token that is
//! signed. Whether it is open is what its record in the store says, so a repeated settling changes nothing, and of
//! several servers any one can settle.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body::Body;
use tidegate_core::{Charge, Cost, Decision, ReservationId, Settled, Store};

use super::brought::Brought;
use super::described::Described;
use super::mac::{MacKey, draw};
use super::manner::Manner;
use super::question::{Question, Subject};
use super::refusal::Refusal;
use super::rendered::{Rendered, settled};
use super::{Face, body, query, token};
use crate::ProxyBody;
use crate::json::{self, Fault};

type Answered = Result<Response<ProxyBody>, Refusal>;

/// What a reservation is made with.
struct Making<'m> {
    id: ReservationId,
    open_for: Duration,
    mac: &'m MacKey,
    manner: Manner,
}

/// Answers a call that reserves.
pub(super) async fn reserve<S, B>(face: &Face<S>, parts: &Parts, body: B) -> Answered
where
    S: Store + 'static,
    B: Body<Data = Bytes>,
{
    let manner = Manner::asked(parts, face.setup.dialects)?;
    let bytes = body::json(parts, body).await?;
    let text = body::text(&bytes)?;
    let Question { subject, open_for, .. } = Question::reserve(text).map_err(|fault| Refusal::body(text, &fault))?;
    let (Some(mac), Some(number)) = (&face.mac, draw()) else {
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the system gives nothing by chance"));
    };
    let making = Making { id: ReservationId::new(number), open_for, mac, manner };
    match subject {
        Subject::Charges(brought) => reserve_brought(face, &brought, &making).await,
        Subject::Request(request) => reserve_request(face, &*face.timed(request)?, &making).await,
    }
}

async fn reserve_brought<S: Store + 'static>(face: &Face<S>, brought: &[Brought<'_>], making: &Making<'_>) -> Answered {
    let charges: Vec<Charge<'_>> = brought.iter().filter_map(|one| one.charge(face.handling)).collect();
    let mut decisions: Vec<_> = charges.iter().map(|charge| Decision::unmade(&charge.quota)).collect();
    let verdict = face.desk.store.reserve(&charges, &mut decisions, making.id, making.open_for).await;
    let verdict = verdict.map_err(|error| face.refused(&charges, &error))?;
    face.count(brought, &charges, &decisions, verdict.source);
    let is_made = |(charge, decision): (_, &Decision)| (charge, decision.is_allowed());
    let token = (verdict.allowed && !charges.is_empty())
        .then(|| token::write(making.mac, making.id, charges.iter().zip(&decisions).map(is_made)));
    let answer = tidegate::Answer::from_verdict(verdict, &decisions);
    Ok(Rendered::by_brought(answer, brought, &decisions).draft(making.manner).response(token.as_deref()))
}

async fn reserve_request<S: Store + 'static>(face: &Face<S>, request: &Described<'_>, making: &Making<'_>) -> Answered {
    let Making { id, open_for, mac, manner } = *making;
    let draft = |gate: &tidegate::GateAnswer<'_>| Rendered::by_policies(gate).draft(manner);
    let reserved = face.desk.in_force.reserve(request, (id, open_for), draft).await;
    let (draft, reserved) = reserved.map_err(Refusal::store)?;
    let charges = reserved.as_ref().map(|reserved| reserved.charges().collect::<Vec<_>>());
    let charges = charges.as_ref().map(|charges| charges.iter().map(|(charge, is_made)| (charge, *is_made)));
    let token = charges.map(|charges| token::write(mac, id, charges));
    Ok(draft.response(token.as_deref()))
}

/// Answers a call that settles.
pub(super) async fn settle<S, B>(face: &Face<S>, parts: &Parts, body: B) -> Answered
where
    S: Store + 'static,
    B: Body<Data = Bytes>,
{
    query::read(parts.uri.query(), &[], &[])?;
    let bytes = body::json(parts, body).await?;
    let text = body::text(&bytes)?;
    let (token, cost) = settling(text).map_err(|fault| Refusal::body(text, &fault))?;
    let reservation = face.mac.as_ref().and_then(|mac| token::read(mac, &token));
    let Some(reservation) = reservation else {
        let detail = "this is no reservation that was made here; servers that share a store settle each other's if they have \
                      one TIDEGATE_HTTP_TOKEN";
        return Err(Refusal::new(StatusCode::NOT_FOUND, detail));
    };
    let (charges, actual) = reservation.settlement(cost);
    let done = face.desk.store.settle(reservation.id, &charges, &actual).await;
    done.map(|done| settled(done == Settled::Settled)).map_err(Refusal::store)
}

/// The token of a reservation, and what it truly cost.
pub(super) fn settling(text: &str) -> Result<(String, Cost), Fault> {
    json::read(text, |reader| {
        let (at, mut reservation, mut cost) = (reader.at(), None, None);
        reader.object("a settlement", &["reservation", "cost"], |reader, field| {
            match field {
                "reservation" => reservation = Some(reader.text("the text that reserving gave")?.into_owned()),
                _ => cost = Some(Cost::new(reader.whole_number("a whole number of tokens")?)),
            }
            Ok(())
        })?;
        let reservation =
            reservation.ok_or_else(|| Fault::new(at, "which one? `reservation` is what reserving gave"))?;
        let cost = cost.ok_or_else(|| Fault::new(at, "a settlement needs a `cost`: what it truly was, in tokens"))?;
        Ok((reservation, cost))
    })
}
