//! What callers are told, in limitador's shape.

use std::fmt::Write as _;

use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tidegate::whole_seconds_up;
use tidegate_core::Decision;
use tidegate_policy::limitador::{Charged, Limit, Limits};

use crate::ProxyBody;
use crate::api::refusal::Refusal;
use crate::api::rendered;
use crate::operating::admin::decoded;

/// The answer to who asks whether something may pass.
pub(super) fn answer(
    limits: &Limits,
    charged: &Charged<'_>,
    decisions: &[Decision],
    wants_fields: bool,
    is_denied: bool,
) -> Response<ProxyBody> {
    let limits = charged.places.iter().filter_map(|place| limits.as_slice().get(*place));
    let mut told: Vec<_> = limits.zip(decisions).collect();
    // The least left comes first, as in limitador.
    told.sort_by_key(|(_, decision)| decision.remaining());
    let mut response = match is_denied {
        true => Refusal::new(StatusCode::TOO_MANY_REQUESTS, denial(&told)).response(),
        false => rendered::json("null\n".to_owned()),
    };
    let headers = response.headers_mut();
    if is_denied {
        let waits = decisions.iter().filter(|decision| !decision.is_allowed()).map(Decision::retry_after);
        if let Some(Some(wait)) = waits.max_by_key(|wait| wait.map_or(u128::MAX, |wait| wait.as_nanos())) {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds_up(wait).max(1)));
        }
    }
    if wants_fields {
        fields(&told).into_iter().for_each(|(name, value)| drop(headers.insert(name, value)));
    }
    response
}

/// Which limit says no: the first of those that have the least left.
fn denial(told: &[(&Limit, &Decision)]) -> String {
    let (limit, _) = told.first().copied().unzip();
    limit.map_or_else(String::new, |limit| {
        format!(
            "limit {} of namespace {}: {} in {} seconds",
            limit.label, limit.namespace, limit.max_value, limit.seconds
        )
    })
}

fn fields(told: &[(&Limit, &Decision)]) -> Vec<(HeaderName, HeaderValue)> {
    let Some((first, decision)) = told.first() else { return Vec::new() };
    let mut limits = first.max_value.to_string();
    for (limit, _) in told {
        // Writing into a text does not fail.
        let _ = write!(limits, ", {};w={}", limit.max_value, limit.seconds);
        if let Some(name) = &limit.name {
            let _ = write!(limits, ";name=\"{}\"", name.replace('"', "'"));
        }
    }
    let mut fields = Vec::new();
    // Names are printable ASCII, so this is a value.
    if let Ok(limits) = HeaderValue::try_from(limits) {
        fields.push((HeaderName::from_static("x-ratelimit-limit"), limits));
    }
    fields.push((HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(decision.remaining())));
    let reset = decision.retry_after().unwrap_or_else(|| decision.reset_after());
    fields.push((HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(whole_seconds_up(reset))));
    fields
}

/// The limits of a namespace.
pub(super) fn limits(limits: &Limits, name: &str) -> Result<Response<ProxyBody>, Refusal> {
    let name = decoded(name).and_then(|name| String::from_utf8(name).ok());
    let name = name.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the namespace is no text in UTF-8"))?;
    let shown = |limit: &Limit| {
        json!({
            "id": limit.id,
            "namespace": limit.namespace,
            "max_value": limit.max_value,
            "seconds": limit.seconds,
            "name": limit.name,
            "conditions": limit.conditions().collect::<Vec<_>>(),
            "variables": limit.variables().collect::<Vec<_>>(),
        })
    };
    let all: Value = limits.of(&name).iter().map(shown).collect();
    Ok(rendered::json(format!("{all}\n")))
}
