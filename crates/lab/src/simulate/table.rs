//! A report as one screen of text: bars that show the trap, and the numbers below.
//!
//! What is above the limit has another colour and another pattern, so that it shows without colours too.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{Report, Row};
use crate::words::{Clock, Span, counted, grouped, period, period_in_words};

/// The width of the screen.
const SCREEN: usize = 80;
/// The width of the longest bar.
const BAR: u64 = 44;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WITHIN: Style = AnsiColor::Green.on_default();
const ABOVE: Style = AnsiColor::Red.on_default();

impl Report {
    /// The report as text for a terminal of 80 columns, styled with ANSI sequences.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = self.title();
        out.push_str(&bars(&self.rows));
        out.push_str(&table(&self.rows));
        out.push_str(&self.legend());
        out
    }

    fn title(&self) -> String {
        let limits = self.rows.first().map(limits).unwrap_or_default();
        let arrivals = self.rows.first().map_or(0, |row| row.arrivals);
        let is_same = self.rows.iter().all(|row| row.arrivals == arrivals);
        let requests = if is_same { counted(arrivals, "request", "requests") } else { "requests as below".to_owned() };
        let clients = counted(u64::from(self.clients), "client", "clients");
        let patterns = self.patterns.join(" + ");
        let under = if limits.is_empty() { String::new() } else { format!(" under {limits}") };
        let about = self.about.map(|about| format!("{about}\n")).unwrap_or_default();
        format!("{BOLD}{patterns}{under}{BOLD:#}\n{about}{clients}, {requests} in {}\n", Span(self.length))
    }

    fn legend(&self) -> String {
        let mut blocks = Vec::new();
        if let Some(promise) = self.rows.first().and_then(|row| row.promise) {
            let (count, period) = (grouped(promise.count()), period_in_words(promise.period()));
            let over = format!("  {DIM}over   by how much it was above {count} in some {period}");
            blocks.push(format!("{over}\n  false  denials of clients who never asked for more than that{DIM:#}"));
        }
        let remarks: Vec<_> = self.rows.iter().filter_map(remark).collect();
        if !remarks.is_empty() {
            blocks.push(format!("{BOLD}{}{BOLD:#}", remarks.join("\n")));
        }
        blocks.iter().map(|block| format!("\n{block}\n")).collect()
    }
}

/// What has to be said aloud of a row.
fn remark(row: &Row) -> Option<String> {
    let name = &row.name;
    if let Some(stopped) = row.stopped {
        return Some(format!("{name} was stopped after {} requests, at {}.", grouped(row.arrivals), Clock(stopped)));
    }
    let (most, promise) = (row.worst_period?, row.promise.filter(|_| row.is_far_above())?);
    let (cost, period, from) = (grouped(most.cost), period_in_words(promise.period()), Clock(most.from));
    Some(format!("{name} let {cost} pass in the {period} from {from} on."))
}

