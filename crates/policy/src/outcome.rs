//! Counting by outcome: some responses are charged, others are not, and some hold a key back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tidegate_core::{Cost, Quota};

use crate::{CostRule, FieldName, Policy, cost_rule::whole_number};

/// The longest time for which a key is held back: 30 days.
pub const HOLD_MAX: Duration = Duration::from_secs(30 * 86_400);

/// What stands for a response that never came: as if it had been this status.
pub const NO_RESPONSE: u16 = 502;

/// The lowest status, and behind the highest.
const STATUSES: std::ops::Range<u16> = 100..600;
const WORDS: usize = (STATUSES.end - STATUSES.start).div_ceil(64) as usize;

/// Some statuses of responses: `401`, `5xx`, `400-499`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses([u64; WORDS]);

impl Statuses {
    /// Is this one of them?
    #[must_use]
    pub const fn has(&self, status: u16) -> bool {
        if status < STATUSES.start || status >= STATUSES.end {
            return false;
        }
        let at = (status - STATUSES.start) as usize;
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    /// Is it none at all?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those that one of two has.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }

    fn from_to(from: u16, to: u16) -> Option<Self> {
        let mut statuses = Self::default();
        for at in (from..=to).map(|status| usize::from(status - STATUSES.start)) {
            statuses.0[at / 64] |= 1 << (at % 64);
        }
        Some(statuses).filter(|statuses| !statuses.is_empty())
    }

    /// From each run of statuses the first and the last.
    fn runs(&self) -> impl Iterator<Item = (u16, u16)> {
        let starts = STATUSES.filter(|status| self.has(*status) && !self.has(status - 1));
        starts.map(|from| (from, (from..STATUSES.end).take_while(|status| self.has(*status)).last().unwrap_or(from)))
    }

    /// Each run as it is written: `401`, `5xx`, `400-403`.
    #[must_use]
    pub fn to_texts(&self) -> Vec<String> {
        let text = |(from, to): (u16, u16)| match (from, to) {
            _ if from == to => from.to_string(),
            _ if from % 100 == 0 && to == from + 99 => format!("{}xx", from / 100),
            _ => format!("{from}-{to}"),
        };
        self.runs().map(text).collect()
    }
}

impl FromStr for Statuses {
    type Err = StatusesError;

    /// Reads one status, a class such as `5xx`, or a range such as `400-499`.
    ///
    /// # Errors
    /// It is none of these, or not within 100 and 599.
    fn from_str(text: &str) -> Result<Self, StatusesError> {
        let error = || StatusesError(text.to_owned());
        let status = |text: &str| text.parse::<u16>().ok().filter(|status| STATUSES.contains(status)).ok_or_else(error);
        let lower = text.trim().to_ascii_lowercase();
        let (from, to) = match (lower.strip_suffix("xx"), lower.split_once('-')) {
            (Some(class), _) => {
                let from = status(&format!("{class}00"))?;
                (from, from + 99)
            }
            (None, Some((from, to))) => (status(from.trim())?, status(to.trim())?),
            (None, None) => (status(&lower)?, status(&lower)?),
        };
        Self::from_to(from, to).ok_or_else(error)
    }
}

/// The text names no statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusesError(String);

impl fmt::Display for StatusesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = crate::Printable(self.0.as_bytes());
        write!(f, "`{text}` is no status of a response; write one such as `401`, a class such as `5xx`, or `400-499`")
    }
}

impl std::error::Error for StatusesError {}

/// Which responses a policy charges for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// All: the charge is made at the request, and stands.
    #[default]
    All,
    /// These: the charge is reserved at the request, and given back if the response is another. So the limit holds
    /// however many requests are under way at once.
    Responses(Statuses),
}

/// How a key is held back: denied for a while, whatever its limits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// What is counted against the key.
    pub of: Offence,
    /// How many pass before the key is held back: `5/15min` holds at the fifth within 15 minutes.
    pub after: Quota,
    /// For how long it is held back, at most [`HOLD_MAX`].
    pub hold: Duration,
}

