//! `/v1/keys/NAME?key=KEY`: one bucket of a limit that calls bring.
//!
//! `GET` looks at it, `DELETE` makes it full again. Buckets of policies are an operator's, on the admin face.

use http::request::Parts;
use http::{Response, StatusCode};
use tidegate_core::{Algorithm, Charge, Cost, Decision, Limit, Sharing, Store};

use super::brought::{NO_NAME, identity, is_name, quota};
use super::key::{TEXT_CHARS_MAX, TEXTS_MAX, is_short, of_list, of_text};
use super::refusal::Refusal;
use super::{Face, query, rendered};
use crate::ProxyBody;

type Answered = Result<Response<ProxyBody>, Refusal>;

/// Which bucket.
struct Bucket<'p> {
    name: &'p str,
    key: Vec<u8>,
    algorithm: Algorithm,
    limit: Option<Limit>,
}

impl<'p> Bucket<'p> {
    /// The bucket that a target names, by parameters of which these are `known`.
    fn read(name: &'p str, parts: &Parts, known: &[&'static str]) -> Result<Self, Refusal> {
        if !is_name(name) {
            return Err(Refusal::new(StatusCode::NOT_FOUND, NO_NAME));
        }
        let (mut texts, mut algorithm, mut limit) = (Vec::new(), Algorithm::TokenBucket, None);
        for (parameter, value) in query::read(parts.uri.query(), known, &["key"])? {
            match parameter {
                "limit" => limit = Some(value.parse().map_err(|error| Refusal::parameter(parameter, error))?),
                "algorithm" => algorithm = value.parse().map_err(|error| Refusal::parameter(parameter, error))?,
                _ if !is_short(&value) => {
                    let what = format!("a text of a key has at most {TEXT_CHARS_MAX} characters");
                    return Err(Refusal::parameter(parameter, what));
                }
                _ => texts.push(value),
            }
        }
        let key = match texts.len() {
            0 => return Err(Refusal::parameter("key", "whose bucket? Add `key=KEY`, once for each text of a list")),
            1 => of_text(texts.remove(0).into()).into_owned(),
            2..=TEXTS_MAX => of_list(&texts),
            _ => return Err(Refusal::parameter("key", format_args!("a key has at most {TEXTS_MAX} texts"))),
        };
        Ok(Self { name, key, algorithm, limit })
    }
}

/// How it stands with the bucket, if the limit is this.
pub(super) async fn look<S: Store + 'static>(face: &Face<S>, name: &str, parts: &Parts) -> Answered {
    let Bucket { name, key, algorithm, limit } = Bucket::read(name, parts, &["key", "limit", "algorithm"])?;
    let limit =
        limit.ok_or_else(|| Refusal::parameter("limit", "a bucket is seen by its limit; add `limit=60/min`, say"))?;
    let quota = quota(&limit, algorithm).map_err(|error| {
        Refusal::new(StatusCode::CONFLICT, format!("`limit` and `algorithm` do not go together: {error}"))
    })?;
    let Some(quota) = quota else { return Ok(rendered::bucket(name, None)) };
    let handling = face.handling.with_sharing(Sharing::Exact);
    let charge = Charge::new(identity(name, algorithm), quota, &key).with_cost(Cost::ZERO).with_handling(handling);
    let mut decisions = [Decision::unmade(&quota)];
    let verdict = face.desk.store.decide(&[charge], &mut decisions).await;
    let verdict = verdict.map_err(|error| face.refused(&[charge], &error))?;
    Ok(rendered::bucket(name, Some((&decisions[0], verdict.source))))
}

/// The bucket is full again.
pub(super) async fn reset<S: Store + 'static>(face: &Face<S>, name: &str, parts: &Parts) -> Answered {
    let Bucket { name, key, algorithm, .. } = Bucket::read(name, parts, &["key", "algorithm"])?;
    face.desk.store.reset(identity(name, algorithm), &key).await.map_err(Refusal::store)?;
    let mut done = Response::new(ProxyBody::default());
    *done.status_mut() = StatusCode::NO_CONTENT;
    Ok(done)
}
