//! The report as a terminal shows it.

use std::fmt::{Display, Write as _};

use crate::replay::{Count, Outcome, Report, Share, Timeline};
use crate::words::counted;

/// The width of the names in front of lines.
const NAME_WIDTH: usize = 10;
/// The width of bars, in characters.
const BAR_WIDTH: usize = 40;
/// The most steps of time that are shown.
const STEPS_SHOWN: usize = 60;
/// The longest path that is shown whole, in characters.
const PATH_SHOWN: usize = 60;

/// The report, in plain text of at most 100 columns but for names of files.
#[must_use]
pub fn to_text(report: &Report) -> String {
    let mut out = Out(String::new());
    out.head(report);
    out.outcome(report);
    out.limits(&report.outcome);
    if report.comparison.is_some() {
        out.comparison(report);
    }
    out.clients(report);
    out.statuses(&report.outcome);
    out.paths(report);
    out.left(report);
    out.timeline(&report.timeline);
    out.0
}

struct Out(String);

impl Out {
    fn line(&mut self, text: &dyn Display) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "{text}");
    }

    fn entry(&mut self, name: &str, what: &dyn Display) {
        self.line(&format_args!("{name:<NAME_WIDTH$} {what}"));
    }

    fn head(&mut self, report: &Report) {
        for (log, format) in &report.logs {
            self.entry("log", &format_args!("{log}, format {format}"));
        }
        let readable = report.lines - report.blank;
        let used = report.requests + report.excluded;
        self.entry("read", &format_args!("{} of {} lines, {}", Count(used), Count(readable), Share(used, readable)));
        if report.unparsed > 0 {
            self.entry("unread", &format_args!("{}, such as", counted(report.unparsed, "line", "lines")));
            for example in &report.examples {
                self.entry("", &format_args!("  {}:{}: {}", example.log, example.line, example.what));
            }
            self.entry("", &"  (--format names another format, or writes one down)");
        }
        report.broken.iter().for_each(|broken| self.entry("broken", broken));
        report.blind_spots.iter().for_each(|spot| self.entry("unseen", spot));
        if report.late > 0 {
            let late = counted(report.late, "line", "lines");
            self.entry("late", &format_args!("{late} came later than the bound, taken at the stream's time"));
        }
        if report.has_whole_stamps {
            self.entry("time", &"whole seconds; the requests of one second are spread over it evenly, in their order");
        }
        if let Some(place) = &report.assumed_place {
            self.entry("zone", &format_args!("times that name no zone are taken as {place} (--tz names another)"));
        }
        if report.excluded > 0 {
            let excluded = counted(report.excluded, "request", "requests");
            self.entry("left out", &format_args!("{excluded}, as was asked for"));
        }
        if let Some((first, last)) = report.span {
            self.entry("span", &format_args!("{first} to {last} UTC"));
        }
    }

    fn outcome(&mut self, report: &Report) {
        let Outcome { admitted, denied, denied_clients, .. } = report.outcome;
        let (requests, clients) = (report.requests, report.clients);
        self.line(&"");
        let from = counted(clients, "client", "clients");
        self.entry("requests", &format_args!("{} from {from}", Count(requests)));
        self.entry("admitted", &format_args!("{}, {}", Count(admitted), Share(admitted, requests)));
        let of = counted(denied_clients, "client", "clients");
        self.entry(
            "denied",
            &format_args!(
                "{}, {}, of {of}, {}",
                Count(denied),
                Share(denied, requests),
                Share(denied_clients, clients)
            ),
        );
    }

    fn limits(&mut self, outcome: &Outcome) {
        self.line(&"\nby limit                                     asked       denied");
        for limit in &outcome.limits {
            let name = format!("{}/{} {}", limit.policy, limit.limit, limit.text);
            let shadow = if limit.is_shadow { "  (in shadow: counted only)" } else { "" };
            self.line(&format_args!("  {name:<36} {:>11}  {:>11}{shadow}", Count(limit.asked), Count(limit.denied)));
        }
    }

    fn comparison(&mut self, report: &Report) {
        let Some(comparison) = &report.comparison else { return };
        let there = &comparison.outcome;
        self.line(&"\nunder the other configuration");
        self.entry(
            "  denied",
            &format_args!(
                "{}, {}, of {}",
                Count(there.denied),
                Share(there.denied, report.requests),
                counted(there.denied_clients, "client", "clients")
            ),
        );
        let (worse, better) = (comparison.newly_denied_clients, comparison.newly_admitted_clients);
        self.entry(
            "  newly",
            &format_args!("denied {} requests, and {} clients", Count(comparison.newly_denied), Count(worse)),
        );
        self.entry(
            "",
            &format_args!("admitted {} requests, and {} clients", Count(comparison.newly_admitted), Count(better)),
        );
        self.limits(there);
    }

    fn clients(&mut self, report: &Report) {
        let there = if report.comparison.is_some() { "   there" } else { "" };
        self.line(&format_args!(
            "\nclients hit most                           requests   denied{there}  busiest minute (UTC)"
        ));
        for client in &report.top_clients {
            let there = client.denied_there.map(|denied| format!("{:>8}", Count(denied))).unwrap_or_default();
            self.line(&format_args!(
                "  {:<40} {:>8} {:>8}{there}  {:.16}, {}",
                client.client,
                Count(client.requests),
                Count(client.denied),
                client.busiest.to_string(),
                Count(client.in_busiest)
            ));
        }
    }

    fn statuses(&mut self, outcome: &Outcome) {
        self.line(&"\nby status                                  requests   denied");
        for (class, by) in outcome.by_status.iter().enumerate().filter(|(_, by)| by.requests > 0) {
            let name = if class == 0 { "none".to_owned() } else { format!("{class}xx") };
            self.line(&format_args!("  {name:<40} {:>8} {:>8}", Count(by.requests), Count(by.denied)));
        }
    }

    fn paths(&mut self, report: &Report) {
        let partial = if report.is_paths_partial { "  (counts of rare ones can be low)" } else { "" };
        self.line(&format_args!("\n  requests   denied  path{partial}"));
        for path in &report.top_paths {
            let shown: String = path.path.chars().take(PATH_SHOWN).map(printable).collect();
            let more = if path.path.chars().count() > PATH_SHOWN { "..." } else { "" };
            self.line(&format_args!("  {:>8} {:>8}  {shown}{more}", Count(path.requests), Count(path.denied)));
        }
    }

    fn left(&mut self, report: &Report) {
        let left = &report.left;
        let most = left.by_power.iter().copied().chain([left.denied]).max().unwrap_or(0);
        if most == 0 {
            return;
        }
        self.line(&"\nhow near they came: the least that was left to a client, and how many clients");
        self.bar("denied", left.denied, most);
        for (power, clients) in left.by_power.iter().enumerate() {
            let name = match power {
                0 => "0 left".to_owned(),
                1 => "1".to_owned(),
                _ => format!("{} to {}", 1_u64 << (power - 1), (1_u64 << power) - 1),
            };
            self.bar(&name, *clients, most);
        }
    }

    fn bar(&mut self, name: &str, count: u64, most: u64) {
        let eighths = scaled(count, most, BAR_WIDTH * 8);
        let bar: String = "█".repeat(eighths / 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        self.line(&format_args!("  {name:<16} {:>8}  {bar}", Count(count)));
    }

    fn timeline(&mut self, timeline: &Timeline) {
        let steps = timeline.steps();
        if steps.len() < 2 {
            return;
        }
        let together = steps.len().div_ceil(STEPS_SHOWN);
        let sum = |of: fn(&crate::replay::Step) -> u64| -> Vec<u64> {
            steps.chunks(together).map(|chunk| chunk.iter().map(of).sum()).collect()
        };
        let width_s = timeline.width_s() * together as u64;
        let start = crate::log::Utc { unix_s: i64::try_from(timeline.start_s()).unwrap_or(i64::MAX) };
        self.line(&format_args!("\nover time, from {start} UTC, {} each", span(width_s)));
        for (name, counts) in [("requests", sum(|step| step.requests)), ("denied", sum(|step| step.denied))] {
            let most = counts.iter().copied().max().unwrap_or(0);
            let blocks = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
            let row: String = counts.iter().map(|count| blocks[scaled(*count, most, 8)]).collect();
            self.line(&format_args!("  {name:<9} {row}  at most {}", Count(most)));
        }
    }
}

/// `count` of `most` in steps of a picture; what is not nothing shows.
fn scaled(count: u64, most: u64, steps: usize) -> usize {
    if count == 0 || most == 0 {
        return 0;
    }
    // At most `steps`, since the count is at most the most.
    ((u128::from(count) * steps as u128 / u128::from(most)) as usize).max(1)
}

/// A span in the largest unit that it is a multiple of.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        s if s % 86_400 == 0 => format!("{} d", s / 86_400),
        s if s % 3_600 == 0 => format!("{} h", s / 3_600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

/// What a terminal may be given.
fn printable(character: char) -> char {
    if character.is_control() { '\u{fffd}' } else { character }
}
