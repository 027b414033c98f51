//! The limits of a policy: texts, or tables that say more.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_core::{Algorithm, AtBound, FailureMode, Handling, Limit, Mode, Quota, Sharing};

use super::reader::{Fields, Kind, Reader, printable, within};
use super::tree::{Node, Value};
use crate::{HOLD_MAX, NamedLimit, Offence, Penalty, Policy};

const LIMIT: Kind = Kind {
    what: "a limit",
    keys: &["name", "limit", "mode", "algorithm", "at_bound", "on_store_failure", "sharing"],
    meant: &[
        ("burst", "the burst is part of the limit: `60/min burst 10`"),
        ("rate", "did you mean `limit`?"),
        ("period", "the period is part of the limit: `60/min`"),
        ("shadow", "did you mean `mode = \"shadow\"`?"),
        ("key", "the key belongs to the policy; a limit by another key is another policy"),
        ("cost", "the cost belongs to the policy"),
    ],
};

const PENALTY: Kind = Kind {
    what: "a penalty",
    keys: &["after", "of", "hold"],
    meant: &[("for", "did you mean `hold`?"), ("ban", "did you mean `hold`?"), ("time", "did you mean `hold`?")],
};

pub(super) const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];
pub(super) const AT_BOUNDS: [(&str, AtBound); 3] =
    [("displace", AtBound::Displace), ("deny", AtBound::Deny), ("pool", AtBound::Pool)];

/// How a limit is enforced and kept: what a policy says, and a limit of it may say otherwise.
#[derive(Clone, Copy, Default)]
pub(super) struct Handled {
    mode: Mode,
    algorithm: Algorithm,
    handling: Handling,
}

impl Reader {
    /// What a table says, and otherwise what holds without it.
    pub(super) fn handled(&mut self, fields: &Fields<'_>, otherwise: Handled) -> Handled {
        let algorithms = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
        let plain = otherwise.handling;
        let mode = fields.get("mode").and_then(|node| self.word(node, &MODES));
        let algorithm = fields.get("algorithm").and_then(|node| self.word(node, &algorithms));
        let at_bound = fields.get("at_bound").and_then(|node| self.word(node, &AT_BOUNDS));
        let on_failure = fields.get("on_store_failure");
        let on_failure = on_failure.and_then(|node| self.parsed::<FailureMode>(node, "a text, such as \"local\""));
        let sharing = fields.get("sharing").and_then(|node| self.sharing(node));
        Handled {
            mode: mode.unwrap_or(otherwise.mode),
            algorithm: algorithm.unwrap_or(otherwise.algorithm),
            handling: Handling {
                at_bound: at_bound.unwrap_or(plain.at_bound),
                on_failure: on_failure.unwrap_or(plain.on_failure),
                sharing: sharing.unwrap_or(plain.sharing),
                ..plain
            },
        }
    }

    fn sharing(&mut self, node: &Node) -> Option<Sharing> {
        let text = self.text(node, "a text, \"exact\" or \"leased:MOST\"")?;
        let sharing = match text.split_once(':') {
            None if text == "exact" => Some(Sharing::Exact),
            Some(("leased", most)) => most.trim().parse::<NonZeroU32>().ok().map(|most| Sharing::Leased { most }),
            _ => None,
        };
        if sharing.is_none() {
            let forms = "expected `exact`, or `leased:MOST` with the most tokens of a key that a process takes ahead, \
                         such as `leased:100`";
            self.fault(&node.span, format_args!("`{}`: {forms}", printable(text)));
        }
        sharing
    }

    /// All limits of a policy, in order. Those without a name are called `limit-1`, `limit-2` by their places.
    pub(super) fn limits(&mut self, node: &Node, defaults: &Handled, policy: &mut Policy) {
        let expected = "limits such as \"60/min\"";
        for (i, node) in self.each(node, expected).iter().enumerate() {
            let named = match &node.value {
                Value::Table(_) => self.limit_table(node, *defaults, i),
                _ => self.limit(node, defaults.algorithm).map(|limit| (format!("limit-{}", i + 1), limit, *defaults)),
            };
            let Some((name, limit, handled)) = named else { continue };
            if policy.limits.iter().any(|known| known.name == name) {
                self.fault(&node.span, format_args!("a limit `{name}` is there already; give each a name of its own"));
                continue;
            }
            let id = policy.limit_id(&name);
            policy.limits.push(NamedLimit { name, id, limit, mode: handled.mode, handling: handled.handling });
        }
    }

