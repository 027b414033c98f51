//! What was found, for people, for machines, and as a configuration file to start from.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::replay::Count;
use crate::tune::{Answer, Candidate, Touch, period_text, written};

/// The width of bars, in characters.
const BAR_WIDTH: u64 = 24;

/// The answer as a terminal shows it.
#[must_use]
pub fn to_text(answer: &Answer) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    let _ = write_text(&mut out, answer);
    out
}

fn write_text(out: &mut String, answer: &Answer) -> std::fmt::Result {
    let Answer { ask, key, intake, requests, clients, most_touched, periods, .. } = answer;
    writeln!(out, "{} requests of {} keys ({key})", Count(*requests), Count(*clients))?;
    if intake.unparsed > 0 {
        writeln!(out, "{} lines cannot be read; `tidegate replay` shows some", Count(intake.unparsed))?;
    }
    if intake.late > 0 {
        writeln!(out, "{} lines came later than the bound, and were taken as they came", Count(intake.late))?;
    }
    for (rule, keys, requests) in &answer.apart {
        writeln!(out, "set apart: {} {rule} with {} requests ({})", Count(*keys), Count(*requests), rule.meaning())?;
    }
    intake.broken.iter().try_for_each(|broken| writeln!(out, "{broken}"))?;
    let of = ask.of.name();
    writeln!(out, "{} of {of} untouched: at most {} may be touched\n", ask.allow, Count(*most_touched))?;
    writeln!(out, "the smallest limit for each period")?;
    for period in periods {
        let Candidate { quota, touch, apart, smaller, .. } = &period.first;
        let smaller = smaller.map(|(quota, touch)| format!("; {} {}", written(&quota), touches(&touch)));
        writeln!(out, "  {:<14} {}{}", written(quota), touches(touch), smaller.unwrap_or_default())?;
        if !answer.apart.is_empty() {
            let (clients, denied) = (Count(apart.clients), Count(apart.denied));
            writeln!(out, "  {:<14} and {clients} of those set apart, {denied} requests", "")?;
        }
    }
    for period in periods {
        writeln!(out, "\nper {}: each count with the smallest burst that does", period_text(&period.first.quota))?;
        writeln!(out, "  limit                     burst                           clients    denied  hit most")?;
        let most = period.candidates.iter().map(|candidate| candidate.quota.burst()).max().unwrap_or(1);
        for candidate in &period.candidates {
            let burst = candidate.quota.burst();
            let bar = "▇".repeat((burst.saturating_mul(BAR_WIDTH) / most.max(1)).max(1) as usize);
            let hit = candidate.hit.first().map(|(name, _, denied)| format!("{name} ({})", Count(*denied)));
            let Touch { clients, denied } = candidate.touch;
            writeln!(
                out,
                "  {:<22} {:>8} {bar:<24} {:>8}  {:>8}  {}",
                written(&candidate.quota),
                Count(burst),
                Count(clients),
                Count(denied),
                hit.unwrap_or_default()
            )?;
        }
    }
    Ok(())
}

fn touches(touch: &Touch) -> String {
    let clients = if touch.clients == 1 { "client" } else { "clients" };
    format!("touches {} {clients}, {} requests", Count(touch.clients), Count(touch.denied))
}

/// The answer as one JSON object.
#[must_use]
pub fn to_json(answer: &Answer) -> Value {
    let candidate = |candidate: &Candidate| {
        let mut object = json!({
            "limit": written(&candidate.quota),
            "count": candidate.quota.rate().count(),
            "burst": candidate.quota.burst(),
            "touched": candidate.touch.clients,
            "denied": candidate.touch.denied,
            "next_smaller": candidate.smaller.map(|(quota, touch)| json!({
                "limit": written(&quota),
                "touched": touch.clients,
                "denied": touch.denied,
            })),
            "hit": candidate.hit.iter()
                .map(|(name, requests, denied)| json!({ "client": name, "requests": requests, "denied": denied }))
                .collect::<Vec<_>>(),
        });
        if !answer.apart.is_empty() {
            object["touched_apart"] = json!(candidate.apart.clients);
            object["denied_apart"] = json!(candidate.apart.denied);
        }
        object
    };
    let apart = answer.apart.iter().map(|(rule, clients, requests)| {
        json!({ "rule": rule.name(), "meaning": rule.meaning(), "clients": clients, "requests": requests })
    });
    let apart: Vec<_> = apart.collect();
    let periods = answer.periods.iter().map(|period| {
        let mut object = candidate(&period.first);
        object["period"] = json!(period_text(&period.first.quota));
        object["candidates"] = period.candidates.iter().map(candidate).collect();
        object
    });
    json!({
        "requests": answer.requests,
        "clients": answer.clients,
        "lines": answer.intake.lines,
        "unparsed": answer.intake.unparsed,
        "late": answer.intake.late,
        "broken": answer.intake.broken,
        "allow": answer.ask.allow.to_string(),
        "of": answer.ask.of.name(),
        "most_touched": answer.most_touched,
        "set_apart": apart,
        "periods": periods.collect::<Vec<_>>(),
    })
}

/// A configuration file to start from, in TOML: the limits that were found, of which one is in force.
#[must_use]
pub fn to_toml(answer: &Answer) -> String {
    let mut out = format!(
        "# Found by `tidegate tune`: each of these limits alone leaves {} of {} of the log untouched.\n\
         # Two of them together can touch more; `tidegate replay --config` shows it.\n\
         [[policies]]\nname = \"default\"\nkey = \"{}\"\n",
        answer.ask.allow,
        answer.ask.of.name(),
        answer.key_text
    );
    // The period in the middle: short enough to stop a flood, long enough for a page to load.
    let chosen = answer.periods.len() / 2;
    for (place, period) in answer.periods.iter().enumerate() {
        let comment = if place == chosen { "" } else { "# " };
        let _ = writeln!(out, "{comment}limits = \"{}\"", written(&period.first.quota));
    }
    out
}
