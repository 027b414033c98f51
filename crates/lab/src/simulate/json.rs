//! A report for machines.

use serde_json::{Value, json};

use super::{Report, Row};

impl Report {
    /// The report as one JSON object. Spans and instants are in nanoseconds, what a window holds is in tokens.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "patterns": self.patterns,
            "clients": self.clients,
            "seed": self.seed,
            "duration_ns": nanos(self.length),
            "results": self.rows.iter().map(result).collect::<Vec<_>>(),
        })
    }
}

/// One row. What policies have no number for is null.
pub(super) fn result(row: &Row) -> Value {
    json!({
        "algorithm": row.name,
        "limits": row.limits.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "requests": row.arrivals,
        "admitted": row.admitted,
        "denied": row.denied,
        "never": row.never,
        "worst_second": row.worst_second.cost,
        "worst_minute": row.worst_minute.cost,
        "worst_period": row.worst_period.map(|most| most.cost),
        "worst_period_from_ns": row.worst_period.map(|most| most.from.as_nanos()),
        "promised": row.promise.map(|promise| promise.count()),
        "period_ns": row.promise.map(|promise| promise.period_ns()),
        "overshoot": row.overshoot,
        "false_denials": row.false_denials,
        "stopped_at_ns": row.stopped.map(tidegate_core::Time::as_nanos),
        "longest_wait_ns": nanos(row.longest_wait),
        "state_bytes": row.state_bytes,
        "keys": row.keys,
    })
}

fn nanos(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
