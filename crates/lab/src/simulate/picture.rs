//! A report as a plot.

use super::table::limits;
use super::{Report, Row};
use crate::plot::{Panel, Plot};
use crate::words::{Span, counted, grouped, period_in_words};

impl Report {
    /// The plot of what happened over time; without panels if nobody asked for bins.
    #[must_use]
    pub fn to_plot(&self) -> Plot {
        let limits = self.rows.first().map(limits).unwrap_or_default();
        let promise = self.rows.first().and_then(|row| row.promise);
        let period = promise.map_or_else(|| "minute".to_owned(), |promise| period_in_words(promise.period()));
        let under = if limits.is_empty() { String::new() } else { format!(" under {limits}") };
        let (clients, length) = (counted(u64::from(self.clients), "client", "clients"), Span(self.length));
        let whose = if self.rows.iter().any(|row| row.keys > 1) {
            "; the areas are of the client of whom most passed"
        } else {
            ""
        };
        Plot {
            title: format!("{}{under}", self.patterns.join(" + ")),
            subtitle: match self.about {
                Some(about) => format!("{about}; {clients}, {length}{whose}"),
                None => format!("{clients}, {length}{whose}"),
            },
            area_name: format!("passed in the {period} before"),
            begins: None,
            length_ns: u64::try_from(self.length.as_nanos()).unwrap_or(u64::MAX),
            panels: self.rows.iter().filter_map(|row| panel(row, &period)).collect(),
        }
    }
}

fn panel(row: &Row, period: &str) -> Option<Panel> {
    let bins = &row.series.as_ref()?.bins;
    let over = row.overshoot.unwrap_or(0);
    let most = row.worst_period.unwrap_or(row.worst_minute).cost;
    let (passed, denied, most) = (grouped(row.admitted), grouped(row.denied), grouped(most));
    let above = if over > 0 { format!(", {} above the limit", grouped(over)) } else { String::new() };
    Some(Panel {
        title: row.name.clone(),
        note: format!("{passed} passed, {denied} denied; most in any {period}: {most}{above}"),
        is_broken: row.is_far_above(),
        area: bins.iter().map(|bin| bin.in_period).collect(),
        limit: row.promise.map(|promise| promise.count()),
        level: bins.iter().filter_map(|bin| bin.level).collect(),
        admitted: bins.iter().map(|bin| bin.admitted).collect(),
        denied: bins.iter().map(|bin| bin.denied).collect(),
    })
}
