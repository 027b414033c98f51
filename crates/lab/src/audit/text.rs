//! What was found, for people.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::auditor::Stop;
use super::expectation::{Check, Checks};
use super::finding::{Finding, Limiter, Report};
use super::model::Kind;
use crate::words::{Span, counted, grouped};

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
/// The width of the names in front of what was found.
const NAME_WIDTH: usize = 16;

impl Report {
    /// The report, styled; strip the styles where they do not belong.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{BOLD}{}{BOLD:#}\n", self.headline());
        for (name, what) in self.entries() {
            let _ = writeln!(text, "  {name:<NAME_WIDTH$} {what}");
        }
        text
    }

    /// What was found, in one sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        match &self.finding {
            Finding::NoLimit => {
                let calls = counted(self.answered as u64, "call", "calls");
                format!("{}: no limit was met in {calls}, at up to {}/s", self.target, rate(self.fastest))
            }
            Finding::NoReturn { burst, .. } => {
                format!("{}: {} passed, and none came back", self.target, counted(u64::from(*burst), "call", "calls"))
            }
            Finding::Found(limiter) => format!("{}: {}", self.target, limiter.in_words()),
        }
    }

    fn entries(&self) -> Vec<(&'static str, String)> {
        let mut entries = Vec::new();
        match &self.finding {
            Finding::NoLimit => {}
            Finding::NoReturn { waited, .. } => {
                entries.push(("waited", format!("{}; give it more --time to find the rate", Span(*waited))));
            }
            Finding::Found(limiter) => self.limiter_entries(limiter, &mut entries),
        }
        entries.extend(self.denied_status.map(|status| ("denied with", status.to_string())));
        entries.push(("Retry-After", self.retry_after()));
        entries.push(("fields", self.fields()));
        if let Some(believed) = &self.believed {
            entries.push(("forged names", forged(believed)));
        }
        entries.extend(self.key_chooses.map(|chooses| ("key", key(chooses).to_owned())));
        entries.push(("asked", self.asked()));
        entries.extend(self.ended_early.as_ref().map(|why| ("ended early", why.clone())));
        entries
    }

    fn limiter_entries(&self, limiter: &Limiter, entries: &mut Vec<(&'static str, String)>) {
        let like = limiter.like.map_or_else(String::new, |kind| format!(" (a {kind} would explain as many)"));
        entries.push(("kind", format!("{}{like}", limiter.kind)));
        entries.push(("burst", grouped(u64::from(limiter.burst))));
        let uncertainty = (limiter.uncertainty * 100.0).max(0.1);
        entries.push(("sustained", format!("{}/s, to {uncertainty:.1} %", rate(limiter.rate()))));
        if let Some((most, period)) = self.worst {
            let verdict = match limiter.kind {
                Kind::FixedWindow if most > u64::from(limiter.burst) + 1 => {
                    format!(" {BAD}its edge lets through more than the limit{BAD:#}")
                }
                Kind::TokenBucket | Kind::FixedWindow | Kind::SlidingLog | Kind::SlidingCounter => String::new(),
            };
            entries.push(("most seen", format!("{} in {}{verdict}", grouped(most), Span(rounded(period)))));
        }
        let denied = match limiter.counts_denied {
            true => format!("{BAD}count too, and prolong the wait{BAD:#}"),
            false => "do not prolong the wait".to_owned(),
        };
        entries.push(("denied calls", denied));
        if !limiter.holds_back {
            entries.push(("explains", format!("{} of {} answers", limiter.explained, self.answered)));
        }
    }

    fn retry_after(&self) -> String {
        let Some(promises) = self.promises else { return "is not sent".to_owned() };
        let needless = self.needless.filter(|needless| needless.as_millis() > 1_000);
        let needless = needless
            .map_or_else(String::new, |most| format!("; {BAD}up to {} longer than needed{BAD:#}", Span(rounded(most))));
        match promises.tried {
            0 => format!("is sent, and was not put to the test{needless}"),
            tried if tried == promises.kept => format!("{GOOD}true{GOOD:#} ({tried} of {tried} kept){needless}"),
            tried => format!("{BAD}false{BAD:#} ({} of {tried} kept){needless}", promises.kept),
        }
    }

    fn fields(&self) -> String {
        let mut names: Vec<_> =
            self.passed_fields.iter().chain(&self.denied_fields).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none that tell of limits".to_owned() } else { names.join(", ") }
    }

    fn asked(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} without a verdict", self.failed) } else { String::new() };
        format!("{} in {}{failed}", counted(u64::from(self.calls), "call", "calls"), Span(rounded(self.took)))
    }
}

impl Limiter {
    /// The limit, in one phrase.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (burst, period) = (u64::from(self.burst), Span(rounded(self.period)));
        match self.kind {
            Kind::TokenBucket if self.holds_back => {
                let queue = burst.saturating_sub(1);
                format!("a leaky bucket: {}/s, and a queue in which {queue} more are held back", rate(self.rate()))
            }
            Kind::TokenBucket => format!("a token bucket: {}/s, burst {}", rate(self.rate()), grouped(burst)),
            Kind::FixedWindow if self.has_clock_edges => {
                format!("a fixed window: {} in each {period} of the clock", grouped(burst))
            }
            Kind::FixedWindow => format!("a fixed window: {} in {period} from the first call on", grouped(burst)),
            Kind::SlidingLog => format!("a sliding log: {} in any {period}", grouped(burst)),
            Kind::SlidingCounter => format!("a sliding counter: about {} in any {period}", grouped(burst)),
        }
    }
}

impl Checks {
    /// A line each, styled; strip the styles where they do not belong.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{BOLD}as expected?{BOLD:#}\n");
        for Check { what, expected, found, holds } in &self.0 {
            let verdict = if *holds { format!("{GOOD}yes{GOOD:#}") } else { format!("{BAD}no{BAD:#}") };
            let _ = writeln!(text, "  {what:<NAME_WIDTH$} {verdict}: expected {expected}, found {found}");
        }
        text
    }
}

/// Why an audit ended early.
pub(super) fn why(stop: &Stop) -> String {
    match stop {
        Stop::Calls => "the budget of calls is spent; a larger --budget tells more".to_owned(),
        Stop::Time => "the time is over; more --time tells more".to_owned(),
        Stop::Broken(why) => format!("the service stopped answering: {why}"),
    }
}

fn forged(believed: &[&str]) -> String {
    match believed {
        [] => format!("{GOOD}are not believed{GOOD:#}"),
        names => format!("{BAD}are believed{BAD:#}: whoever sends another {} is another caller", names.join(", ")),
    }
}

const fn key(chooses: bool) -> &'static str {
    if chooses { "each value of the key's field is a caller of its own" } else { "the key's field makes no difference" }
}

/// Three digits, more or less.
fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 99.5 => grouped(rate.round() as u64),
        rate if rate >= 9.95 => format!("{rate:.1}"),
        rate if rate >= 0.995 => format!("{rate:.2}"),
        rate => format!("{rate:.4}"),
    }
}

/// A measured span, without digits that mean nothing.
fn rounded(span: std::time::Duration) -> std::time::Duration {
    let ms = (span.as_secs_f64() * 1_000.0).round();
    let digits = if ms >= 1_000.0 { 10.0 } else { 1.0 };
    std::time::Duration::from_millis(((ms / digits).round() * digits) as u64)
}
