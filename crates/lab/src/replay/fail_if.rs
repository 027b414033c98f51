//! `--fail-if`: what makes a replay fail, for a job that must notice.
//!
//! A [condition](crate::expression) over the figures of the report: `lines`, `requests`, `clients`, `admitted`,
//! `denied`, `denied_clients`, `unparsed`, `late`. A value with `%` is a share: of the requests for `admitted` and
//! `denied`, of the clients for `denied_clients`, of the lines for `unparsed` and `late`.

use std::cmp::Ordering;

use crate::expression::{self, Condition, ConditionError, Operator, Word};
use crate::replay::Report;

/// What makes a replay fail.
#[derive(Clone, Debug)]
pub struct FailIf {
    text: String,
    condition: Condition<Comparison>,
}

#[derive(Clone, Copy, Debug)]
struct Comparison {
    figure: Figure,
    operator: Operator,
    /// Billionths: of one, or of a hundredth of the whole.
    value: u128,
    is_share: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Lines,
    Requests,
    Clients,
    Admitted,
    Denied,
    DeniedClients,
    Unparsed,
    Late,
}

const FIGURES: [(&str, Figure); 8] = [
    ("lines", Figure::Lines),
    ("requests", Figure::Requests),
    ("clients", Figure::Clients),
    ("admitted", Figure::Admitted),
    ("denied", Figure::Denied),
    ("denied_clients", Figure::DeniedClients),
    ("unparsed", Figure::Unparsed),
    ("late", Figure::Late),
];
const BILLION: u128 = 1_000_000_000;

impl FailIf {
    /// Does this report make it fail?
    #[must_use]
    pub fn holds(&self, report: &Report) -> bool {
        self.condition.holds(&mut |comparison| comparison.holds(report))
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Figure {
    fn of(self, report: &Report) -> u64 {
        match self {
            Self::Lines => report.lines,
            Self::Requests => report.requests,
            Self::Clients => report.clients,
            Self::Admitted => report.outcome.admitted,
            Self::Denied => report.outcome.denied,
            Self::DeniedClients => report.outcome.denied_clients,
            Self::Unparsed => report.unparsed,
            Self::Late => report.late,
        }
    }

    /// What a share of it is a share of.
    const fn whole(self) -> Option<Self> {
        match self {
            Self::Admitted | Self::Denied => Some(Self::Requests),
            Self::DeniedClients => Some(Self::Clients),
            Self::Unparsed | Self::Late => Some(Self::Lines),
            Self::Lines | Self::Requests | Self::Clients => None,
        }
    }
}

impl Comparison {
    /// Exactly: a share is compared by multiplying, not by dividing.
    fn holds(&self, report: &Report) -> bool {
        let figure = u128::from(self.figure.of(report));
        let order: Ordering = match self.figure.whole().filter(|_| self.is_share) {
            Some(whole) => (figure * 100 * BILLION).cmp(&(self.value * u128::from(whole.of(report)))),
            None => (figure * BILLION).cmp(&self.value),
        };
        self.operator.holds(order)
    }
}

impl std::str::FromStr for FailIf {
    type Err = ConditionError;

    /// Reads a condition.
    ///
    /// # Errors
    /// It is none; the error points at the column.
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        Ok(Self { text: text.to_owned(), condition: expression::read(text, compare)? })
    }
}

fn compare<'a>(name: Word<'a>, operator: Operator, value: Word<'a>) -> Result<Comparison, (Word<'a>, String)> {
    let Some((_, figure)) = FIGURES.iter().find(|(known, _)| *known == name.text) else {
        let names = FIGURES.map(|(name, _)| name).join(", ");
        return Err((name, format!("there is no figure `{}`; there are {names}", name.text)));
    };
    if matches!(operator, Operator::Matches | Operator::MatchesNot) {
        return Err((value, format!("`{}` is a number; it is compared with = != < <= > >=", name.text)));
    }
    let (number, is_share) = match value.text.strip_suffix('%') {
        Some(number) => (number, true),
        None => (value.text, false),
    };
    if is_share && figure.whole().is_none() {
        return Err((value, format!("`{}` is a whole itself, and no share of one", name.text)));
    }
    let value = billionths(number).ok_or_else(|| (value, format!("expected a number, got `{}`", value.text)))?;
    Ok(Comparison { figure: *figure, operator, value, is_share })
}

/// A number with at most nine digits behind the point, exactly.
fn billionths(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 18 || part.len() > 9 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let part: u128 = format!("{part:0<9}").parse().ok()?;
    Some(whole.parse::<u128>().ok()? * BILLION + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(condition: &str, expect: bool) {
        let mut report = Report { lines: 1_010, requests: 1_000, clients: 10, unparsed: 10, ..Report::default() };
        (report.outcome.admitted, report.outcome.denied, report.outcome.denied_clients) = (999, 1, 1);
        let fails: FailIf = condition.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fails.holds(&report), expect, "{condition}");
    }

    #[test]
    fn figures_and_shares_are_compared_exactly() {
        check("denied > 0.1%", false);
        check("denied >= 0.1%", true);
        check("denied > 0.099999999%", true);
        check("denied_clients = 10%", true);
        check("denied > 0 and unparsed > 1%", false);
        check("denied > 5 or unparsed = 10", true);
    }

    #[test]
    fn a_mistake_points_at_its_column() {
        let error = |text: &str| text.parse::<FailIf>().unwrap_err().to_string();
        assert!(error("denid > 1").starts_with("column 1: there is no figure `denid`; there are lines, requests"));
        assert!(error("denied > x").starts_with("column 10: expected a number, got `x`"));
        assert!(error("denied > -1").starts_with("column 10: expected a number"));
        assert!(error("requests > 1%").starts_with("column 12: `requests` is a whole itself"));
        assert!(error("denied ~ 1").starts_with("column 10: `denied` is a number"));
    }
}
