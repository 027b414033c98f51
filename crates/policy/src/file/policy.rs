//! One policy of a file.

use std::ops::Range;

use tidegate_core::Cost;

use super::reader::{Kind, Reader, printable};
use super::root::{self, is_name};
use super::tree::{Node, Value};
use crate::{
    COST_MAX, ClientAddress, CostRule, Counting, FieldName, HeaderMatch, KeyPart, KeyParts, Match, OnMissing, Policy,
    Statuses,
};

const POLICY: Kind = Kind {
    what: "a policy",
    keys: &[
        "name",
        "match",
        "final",
        "exempt",
        "key",
        "on_missing",
        "limits",
        "cost",
        "charge_for",
        "penalty",
        "overrides",
        "mode",
        "algorithm",
        "at_bound",
        "on_store_failure",
        "sharing",
    ],
    meant: &[
        ("rate", "did you mean `limits`?"),
        ("quota", "did you mean `limits`?"),
        ("burst", "the burst is part of a limit: `60/min burst 10`"),
        ("period", "the period is part of a limit: `60/min`"),
        ("per", "the period is part of a limit: `60/min`"),
        ("window", "the period is part of a limit: `60/min`"),
        ("path", "write it in the match: `match = { path = \"/api/*\" }`"),
        ("paths", "write it in the match: `match = { path = \"/api/*\" }`"),
        ("method", "write it in the match: `match = { method = \"POST\" }`"),
        ("host", "write it in the match: `match = { host = \"api.example.org\" }`"),
        ("shadow", "did you mean `mode = \"shadow\"`?"),
        ("dry_run", "did you mean `mode = \"shadow\"`?"),
        ("enforce", "did you mean `mode = \"enforce\"`?"),
        ("whitelist", "did you mean `exempt`?"),
        ("allowlist", "did you mean `exempt`?"),
        ("fail_open", "did you mean `on_store_failure = \"allow\"`?"),
        ("on_failure", "did you mean `on_store_failure`?"),
        ("id", "did you mean `name`?"),
        ("keys", "did you mean `key`?"),
        ("by", "did you mean `key`?"),
        ("responses", "did you mean `charge_for`?"),
    ],
};

const MATCH: Kind = Kind {
    what: "a match",
    keys: &["host", "method", "path", "header"],
    meant: &[
        ("url", "did you mean `path`?"),
        ("prefix", "did you mean `path`? A beginning is written `/api/*`"),
        ("domain", "did you mean `host`?"),
        ("verb", "did you mean `method`?"),
    ],
};

const EXEMPT: Kind = Kind {
    what: "what is exempt from a policy",
    keys: &["addresses", "paths", "keys", "preflights", "health_checks"],
    meant: root::EXEMPT.meant,
};

const COST: Kind = Kind {
    what: "a cost",
    keys: &["header", "otherwise", "response", "estimate"],
    meant: &[("default", "did you mean `otherwise`?"), ("settle", "did you mean `response`?")],
};

/// A policy, and where its name stands.
pub(super) struct Named {
    pub(super) policy: Policy,
    pub(super) span: Range<usize>,
}

impl Reader {
    pub(super) fn policy(&mut self, node: &Node, client: &ClientAddress) -> Option<Named> {
        let fields = self.fields(node, &POLICY)?;
        let before = self.faults.len();
        let (name, span) = match fields.get("name") {
            Some(node) => (self.name(node), node.span.clone()),
            None => {
                self.fault(fields.span, "a policy needs a `name`; limits keep what they know across reloads by it");
                (None, fields.span.clone())
            }
        };
        let key = fields.get("key").and_then(|node| self.key(node)).unwrap_or_default();
        let mut policy = Policy::new(name.unwrap_or("unnamed"), key);
        policy.matching = fields.get("match").and_then(|node| self.matching(node)).unwrap_or_default();
        policy.is_final = fields.get("final").and_then(|node| self.flag(node)).unwrap_or_default();
        policy.on_missing = fields.get("on_missing").and_then(|node| self.word(node, &ON_MISSING)).unwrap_or_default();
        policy.cost = fields.get("cost").and_then(|node| self.cost(node)).unwrap_or_default();
        policy.counting = fields.get("charge_for").map(|node| self.counting(node)).unwrap_or_default();
        policy.penalty = fields.get("penalty").and_then(|node| self.penalty(node));
        let defaults = self.handled(&fields, Default::default());
        match fields.get("limits") {
            Some(node) => self.limits(node, &defaults, &mut policy),
            None => self.fault(&span, "a policy needs `limits`, such as `limits = \"60/min\"`"),
        }
        let is_sound = self.faults.len() == before;
        if let Some(node) = fields.get("exempt") {
            policy.exempt = self.exempt(node, &EXEMPT).unwrap_or_default();
            self.exempt_keys(node, client, &mut policy);
        }
        if let Some(node) = fields.get("overrides").filter(|_| is_sound) {
            self.overrides(node, client, &mut policy);
        }
        name.map(|_| Named { policy, span })
    }