impl Penalty {
    /// The time for which a key is held back, as it is written: `15min`, `1h`.
    #[must_use]
    pub fn hold_text(&self) -> String {
        let text = tidegate_core::PeriodText(self.hold).to_string();
        if text.starts_with(|c: char| c.is_ascii_digit()) { text } else { format!("1{text}") }
    }
}

/// What earns a penalty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offence {
    /// Denials by a limit of the policy.
    #[default]
    Denials,
    /// Responses of these statuses.
    Responses(Statuses),
}

/// What of a charge is known only when the response is there.
///
/// The charge itself is made at the request, as a reservation; with the response it is settled with
/// [`Settling::cost`]. If there is no response it is settled by [`Settling::without_response`].
#[derive(Clone, Copy, Debug)]
pub struct Settling<'a> {
    field: Option<&'a FieldName>,
    statuses: Option<Statuses>,
}

impl<'a> Settling<'a> {
    pub(crate) fn of(policy: &'a Policy) -> Option<Self> {
        let field = match &policy.cost {
            CostRule::Response { name, .. } => Some(name),
            CostRule::Constant(_) | CostRule::Header { .. } => None,
        };
        let statuses = match policy.counting {
            Counting::All => None,
            Counting::Responses(statuses) => Some(statuses),
        };
        (field.is_some() || statuses.is_some()).then_some(Self { field, statuses })
    }

    /// The field of the response that says what the request cost.
    #[must_use]
    pub const fn field(&self) -> Option<&'a FieldName> {
        self.field
    }

    /// What the request cost: nothing, if its response is not among those that are charged; else what the field says,
    /// or what was reserved.
    #[must_use]
    pub fn cost(&self, status: u16, field: Option<&[u8]>, reserved: Cost) -> Cost {
        match self.statuses {
            Some(statuses) if !statuses.has(status) => Cost::ZERO,
            _ => self.field.and(field).and_then(whole_number).unwrap_or(reserved),
        }
    }

    /// What the request cost if no response came: as much as if it had been answered with [`NO_RESPONSE`].
    #[must_use]
    pub fn without_response(&self, reserved: Cost) -> Cost {
        self.cost(NO_RESPONSE, None, reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_and_written() {
        let all = |texts: &[&str]| {
            texts.iter().map(|text| text.parse::<Statuses>().unwrap()).fold(Statuses::default(), Statuses::and)
        };
        assert_eq!(all(&["401", "5xx", "403-404", "1XX"]).to_texts(), ["1xx", "401", "403-404", "5xx"]);
        assert_eq!(all(&["400-499"]), all(&["4xx"]));
        let some = all(&["401", "5xx"]);
        assert!(some.has(401) && some.has(500) && some.has(599));
        assert!(!some.has(400) && !some.has(0) && !some.has(600) && !some.has(u16::MAX));
        for text in ["", "99", "600", "6xx", "xx", "500-400", "40x", "ok", "-1", "401-"] {
            assert!(text.parse::<Statuses>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_reserved_is_settled() {
        let statuses = Some("401".parse().unwrap());
        let failures = Settling { field: None, statuses };
        let settled = |settling: Settling<'_>, status, field| settling.cost(status, field, Cost::new(5)).tokens();
        assert_eq!([401, 200].map(|status| settled(failures, status, Some(b"9"))), [5, 0]);
        let name: FieldName = "x-tokens".parse().unwrap();
        let tokens = Settling { field: Some(&name), statuses: None };
        let fields: [Option<&[u8]>; 6] = [Some(b"9"), Some(b" 0 "), Some(b"-1"), Some(b""), None, Some(&[b'9'; 20])];
        assert_eq!(fields.map(|field| settled(tokens, 200, field)), [9, 0, 5, 5, 5, crate::COST_MAX]);
        let both = Settling { field: Some(&name), statuses };
        assert_eq!([401, 200].map(|status| settled(both, status, Some(b"9"))), [9, 0]);
        assert_eq!([failures, tokens].map(|settling| settling.without_response(Cost::new(5)).tokens()), [0, 5]);
    }
}
