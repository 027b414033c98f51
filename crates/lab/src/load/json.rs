//! What came of a run, for machines.

use serde_json::{Map, Value, json};

use super::tally::{Latencies, Report};

impl Report {
    /// One object. Spans are in seconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counted = |pairs: Vec<(String, u64)>| {
            Value::from(pairs.into_iter().map(|(name, count)| (name, json!(count))).collect::<Map<_, _>>())
        };
        json!({
            "target": self.target.to_string(),
            "patterns": self.patterns,
            "clients": self.clients,
            "took": self.took.as_secs_f64(),
            "requests": self.requests(),
            "rate_per_second": self.rate(),
            "passed": self.passed,
            "denied": self.denied,
            "failed": self.failed,
            "worst_second": self.worst[0],
            "worst_minute": self.worst[1],
            "statuses": counted(self.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect()),
            "errors": counted(self.errors.iter().map(|(error, count)| (error.clone(), *count)).collect()),
            "late": { "requests": self.late.0, "longest": self.late.1.as_secs_f64() },
            "bytes": self.bytes,
            "latency": self.latencies.to_json(),
            "denied_latency": self.denied_latencies.to_json(),
            "interrupted": self.is_interrupted,
        })
    }
}

impl Latencies {
    fn to_json(&self) -> Value {
        if self.count() == 0 {
            return Value::Null;
        }
        let at = |part| self.quantile(part).as_secs_f64();
        json!({
            "p50": at(0.5), "p75": at(0.75), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99), "p999": at(0.999),
            "longest": self.longest().as_secs_f64(), "mean": self.mean().as_secs_f64(),
        })
    }
}