    pub(super) fn name<'n>(&mut self, node: &'n Node) -> Option<&'n str> {
        let name = self.text(node, "a text, a name")?;
        if !is_name(name) {
            let message = "is no name; names have 1 to 64 letters, digits, dots, hyphens and underscores";
            self.fault(&node.span, format_args!("`{}` {message}", printable(name)));
        }
        Some(name).filter(|name| is_name(name))
    }

    /// The parts of a key: one text with commas, or a list of texts.
    fn key(&mut self, node: &Node) -> Option<KeyParts> {
        let expected = "a text, such as \"client\" or \"header:x-api-key\"";
        if let Value::Text(_) = node.value {
            return self.parsed(node, expected);
        }
        let before = self.faults.len();
        let parts: Vec<KeyPart> = self.all_parsed(Some(node), expected);
        if self.faults.len() > before {
            return None;
        }
        KeyParts::new(parts).map_err(|error| self.fault(&node.span, error)).ok()
    }

    fn matching(&mut self, node: &Node) -> Option<Match> {
        let fields = self.fields(node, &MATCH)?;
        Some(Match {
            hosts: self.all_parsed(fields.get("host"), "a text with a host, such as \"api.example.org\""),
            methods: self.all_parsed(fields.get("method"), "a text with a method, such as \"POST\""),
            paths: self.all_parsed(fields.get("path"), "a text with a path, such as \"/api/*\""),
            headers: fields.get("header").map(|node| self.headers(node)).unwrap_or_default(),
        })
    }

    /// A table of names, each with a value, a list of values, or `true`.
    fn headers(&mut self, node: &Node) -> Vec<HeaderMatch> {
        let expected = "header fields as a table, such as `{ x-plan = \"gold\" }`";
        let mut headers: Vec<HeaderMatch> = Vec::new();
        for (key, node) in self.table(node, expected).unwrap_or_default() {
            let name = match key.name.parse::<FieldName>() {
                Ok(name) => name,
                Err(error) => {
                    self.fault(&key.span, format_args!("`{}` is no header field: {error}", printable(&key.name)));
                    continue;
                }
            };
            let values = match node.value {
                Value::Bool(true) => Vec::new(),
                _ => {
                    let each = self.each(node, "a text");
                    let expected = "a text, or `true` for any value";
                    each.iter().filter_map(|node| self.text(node, expected)).map(str::to_owned).collect()
                }
            };
            match headers.iter().any(|known| known.name == name) {
                true => self.fault(&key.span, format_args!("header {name} is there already; case does not matter")),
                false => headers.push(HeaderMatch { name, values }),
            }
        }
        headers
    }

    /// A number, or a table that says which field has it.
    fn cost(&mut self, node: &Node) -> Option<CostRule> {
        if !matches!(node.value, Value::Table(_)) {
            return self.whole(node, 0, COST_MAX).map(|tokens| CostRule::Constant(Cost::new(tokens)));
        }
        let fields = self.fields(node, &COST)?;
        let mut number = |name: &str| Some(Cost::new(self.whole(fields.get(name)?, 0, COST_MAX)?));
        let (otherwise, estimate) = (number("otherwise"), number("estimate"));
        let mut field = |name: &str| self.parsed::<FieldName>(fields.get(name)?, "a text, the name of a header field");
        match (field("header"), field("response")) {
            (Some(name), None) if fields.get("estimate").is_none() => {
                Some(CostRule::Header { name, otherwise: otherwise.unwrap_or(Cost::ONE) })
            }
            (None, Some(name)) if fields.get("otherwise").is_none() => {
                Some(CostRule::Response { name, estimate: estimate.unwrap_or(Cost::ONE) })
            }
            _ => {
                let forms = "a number, `{ header = NAME, otherwise = N }` or `{ response = NAME, estimate = N }`";
                self.fault(fields.span, format_args!("a cost is {forms}"));
                None
            }
        }
    }

    fn counting(&mut self, node: &Node) -> Counting {
        match &node.value {
            Value::Text(text) if text == "all" => Counting::All,
            _ => Counting::Responses(self.statuses(node)),
        }
    }

    /// Statuses, as texts or numbers.
    pub(super) fn statuses(&mut self, node: &Node) -> Statuses {
        let mut all = Statuses::default();
        for node in self.each(node, "statuses such as \"401\" or \"5xx\"") {
            let text = match &node.value {
                Value::Number(text) => Some(text.as_str()),
                _ => self.text(node, "statuses such as \"401\" or \"5xx\""),
            };
            match text.map(str::parse::<Statuses>) {
                Some(Ok(statuses)) => all = all.and(statuses),
                Some(Err(error)) => self.fault(&node.span, error),
                None => {}
            }
        }
        all
    }
}

const ON_MISSING: [(&str, OnMissing); 3] =
    [("client", OnMissing::Client), ("deny", OnMissing::Deny), ("skip", OnMissing::Skip)];

/// The word for what happens to a request without its key.
pub(super) fn on_missing_word(on_missing: OnMissing) -> &'static str {
    ON_MISSING.iter().find(|(_, known)| *known == on_missing).map_or("client", |(word, _)| word)
}
