//! What came of a run, for people.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::tally::{Latencies, Report, Snapshot};
use crate::words::{Span, counted, grouped};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
/// The width of the names in front of numbers.
const NAME_WIDTH: usize = 10;
/// The bars of the histogram, and the width of the longest.
const BARS: u64 = 10;
const BAR_WIDTH: u64 = 40;
/// The percentiles that are told.
const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

impl Report {
    /// The report, styled; strip the styles where they do not belong.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{BOLD}{} in {} to {}{BOLD:#}\n",
            counted(self.requests(), "request", "requests"),
            Span(rounded(self.took)),
            self.target
        );
        for (name, what) in self.entries() {
            let _ = writeln!(text, "  {name:<NAME_WIDTH$} {what}");
        }
        latencies(&mut text, "latency, from the planned instant", &self.latencies);
        if self.denied > 0 && self.denied < self.latencies.count() {
            latencies(&mut text, "the same, of denials", &self.denied_latencies);
        }
        bars(&mut text, &self.latencies);
        text
    }

    fn entries(&self) -> Vec<(&'static str, String)> {
        let share = |count: u64| match self.requests() {
            0 => String::new(),
            all => format!(" ({:.1} %)", 100.0 * count as f64 / all as f64),
        };
        let clients = counted(u64::from(self.clients), "client", "clients");
        let [second, minute] = self.worst.map(grouped);
        let mut entries = vec![
            ("pattern", format!("{}, {clients}", self.patterns.join(" and "))),
            ("rate", format!("{:.1} requests a second", self.rate())),
            ("passed", format!("{}{}", grouped(self.passed), share(self.passed))),
            ("denied", format!("{}{}", grouped(self.denied), share(self.denied))),
        ];
        if self.failed > 0 {
            entries.push(("failed", format!("{BAD}{}{BAD:#}{}", grouped(self.failed), share(self.failed))));
        }
        entries.push(("most", format!("{second} passed in a second, {minute} in a minute")));
        let statuses: Vec<_> =
            self.statuses.iter().map(|(status, count)| format!("{status}: {}", grouped(*count))).collect();
        if !statuses.is_empty() {
            entries.push(("statuses", statuses.join(", ")));
        }
        entries
            .extend(self.errors.iter().map(|(error, count)| ("error", format!("{} times: {error}", grouped(*count)))));
        if self.late.0 > 0 {
            let (count, longest) = self.late;
            let count = counted(count, "request was", "requests were");
            entries.push((
                "late",
                format!(
                    "{count} sent up to {} late: the service, or this machine, could not keep up",
                    Span(rounded(longest))
                ),
            ));
        }
        if self.is_interrupted {
            entries.push(("ended", "early, by a signal".to_owned()));
        }
        entries
    }
}

impl Snapshot {
    /// In one line.
    #[must_use]
    pub fn to_line(&self) -> String {
        let [passed, denied, failed] = self.counts.map(grouped);
        format!(
            "{} of {}: {passed} passed, {denied} denied, {failed} failed, {} on their way",
            Span(Duration::from_secs(self.elapsed.as_secs())),
            Span(rounded(self.length)),
            self.on_their_way
        )
    }
}

fn latencies(text: &mut String, title: &str, latencies: &Latencies) {
    if latencies.count() == 0 {
        return;
    }
    let _ = writeln!(text, "\n{BOLD}{title}{BOLD:#}");
    let mut told: Vec<_> = PERCENTILES.iter().map(|(name, part)| (*name, latencies.quantile(*part))).collect();
    told.extend([("longest", latencies.longest()), ("mean", latencies.mean())]);
    for (name, latency) in told {
        let _ = writeln!(text, "  {name:<NAME_WIDTH$} {:>9}", milliseconds(latency));
    }
}

fn bars(text: &mut String, latencies: &Latencies) {
    let bars = latencies.bars(BARS);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    if bars.len() > 1 {
        text.push('\n');
    }
    for (to, count) in bars.into_iter().filter(|_| latencies.count() > 1) {
        let bar = "■".repeat(usize::try_from((count * BAR_WIDTH).div_ceil(most)).unwrap_or(0));
        let _ = writeln!(text, "  {:>9} {DIM}|{DIM:#} {bar} {}", milliseconds(to), grouped(count));
    }
}

fn milliseconds(latency: Duration) -> String {
    format!("{:.2} ms", latency.as_secs_f64() * 1_000.0)
}

/// To a hundredth of a second.
fn rounded(span: Duration) -> Duration {
    Duration::from_millis((span.as_secs_f64() * 100.0).round() as u64 * 10)
}