/// The limits of a row in one line.
pub(super) fn limits(row: &Row) -> String {
    row.limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

fn bars(rows: &[Row]) -> String {
    let Some(promise) = rows.first().and_then(|row| row.promise) else { return String::new() };
    let most = |row: &Row| row.worst_period.map_or(0, |most| most.cost);
    let largest = rows.iter().map(most).max().unwrap_or(0).max(promise.count());
    let name_width = name_width(rows);
    let limit_at = eighths(promise.count(), largest, BAR).div_ceil(8) as usize;
    let mut out = String::from("\n");
    let heading = format!("the most that passed in any {}", period_in_words(promise.period()));
    let sign = format!("limit {} \u{25bc}", grouped(promise.count()));
    // The sign's tip stands above the last cell within the limit.
    let column = 2 + name_width + 2 + limit_at.saturating_sub(1);
    let room = (column + 1).saturating_sub(2 + heading.chars().count() + sign.chars().count());
    match room {
        0..2 => {
            let _ = writeln!(out, "  {heading}");
            let at = (column + 1).saturating_sub(sign.chars().count());
            let _ = writeln!(out, "{:at$}{DIM}{sign}{DIM:#}", "");
        }
        _ => {
            let _ = writeln!(out, "  {heading}{:room$}{DIM}{sign}{DIM:#}", "");
        }
    }
    for row in rows {
        let over = row.overshoot.unwrap_or(0);
        let note = if over > 0 { format!("  {ABOVE}+{}{ABOVE:#}", grouped(over)) } else { String::new() };
        let bar = bar(most(row), promise.count(), largest, BAR);
        let _ = writeln!(out, "  {:<name_width$}  {bar} {:>5}{note}", row.name, grouped(most(row)));
    }
    out.push('\n');
    out
}

/// A bar of this value, full at `largest`; what is above the limit is set apart. It takes `cells` columns.
pub(super) fn bar(value: u64, limit: u64, largest: u64, cells: u64) -> String {
    /// From one eighth to seven.
    const PARTS: [&str; 7] = ["\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
    let (within, all) = (eighths(value.min(limit), largest, cells), eighths(value, largest, cells));
    let is_above = value > limit;
    // Where something is above, the cell that the limit divides counts as within, and at least one is above.
    let full = if is_above { within.div_ceil(8).min(cells - 1) } else { within / 8 };
    let part = if is_above { 0 } else { within % 8 };
    let above = if is_above { all.div_ceil(8).saturating_sub(full).max(1) } else { 0 };
    let rest = cells - full - u64::from(part > 0) - above;
    let (full, above, rest) = (full as usize, above as usize, rest as usize);
    let part = part.checked_sub(1).map_or("", |eighths| PARTS[eighths as usize]);
    let over = if is_above { format!("{ABOVE}{}{ABOVE:#}", "\u{2593}".repeat(above)) } else { String::new() };
    format!("{WITHIN}{}{part}{WITHIN:#}{over}{:rest$}", "\u{2588}".repeat(full), "")
}

/// The length of a bar, in eighths of a cell.
fn eighths(value: u64, largest: u64, cells: u64) -> u64 {
    let eighths = u128::from(value) * u128::from(cells * 8) / u128::from(largest.max(1));
    u64::try_from(eighths).unwrap_or(u64::MAX).min(cells * 8)
}

fn name_width(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max("algorithm".len())
}

/// A column: its heading, and a cell for each row.
struct Column {
    heading: String,
    cells: Vec<String>,
    /// Is it one of the windows?
    is_window: bool,
}

fn table(rows: &[Row]) -> String {
    let name_width = name_width(rows);
    let total = |widths: &[usize], gap: usize| 2 + name_width + widths.iter().map(|width| width + gap).sum::<usize>();
    let (mut columns, mut gap) = (columns(rows, "longest wait", "bytes/key"), 2);
    let mut widths = widths_of(&columns);
    if total(&widths, gap) > SCREEN {
        gap = 1;
    }
    if total(&widths, gap) > SCREEN {
        columns = self::columns(rows, "wait", "bytes");
        widths = widths_of(&columns);
    }
    let mut out = format!("{:name_width$}  ", "");
    // Above the windows, what they are.
    let before = columns.iter().zip(&widths).take_while(|(column, _)| !column.is_window);
    let indent: usize = before.map(|(_, width)| width + gap).sum::<usize>() + gap;
    let _ = writeln!(out, "{DIM}{:indent$}most in any{DIM:#}", "");
    let mut line = |name: &str, cells: &mut dyn Iterator<Item = &String>, style: Style| {
        let _ = write!(out, "  {style}{name:<name_width$}");
        cells.zip(&widths).for_each(|(cell, width)| {
            let _ = write!(out, "{:gap$}{cell:>width$}", "");
        });
        let _ = writeln!(out, "{style:#}");
    };
    line("algorithm", &mut columns.iter().map(|column| &column.heading), DIM);
    for (i, row) in rows.iter().enumerate() {
        line(&row.name, &mut columns.iter().map(|column| &column.cells[i]), Style::new());
    }
    out
}

fn widths_of(columns: &[Column]) -> Vec<usize> {
    let width = |column: &Column| column.cells.iter().chain([&column.heading]).map(|cell| cell.chars().count()).max();
    columns.iter().map(|column| width(column).unwrap_or(0)).collect()
}

/// With these headings for the longest wait and for the bytes that are kept for a key.
fn columns(rows: &[Row], wait: &str, bytes: &str) -> Vec<Column> {
    let column = |heading: &str, cell: &dyn Fn(&Row) -> String| Column {
        heading: heading.to_owned(),
        cells: rows.iter().map(cell).collect(),
        is_window: false,
    };
    let known = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), grouped);
    let mut columns = Vec::new();
    if rows.iter().any(|row| Some(row.arrivals) != rows.first().map(|first| first.arrivals)) {
        columns.push(column("requests", &|row| grouped(row.arrivals)));
    }
    columns.push(column("admitted", &|row| grouped(row.admitted)));
    columns.push(column("denied", &|row| grouped(row.denied)));
    let windows = columns.len();
    columns.push(column("s", &|row| grouped(row.worst_second.cost)));
    columns.push(column("min", &|row| grouped(row.worst_minute.cost)));
    let period = rows.first().and_then(|row| row.promise).map(|promise| period(promise.period()));
    if let Some(period) = period.filter(|period| period != "s" && period != "min") {
        columns.push(column(&period, &|row| known(row.worst_period.map(|most| most.cost))));
    }
    columns[windows..].iter_mut().for_each(|column| column.is_window = true);
    columns.push(column("over", &|row| {
        row.overshoot.map_or("-".to_owned(), |over| match over {
            0 => "0".to_owned(),
            over => format!("+{}", grouped(over)),
        })
    }));
    columns.push(column("false", &|row| known(row.false_denials)));
    columns.push(column(wait, &|row| match row.longest_wait.is_zero() {
        true => "-".to_owned(),
        false => Span(row.longest_wait).to_string(),
    }));
    columns.push(column(bytes, &|row| known(row.state_bytes.map(|bytes| bytes as u64))));
    columns
}
