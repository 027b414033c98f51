//! A call as JSON, and its answer: protocol buffers' own mapping (proto3 JSON), as the reference service takes it at
//! `POST /json`.
//!
//! Names are read in both of their forms, numbers also as texts, units by name or by number; null is as good as nothing.
//! A field that is not known is refused, with its name.

use serde_json::{Map, Value, json};
use tidegate_policy::descriptor_rules::CallUnit;

use super::messages::{
    Code, DescriptorEntry, DescriptorStatus, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
    RateLimitResponse,
};

/// What is wrong with a call, in words.
type Wrong = String;

/// Reads a call.
///
/// # Errors
/// It is no JSON, or not that of a call.
pub(crate) fn request(bytes: &[u8]) -> Result<RateLimitRequest, Wrong> {
    let value = serde_json::from_slice(bytes).map_err(|error| format!("this is no JSON: {error}"))?;
    let mut request = RateLimitRequest::default();
    for (name, value) in object(value, "a call")? {
        match name.as_str() {
            "domain" => request.domain = text(value, "domain")?,
            "descriptors" => request.descriptors = each(value, "descriptors", descriptor)?,
            "hitsAddend" | "hits_addend" => request.hits_addend = number_32(&value, "hitsAddend")?,
            _ => return Err(unknown("a call", &name, "domain, descriptors, hitsAddend")),
        }
    }
    Ok(request)
}

fn descriptor(value: Value) -> Result<RateLimitDescriptor, Wrong> {
    let mut descriptor = RateLimitDescriptor::default();
    for (name, value) in object(value, "a descriptor")? {
        match name.as_str() {
            "entries" => descriptor.entries = each(value, "entries", entry)?,
            "limit" => descriptor.limit = said(value).map(limit).transpose()?,
            "hitsAddend" | "hits_addend" => {
                descriptor.hits_addend = said(value).map(|value| number(&value, "hitsAddend")).transpose()?;
            }
            "isNegativeHits" | "is_negative_hits" => descriptor.is_negative_hits = truth(&value, "isNegativeHits")?,
            _ => return Err(unknown("a descriptor", &name, "entries, limit, hitsAddend, isNegativeHits")),
        }
    }
    Ok(descriptor)
}

fn entry(value: Value) -> Result<DescriptorEntry, Wrong> {
    let mut entry = DescriptorEntry::default();
    for (name, value) in object(value, "an entry")? {
        match name.as_str() {
            "key" => entry.key = text(value, "key")?,
            "value" => entry.value = text(value, "value")?,
            _ => return Err(unknown("an entry", &name, "key, value")),
        }
    }
    Ok(entry)
}

fn limit(value: Value) -> Result<RateLimitOverride, Wrong> {
    let mut limit = RateLimitOverride::default();
    for (name, value) in object(value, "a limit")? {
        match name.as_str() {
            "requestsPerUnit" | "requests_per_unit" => {
                limit.requests_per_unit = number_32(&value, "requestsPerUnit")?;
            }
            "unit" => limit.unit = unit(&value)?,
            _ => return Err(unknown("a limit", &name, "requestsPerUnit, unit")),
        }
    }
    Ok(limit)
}

fn unit(value: &Value) -> Result<i32, Wrong> {
    let named = |name: &str| CallUnit::ALL.into_iter().find(|unit| unit.name().to_ascii_uppercase() == name);
    let by_name = value.as_str().and_then(named).map(CallUnit::number);
    let by_number = || value.as_i64().and_then(|number| i32::try_from(number).ok());
    by_name.or_else(by_number).ok_or_else(|| "unit: expected SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR".to_owned())
}

fn object(value: Value, what: &str) -> Result<Map<String, Value>, Wrong> {
    match value {
        Value::Object(entries) => Ok(entries),
        _ => Err(format!("{what} is an object: {{...}}")),
    }
}

fn each<T>(value: Value, name: &str, read: impl Fn(Value) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
    match value {
        Value::Array(values) => values.into_iter().map(read).collect(),
        Value::Null => Ok(Vec::new()),
        _ => Err(format!("{name}: expected a list")),
    }
}

fn text(value: Value, name: &str) -> Result<String, Wrong> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(String::new()),
        _ => Err(format!("{name}: expected a text")),
    }
}

/// Unless it is null.
fn said(value: Value) -> Option<Value> {
    Some(value).filter(|value| !value.is_null())
}

fn truth(value: &Value, name: &str) -> Result<bool, Wrong> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Null => Ok(false),
        _ => Err(format!("{name}: expected true or false")),
    }
}

fn number(value: &Value, name: &str) -> Result<u64, Wrong> {
    let number = match value {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().or_else(|| whole(value.as_f64()?)),
    };
    number.ok_or_else(|| format!("{name}: expected a whole number that is not negative"))
}

