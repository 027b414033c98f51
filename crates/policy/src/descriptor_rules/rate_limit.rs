//! What stands below `rate_limit`: a number for each unit, or that there is none.

use tidegate_core::{Algorithm, Limit};

use super::CallUnit;
use crate::file::reader::{Fields, Kind, Reader};
use crate::file::tree::{Node, Value};

const RATE_LIMIT: Kind = Kind {
    what: "a rate limit",
    keys: &["unit", "requests_per_unit", "unlimited", "name", "replaces"],
    meant: &[
        ("shadow_mode", "write it beside `rate_limit`"),
        ("requests", "did you mean `requests_per_unit`?"),
        ("unit_multiplier", "units are whole; a policy of Tidegate's own can say `10/15min`"),
    ],
};

const REPLACED: Kind = Kind { what: "what is replaced", keys: &["name"], meant: &[] };

/// What it says.
pub(super) struct RateLimit {
    pub(super) limit: Limit,
    /// None of what is unlimited.
    pub(super) unit: Option<CallUnit>,
    /// Empty if it has none.
    pub(super) name: String,
    pub(super) replaces: Vec<String>,
}

impl RateLimit {
    /// Reads it; enforced by this algorithm.
    pub(super) fn read(node: &Node, algorithm: Algorithm, reader: &mut Reader) -> Option<Self> {
        let fields = reader.fields(node, &RATE_LIMIT)?;
        let is_unlimited = fields.get("unlimited").and_then(|node| reader.flag(node)).unwrap_or(false);
        let name = fields.get("name").and_then(|node| scalar(reader, node)).unwrap_or_default();
        let replaces = replaced(fields.get("replaces"), name, reader);
        let (limit, unit) = match is_unlimited {
            true => (unlimited(&fields, reader), None),
            false => {
                let (limit, unit) = limited(&fields, algorithm, reader)?;
                (limit, Some(unit))
            }
        };
        Some(Self { limit, unit, name: name.to_owned(), replaces })
    }
}

fn unlimited(fields: &Fields<'_>, reader: &mut Reader) -> Limit {
    for name in ["unit", "requests_per_unit"] {
        if let Some((key, _)) = fields.entry(name) {
            reader.fault(&key.span, format_args!("what is unlimited has no `{name}`; leave one of both out"));
        }
    }
    Limit::Unlimited
}

fn limited(fields: &Fields<'_>, algorithm: Algorithm, reader: &mut Reader) -> Option<(Limit, CallUnit)> {
    let missing = ["unit", "requests_per_unit"].into_iter().filter(|name| fields.get(name).is_none());
    for name in missing {
        let hint = if name == "unit" { "" } else { " (0 lets nothing pass)" };
        reader.fault(fields.span, format_args!("the rate limit has no `{name}`{hint}"));
    }
    let unit = fields.get("unit").and_then(|node| unit(reader, node));
    let requests = fields.get("requests_per_unit")?;
    let count = reader.whole(requests, 0, u32::MAX.into()).and_then(|count| u32::try_from(count).ok());
    let (unit, count) = (unit?, count?);
    let limit = unit.limit(count, algorithm);
    Some((limit.map_err(|error| reader.fault(&requests.span, error)).ok()?, unit))
}

fn replaced(node: Option<&Node>, own: &str, reader: &mut Reader) -> Vec<String> {
    let Some(node) = node else { return Vec::new() };
    let mut names = Vec::new();
    for node in reader.each(node, "names to replace") {
        let Some(fields) = reader.fields(node, &REPLACED) else { continue };
        match fields.get("name").and_then(|node| scalar(reader, node)) {
            None | Some("") => reader.fault(&node.span, "what is replaced has no `name`"),
            Some(name) if name == own => reader.fault(&node.span, "a rule cannot replace itself"),
            Some(name) => names.push(name.to_owned()),
        }
    }
    names
}

fn unit(reader: &mut Reader, node: &Node) -> Option<CallUnit> {
    let text = reader.text(node, "a text, such as minute")?;
    let found = CallUnit::ALL.into_iter().find(|unit| text.eq_ignore_ascii_case(unit.name()));
    if found.is_none() {
        // It is none of them; this says so, and what was meant.
        let _: Option<CallUnit> = reader.word(node, &CallUnit::ALL.map(|unit| (unit.name(), unit)));
    }
    found
}

/// A text, or a number or `true` as they are written.
pub(super) fn scalar<'n>(reader: &mut Reader, node: &'n Node) -> Option<&'n str> {
    match &node.value {
        Value::Number(text) => Some(text),
        Value::Bool(is) => Some(if *is { "true" } else { "false" }),
        _ => reader.text(node, "a text"),
    }
}
