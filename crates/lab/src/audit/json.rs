//! What was found, for machines.

use serde_json::{Map, Value, json};

use super::expectation::{Check, Checks};
use super::finding::{Finding, Limiter, Report};

impl Report {
    /// One object. Spans are in seconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = match &self.finding {
            Finding::NoLimit => json!({ "found": "no limit" }),
            Finding::NoReturn { burst, waited } => {
                json!({ "found": "no return", "burst": burst, "waited": waited.as_secs_f64() })
            }
            Finding::Found(limiter) => limiter.to_json(),
        };
        object["target"] = json!(self.target.to_string());
        object["summary"] = json!(self.headline());
        object["most_seen"] = json!(self.worst.map(|(most, _)| most));
        object["fastest_per_second"] = json!(self.fastest);
        object["denied_status"] = json!(self.denied_status);
        object["retry_after"] = match self.promises {
            Some(promises) => json!({
                "tried": promises.tried,
                "kept": promises.kept,
                "longest_needless": self.needless.map(|needless| needless.as_secs_f64()),
            }),
            None => Value::Null,
        };
        object["fields"] = json!({ "passed": named(&self.passed_fields), "denied": named(&self.denied_fields) });
        object["forgeable_by"] = json!(self.believed);
        object["key_field_chooses_key"] = json!(self.key_chooses);
        object["calls"] = json!(self.calls);
        object["answered"] = json!(self.answered);
        object["failed"] = json!(self.failed);
        object["took"] = json!(self.took.as_secs_f64());
        object["ended_early"] = json!(self.ended_early);
        object
    }
}

impl Limiter {
    fn to_json(&self) -> Value {
        json!({
            "found": self.kind.name(),
            "burst": self.burst,
            "period": self.period.as_secs_f64(),
            "rate_per_second": self.rate(),
            "uncertainty": self.uncertainty,
            "holds_back": self.holds_back,
            "denied_calls_count": self.counts_denied,
            "windows_begin_by_the_clock": self.has_clock_edges,
            "explained": self.explained,
            "explained_as_well_by": self.like.map(|kind| kind.name()),
        })
    }
}

impl Checks {
    /// An array of objects.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let check = |check: &Check| json!({ "what": check.what, "expected": check.expected, "found": check.found, "holds": check.holds });
        self.0.iter().map(check).collect()
    }
}

fn named(fields: &[(String, String)]) -> Value {
    fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
}