/// A number that is written with a fraction of zero.
fn whole(number: f64) -> Option<u64> {
    const EXACT_MAX: f64 = (1u64 << 53) as f64;
    ((0.0..=EXACT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

fn number_32(value: &Value, name: &str) -> Result<u32, Wrong> {
    u32::try_from(number(value, name)?).map_err(|_| format!("{name}: expected at most {}", u32::MAX))
}

fn unknown(what: &str, name: &str, known: &str) -> Wrong {
    format!("{what} has no field {name:?}; it has {known}")
}

/// An answer. What has its default is left out, as everywhere in this mapping.
pub(crate) fn response(response: &RateLimitResponse) -> Value {
    let mut answer = Map::new();
    answer.insert("overallCode".to_owned(), code(response.overall_code));
    answer.insert("statuses".to_owned(), response.statuses.iter().map(status).collect());
    if !response.response_headers_to_add.is_empty() {
        let fields = response.response_headers_to_add.iter();
        let fields = fields.map(|field| json!({"key": field.key, "value": field.value})).collect();
        answer.insert("responseHeadersToAdd".to_owned(), fields);
    }
    answer.into()
}

fn status(status: &DescriptorStatus) -> Value {
    let mut answer = Map::new();
    answer.insert("code".to_owned(), code(status.code));
    if let Some(limit) = &status.current_limit {
        let mut shown = Map::new();
        if limit.requests_per_unit != 0 {
            shown.insert("requestsPerUnit".to_owned(), limit.requests_per_unit.into());
        }
        if let Some(unit) = CallUnit::from_number(limit.unit) {
            shown.insert("unit".to_owned(), unit.name().to_ascii_uppercase().into());
        }
        if !limit.name.is_empty() {
            shown.insert("name".to_owned(), limit.name.clone().into());
        }
        answer.insert("currentLimit".to_owned(), shown.into());
    }
    if status.limit_remaining != 0 {
        answer.insert("limitRemaining".to_owned(), status.limit_remaining.into());
    }
    if let Some(span) = status.duration_until_reset {
        answer.insert("durationUntilReset".to_owned(), format!("{}s", span.seconds).into());
    }
    answer.into()
}

fn code(number: i32) -> Value {
    let name = match Code::try_from(number) {
        Ok(Code::Ok) => "OK",
        Ok(Code::OverLimit) => "OVER_LIMIT",
        Ok(Code::Unknown) | Err(_) => "UNKNOWN",
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::messages::CurrentLimit;
    use super::*;

    #[test]
    fn a_call_is_read_in_either_form_of_its_names() {
        let text = r#"{"domain":"d","hitsAddend":2,"descriptors":[
            {"entries":[{"key":"a","value":"b"}],"hits_addend":"7","is_negative_hits":true},
            {"entries":[{"key":"c"}],"limit":{"requestsPerUnit":5,"unit":"MINUTE"},"hitsAddend":null}]}"#;
        let call = request(text.as_bytes()).unwrap();
        assert_eq!((call.domain.as_str(), call.hits_addend), ("d", 2));
        assert_eq!(request(br#"{"hitsAddend":2.0}"#).unwrap().hits_addend, 2);
        assert_eq!(request(br#"{"domain":null,"hitsAddend":null}"#), Ok(RateLimitRequest::default()));
        let [first, second] = &call.descriptors[..] else { panic!() };
        assert_eq!((first.hits_addend, first.is_negative_hits, first.entries[0].value.as_str()), (Some(7), true, "b"));
        assert_eq!(second.limit, Some(RateLimitOverride { requests_per_unit: 5, unit: 2 }));
        assert_eq!((second.hits_addend, second.entries[0].value.as_str()), (None, ""));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let wrong = |text: &str| request(text.as_bytes()).unwrap_err();
        assert_eq!(
            wrong(r#"{"domian":"d"}"#),
            r#"a call has no field "domian"; it has domain, descriptors, hitsAddend"#
        );
        assert_eq!(
            wrong(r#"{"descriptors":[{"entries":[{"k":"d"}]}]}"#),
            r#"an entry has no field "k"; it has key, value"#
        );
        assert!(wrong(r#"{"hitsAddend":1.5}"#).starts_with("hitsAddend: expected a whole number"));
        assert!(wrong(r#"{"descriptors":[{"limits":null}]}"#).starts_with("a descriptor has no field"));
        assert!(wrong(r#"{"hitsAddend":-1}"#).starts_with("hitsAddend: expected a whole number"));
        assert!(wrong(r#"{"hitsAddend":4294967296}"#).starts_with("hitsAddend: expected at most"));
        assert!(wrong(r#"{"descriptors":[{"limit":{"unit":"m"}}]}"#).starts_with("unit: expected SECOND"));
        assert!(wrong("[]").starts_with("a call is an object") && wrong("{").starts_with("this is no JSON"));
    }

    #[test]
    fn an_answer_leaves_defaults_out() {
        let limit = CurrentLimit { requests_per_unit: 5, unit: 7, name: "n".to_owned() };
        let statuses = vec![
            DescriptorStatus {
                code: 2,
                current_limit: Some(limit),
                limit_remaining: 0,
                duration_until_reset: Some(prost_types::Duration { seconds: 9, nanos: 0 }),
            },
            DescriptorStatus { code: 1, limit_remaining: u32::MAX, ..DescriptorStatus::default() },
        ];
        let answer = response(&RateLimitResponse { overall_code: 2, statuses, response_headers_to_add: Vec::new() });
        let expected = json!({"overallCode": "OVER_LIMIT", "statuses": [
            {"code": "OVER_LIMIT", "durationUntilReset": "9s",
             "currentLimit": {"requestsPerUnit": 5, "unit": "WEEK", "name": "n"}},
            {"code": "OK", "limitRemaining": u32::MAX}]});
        assert_eq!(answer, expected);
    }
}
