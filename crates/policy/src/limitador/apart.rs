//! Which limits no call meets together.
//!
//! Two limits are apart if one asks an entry to be what the other does not let it be, as `method == 'GET'` and
//! `method == 'POST'` do. Other conditions may exclude each other too; they are taken as if they did not, so what is
//! found to be few enough is.

use super::cel::{Comparison, Condition, Expr, Place};
use super::limit::Limit;
use crate::together;

/// The longest list behind `in` that is looked at.
const LIST_MAX: usize = 16;

/// What a condition asks of one entry.
enum Asked<'c> {
    ToBe(Vec<&'c str>),
    NotToBe(&'c str),
}

/// Limits of one namespace, more than [`CHARGES_MAX`](tidegate_core::CHARGES_MAX), that one call could meet together, as far as their conditions
/// tell; `None` if there are none. `limits` has at most [`POLICIES_MAX`](crate::POLICIES_MAX).
pub(super) fn too_many(limits: &[&Limit]) -> Option<Vec<usize>> {
    let asked: Vec<Vec<_>> = limits.iter().map(|limit| limit.conditions.iter().filter_map(asked).collect()).collect();
    let together = |one: usize, other: usize| {
        !asked[one].iter().any(|(place, a)| asked[other].iter().any(|(at, b)| place == at && is_apart(a, b)))
    };
    together::too_many_of(&vec![1; limits.len()], together)
}

fn asked(condition: &Condition) -> Option<(&Place, Asked<'_>)> {
    match &condition.expr {
        Expr::Compare(left, comparison, right) => match (&**left, comparison, &**right) {
            (Expr::Entry(place), Comparison::Is, Expr::Text(text))
            | (Expr::Text(text), Comparison::Is, Expr::Entry(place)) => Some((place, Asked::ToBe(vec![text]))),
            (Expr::Entry(place), Comparison::IsNot, Expr::Text(text))
            | (Expr::Text(text), Comparison::IsNot, Expr::Entry(place)) => Some((place, Asked::NotToBe(text))),
            _ => None,
        },
        Expr::In(item, list) if list.len() <= LIST_MAX => match &**item {
            Expr::Entry(place) => Some((place, Asked::ToBe(list.iter().map(plain_text).collect::<Option<_>>()?))),
            _ => None,
        },
        _ => None,
    }
}

fn plain_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Text(text) => Some(text),
        _ => None,
    }
}

fn is_apart(one: &Asked<'_>, other: &Asked<'_>) -> bool {
    match (one, other) {
        (Asked::ToBe(one), Asked::ToBe(other)) => !one.iter().any(|text| other.contains(text)),
        (Asked::ToBe(texts), Asked::NotToBe(not)) | (Asked::NotToBe(not), Asked::ToBe(texts)) => {
            texts.iter().all(|text| text == not)
        }
        (Asked::NotToBe(_), Asked::NotToBe(_)) => false,
    }
}
