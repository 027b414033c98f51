//! The report for machines: JSON, and a table of the clients as CSV.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::replay::{LimitTally, Outcome, Report};

/// The report as one JSON object.
#[must_use]
pub fn to_json(report: &Report) -> Value {
    let Report { outcome, .. } = report;
    let mut object = json!({
        "requests": report.requests,
        "clients": report.clients,
        "admitted": outcome.admitted,
        "denied": outcome.denied,
        "denied_clients": outcome.denied_clients,
        "lines": report.lines,
        "blank": report.blank,
        "unparsed": report.unparsed,
        "excluded": report.excluded,
        "late": report.late,
        "has_whole_stamps": report.has_whole_stamps,
        "assumed_zone": report.assumed_place,
        "logs": report.logs.iter().map(|(log, format)| json!({ "log": log, "format": format })).collect::<Vec<_>>(),
        "unparsed_examples": report.examples.iter()
            .map(|example| json!({ "log": example.log, "line": example.line, "what": example.what }))
            .collect::<Vec<_>>(),
        "broken": report.broken,
        "unseen": report.blind_spots,
        "first_unix_s": report.span.map(|(first, _)| first.unix_s),
        "last_unix_s": report.span.map(|(_, last)| last.unix_s),
        "limits": limits(&outcome.limits),
        "by_status": by_status(outcome),
    });
    object["top_clients"] = report
        .top_clients
        .iter()
        .map(|client| {
            let mut line = json!({
                "client": client.client,
                "requests": client.requests,
                "denied": client.denied,
                "busiest_minute_unix_s": client.busiest.unix_s,
                "in_busiest_minute": client.in_busiest,
            });
            if let Some(denied) = client.denied_there {
                line["denied_there"] = json!(denied);
            }
            line
        })
        .collect();
    object["top_paths"] = report
        .top_paths
        .iter()
        .map(|path| json!({ "path": path.path, "requests": path.requests, "denied": path.denied }))
        .collect();
    object["least_left"] = least_left(report);
    object["timeline"] = json!({
        "start_unix_s": report.timeline.start_s(),
        "step_s": report.timeline.width_s(),
        "requests": report.timeline.steps().iter().map(|step| step.requests).collect::<Vec<_>>(),
        "denied": report.timeline.steps().iter().map(|step| step.denied).collect::<Vec<_>>(),
    });
    if let Some(comparison) = &report.comparison {
        object["timeline"]["denied_there"] = report.timeline.steps().iter().map(|step| step.denied_there).collect();
        object["comparison"] = json!({
            "admitted": comparison.outcome.admitted,
            "denied": comparison.outcome.denied,
            "denied_clients": comparison.outcome.denied_clients,
            "newly_denied": comparison.newly_denied,
            "newly_admitted": comparison.newly_admitted,
            "newly_denied_clients": comparison.newly_denied_clients,
            "newly_admitted_clients": comparison.newly_admitted_clients,
            "limits": limits(&comparison.outcome.limits),
            "by_status": by_status(&comparison.outcome),
        });
    }
    object
}

fn limits(limits: &[LimitTally]) -> Value {
    let limit = |limit: &LimitTally| {
        json!({
            "policy": limit.policy,
            "limit": limit.limit,
            "text": limit.text,
            "is_shadow": limit.is_shadow,
            "asked": limit.asked,
            "denied": limit.denied,
        })
    };
    limits.iter().map(limit).collect()
}

fn by_status(outcome: &Outcome) -> Value {
    let classes = outcome.by_status.iter().enumerate().filter(|(_, by)| by.requests > 0);
    let class = |(class, by): (usize, &crate::replay::ByStatus)| {
        let name = if class == 0 { "none".to_owned() } else { format!("{class}xx") };
        (name, json!({ "requests": by.requests, "denied": by.denied }))
    };
    Value::Object(classes.map(class).collect())
}

fn least_left(report: &Report) -> Value {
    let bins = report.left.by_power.iter().enumerate().map(|(power, clients)| {
        let (from, to) = if power == 0 { (0, 0) } else { (1_u64 << (power - 1), (1_u64 << power) - 1) };
        json!({ "from": from, "to": to, "clients": clients })
    });
    json!({ "denied": report.left.denied, "not_denied": bins.collect::<Vec<_>>() })
}

/// The clients of the report as CSV (RFC 4180), with a head.
#[must_use]
pub fn to_csv(report: &Report) -> String {
    let has_there = report.comparison.is_some();
    let there = if has_there { ",denied_there" } else { "" };
    let mut out = format!("client,requests,denied{there},busiest_minute_unix_s,in_busiest_minute\r\n");
    for client in &report.top_clients {
        let name = match client.client.contains([',', '"', '\r', '\n']) {
            true => format!("\"{}\"", client.client.replace('"', "\"\"")),
            false => client.client.clone(),
        };
        let there = client.denied_there.map(|denied| format!(",{denied}")).unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = write!(
            out,
            "{name},{},{}{there},{},{}\r\n",
            client.requests, client.denied, client.busiest.unix_s, client.in_busiest
        );
    }
    out
}