    fn limit_table(&mut self, node: &Node, defaults: Handled, i: usize) -> Option<(String, Limit, Handled)> {
        let fields = self.fields(node, &LIMIT)?;
        let handled = self.handled(&fields, defaults);
        let name = match fields.get("name") {
            Some(node) => self.name(node)?.to_owned(),
            None => format!("limit-{}", i + 1),
        };
        let Some(node) = fields.get("limit") else {
            self.fault(fields.span, "a limit needs a `limit`, such as `limit = \"60/min\"`");
            return None;
        };
        Some((name, self.limit(node, handled.algorithm)?, handled))
    }

    /// A limit as text. What is not a text is shown how it would be one.
    pub(super) fn limit(&mut self, node: &Node, algorithm: Algorithm) -> Option<Limit> {
        let text = match &node.value {
            Value::Number(number) => number,
            _ => self.text(node, "limits such as \"60/min\"")?,
        };
        let limit = match text.parse::<Limit>() {
            Ok(limit) => limit,
            Err(error) => {
                self.fault(&within(node, text, error.at()), error);
                return None;
            }
        };
        match enforced_by(limit, algorithm) {
            Ok(limit) => Some(limit),
            Err(error) => {
                self.fault(&node.span, format_args!("`{limit}` as a {algorithm}: {error}"));
                None
            }
        }
    }

    pub(super) fn penalty(&mut self, node: &Node) -> Option<Penalty> {
        let fields = self.fields(node, &PENALTY)?;
        let of = match fields.get("of").map(|node| (node, &node.value)) {
            None => Offence::Denials,
            Some((_, Value::Text(text))) if text == "denials" => Offence::Denials,
            Some((node, _)) => Offence::Responses(self.statuses(node)),
        };
        let after = fields.get("after").and_then(|node| self.offences(node));
        let hold = fields.get("hold").and_then(|node| self.span_of_time(node));
        if fields.get("after").is_none() || fields.get("hold").is_none() {
            self.fault(fields.span, "a penalty needs `after`, such as \"5/15min\", and `hold`, such as \"1h\"");
        }
        Some(Penalty { of, after: after?, hold: hold? })
    }

    /// How many offences within a time.
    fn offences(&mut self, node: &Node) -> Option<Quota> {
        match self.limit(node, Algorithm::default())? {
            Limit::Quota(quota) => Some(quota),
            Limit::Block { .. } | Limit::Unlimited => {
                self.fault(&node.span, "a penalty comes after some offences within a time, such as `5/15min`");
                None
            }
        }
    }

    /// A length of time such as `15min`.
    fn span_of_time(&mut self, node: &Node) -> Option<Duration> {
        let text = self.text(node, "a text, a length of time such as \"15min\"")?;
        // A length of time is the period of a limit; a burst would be none.
        let has_number = text.starts_with(|c: char| c.is_ascii_digit()) && !text.to_ascii_lowercase().contains("burst");
        let limit = format!("1/{text}").parse::<Limit>().ok().filter(|_| has_number);
        let span = limit.and_then(|limit| limit.quota());
        let span = span.map(|quota| quota.rate().period()).filter(|span| *span <= HOLD_MAX);
        if span.is_none() {
            let text = printable(text);
            let digits = text.trim_end().strip_suffix(['m', 'M']).map(str::trim_end);
            match digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
                Some(digits) => {
                    let message = format!("`{text}`: `m` could be a minute or a month; write `{digits}min`");
                    self.fault(&node.span, message);
                }
                None => {
                    let message = "is no length of time; write a whole number and a unit, such as `15min` or `1h`, \
                                   30 days at most";
                    self.fault(&node.span, format_args!("`{text}` {message}"));
                }
            }
        }
        span
    }
}

/// The same limit under an algorithm.
pub(super) fn enforced_by(limit: Limit, algorithm: Algorithm) -> Result<Limit, tidegate_core::QuotaError> {
    match limit {
        Limit::Quota(quota) => quota.with_algorithm(algorithm).map(Limit::Quota),
        Limit::Block { .. } | Limit::Unlimited => Ok(limit),
    }
}

/// The algorithm of a limit that has one.
pub(super) fn algorithm(limit: &Limit) -> Algorithm {
    limit.quota().map(|quota: Quota| quota.algorithm()).unwrap_or_default()
}
