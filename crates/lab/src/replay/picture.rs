//! The report as a plot: what came and what was denied, over the log's own time.

use crate::plot::{Panel, Plot};
use crate::replay::timeline::Step;
use crate::replay::{Count, Outcome, Report, span};

/// The most bins of time.
const BINS_MAX: usize = 240;

/// The report as a plot; below it, if there is one, that of the other configuration.
#[must_use]
pub fn to_plot(report: &Report) -> Plot {
    let (timeline, requests) = (&report.timeline, report.requests);
    let logs: Vec<&str> = report.logs.iter().map(|(log, _)| log.as_str()).collect();
    let logs = match logs[..] {
        [log] => log.to_owned(),
        _ => format!("{} logs", logs.len()),
    };
    let when = report.span.map(|(first, last)| format!("; {first} to {last} UTC")).unwrap_or_default();
    let together = timeline.steps().len().div_ceil(BINS_MAX).max(1);
    let here = panel(report, &report.outcome, together, |step| step.denied);
    let there = report.comparison.as_ref();
    let there = there.map(|there| panel(report, &there.outcome, together, |step| step.denied_there));
    let bin_s = timeline.width_s() * together as u64;
    Plot {
        title: format!("{logs}: {} requests of {} clients", Count(requests), Count(report.clients)),
        subtitle: format!("what limits would have done to them{when}"),
        area_name: format!("denied in {}", span(bin_s)),
        begins: Some(crate::log::Utc { unix_s: i64::try_from(timeline.start_s()).unwrap_or(i64::MAX) }),
        length_ns: (timeline.steps().len().div_ceil(together) as u64 * bin_s).saturating_mul(1_000_000_000),
        panels: std::iter::once(here).chain(there).collect(),
    }
}

fn panel(report: &Report, outcome: &Outcome, together: usize, denied: impl Fn(&Step) -> u64) -> Panel {
    let limits: Vec<_> = outcome.limits.iter().map(|limit| limit.text.as_str()).collect();
    let sum = |of: &dyn Fn(&Step) -> u64| -> Vec<u64> {
        report.timeline.steps().chunks(together).map(|steps| steps.iter().map(of).sum()).collect()
    };
    let (admitted, refused, clients) = (Count(outcome.admitted), Count(outcome.denied), Count(outcome.denied_clients));
    let of = if outcome.denied_clients == 1 { "client" } else { "clients" };
    Panel {
        title: limits.join(", "),
        note: format!("{admitted} admitted, {refused} denied, of {clients} {of}"),
        area: sum(&denied),
        admitted: sum(&|step| step.requests - denied(step)),
        denied: sum(&denied),
        ..Panel::default()
    }
}
