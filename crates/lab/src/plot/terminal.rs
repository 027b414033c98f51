//! A plot for a terminal: blocks in eighths, as wide as the terminal is.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::scale::{Tick, ticks};
use super::{Panel, Plot};
use crate::words::grouped;

/// The rows of an area.
const ROWS: u64 = 6;
/// The room for numbers at the left.
const LABELS: usize = 9;
/// Between these the width of the terminal is used.
const COLUMNS_MIN: usize = 40;
const COLUMNS_MAX: usize = 240;
const BINS_PER_COLUMN: usize = 4;
const BLOCKS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WITHIN: Style = AnsiColor::Blue.on_default();
const ABOVE: Style = AnsiColor::Red.on_default();
const LEVEL: Style = AnsiColor::Yellow.on_default();

impl Plot {
    /// The bins of time that suit a terminal of so many columns: as many of them in each column.
    #[must_use]
    pub fn bins_for(columns: usize) -> usize {
        width(columns) * BINS_PER_COLUMN
    }

    /// The plot for a terminal of so many columns, styled with ANSI sequences.
    #[must_use]
    pub fn to_text(&self, columns: usize) -> String {
        let width = width(columns);
        let mut out = String::new();
        for panel in &self.panels {
            let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", panel.title, panel.note);
            self.blocks(&mut out, panel, width);
            if !panel.level.is_empty() {
                row(&mut out, "left", &columns_of(&panel.level, width, Least), self.fullest(), LEVEL);
            }
            row(&mut out, "passed", &columns_of(&panel.admitted, width, Sum), self.busiest_of(width), WITHIN);
            row(&mut out, "denied", &columns_of(&panel.denied, width, Sum), self.busiest_of(width), ABOVE);
        }
        self.times_below(&mut out, width);
        out
    }

    fn blocks(&self, out: &mut String, panel: &Panel, width: usize) {
        let values = columns_of(&panel.area, width, Most);
        let most = self.most();
        let eighths = |value: u64| (u128::from(value) * u128::from(ROWS * 8) / u128::from(most)) as u64;
        let limit_row = panel.limit.map(|limit| eighths(limit).div_ceil(8).max(1) - 1);
        for at in (0..ROWS).rev() {
            let label = match (limit_row == Some(at), at) {
                (true, _) => grouped(panel.limit.unwrap_or(0)),
                (false, at) if at == ROWS - 1 => grouped(most),
                _ => String::new(),
            };
            let is_above = limit_row.is_some_and(|limit| at > limit);
            let style = if is_above { ABOVE } else { WITHIN };
            let cell = |value: &u64| match (eighths(*value).saturating_sub(at * 8).min(8) as usize, is_above) {
                (0, _) if limit_row == Some(at) => '\u{254c}',
                (8, true) => '\u{2593}',
                (filled, _) => BLOCKS[filled],
            };
            labelled(out, &label, values.iter().map(cell).collect(), style);
        }
    }

    /// The most requests in one column.
    fn busiest_of(&self, width: usize) -> u64 {
        let of = |panel: &Panel| {
            columns_of(&panel.admitted, width, Sum).into_iter().chain(columns_of(&panel.denied, width, Sum)).max()
        };
        self.panels.iter().filter_map(of).max().unwrap_or(0).max(1)
    }

    fn times_below(&self, out: &mut String, width: usize) {
        let mut line = String::new();
        for Tick { at_ns, label } in ticks(self.begins, self.length_ns, (width / 12) as u64) {
            let share = u128::from(at_ns) * width as u128 / u128::from(self.length_ns.max(1));
            let at = (share as usize).min(width);
            let used = line.chars().count();
            let from = at.min(width.saturating_sub(label.len()));
            if used <= from {
                let _ = write!(line, "{:1$}{label}", "", from - used);
            }
        }
        let _ = writeln!(out, "{:LABELS$} {DIM}{line}{DIM:#}", "");
    }
}

/// What of a terminal's width is left for the plot.
fn width(columns: usize) -> usize {
    columns.clamp(COLUMNS_MIN, COLUMNS_MAX) - LABELS - 2
}

use Kind::{Least, Most, Sum};

/// What becomes of several bins in one column.
#[derive(Clone, Copy)]
enum Kind {
    Most,
    Least,
    Sum,
}

fn columns_of(bins: &[u64], width: usize, kind: Kind) -> Vec<u64> {
    let column = |i: usize| {
        let (from, to) = (i * bins.len() / width, (i + 1) * bins.len() / width);
        // Where there are fewer bins than columns, some columns show the same bin; a sum only in the first of them.
        let is_first = i == 0 || from != (i - 1) * bins.len() / width || to > from;
        let inside = bins.get(from..to.max(from + 1)).unwrap_or_default().iter();
        match kind {
            Most => inside.max().copied().unwrap_or(0),
            Least => inside.min().copied().unwrap_or(0),
            Sum if is_first => inside.sum(),
            Sum => 0,
        }
    };
    (0..width).map(column).collect()
}

/// A line of blocks, each an eighth as high as it can be for an eighth of the most; what is there at all is seen.
fn row(out: &mut String, name: &str, values: &[u64], most: u64, style: Style) {
    let eighths = |value: u64| (u128::from(value) * 8 / u128::from(most)) as usize;
    let block = |value: &u64| BLOCKS[eighths(*value).clamp(usize::from(*value > 0), 8)];
    labelled(out, name, values.iter().map(block).collect(), style);
}

/// A line with a name before it, and nothing behind its last sign.
fn labelled(out: &mut String, name: &str, line: String, style: Style) {
    let name = if name.is_empty() { String::new() } else { format!("{DIM}{name:>LABELS$}{DIM:#}") };
    match (line.trim_end(), name.is_empty()) {
        ("", _) => out.push_str(&name),
        (line, true) => out.push_str(&format!("{:LABELS$} {style}{line}{style:#}", "")),
        (line, false) => out.push_str(&format!("{name} {style}{line}{style:#}")),
    }
    out.push('\n');
}
