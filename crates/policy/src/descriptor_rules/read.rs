//! From files to rules: everything that is wrong at once, and everything that is understood but not done, said out loud.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use tidegate_core::{Algorithm, Handling, LimitId, Mode};

use super::level::{Level, Node as Place};
use super::rate_limit::{RateLimit, scalar};
use super::{DescriptorRule, DescriptorRules, RULE_DEPTH_MAX, RULES_MAX};
use crate::file::fault::Fault;
use crate::file::reader::{Fields, Kind, Reader, printable};
use crate::file::tree::{Node, Value};
use crate::file::{ConfigError, ConfigFault, FILE_BYTES_MAX, Format, tree_of};

const FILE: Kind = Kind {
    what: "a file of descriptors",
    keys: &["domain", "descriptors"],
    meant: &[
        ("descriptor", "did you mean `descriptors`?"),
        ("policies", "this is Tidegate's own configuration; give it with --config"),
        ("namespace", "this is a limitador file"),
    ],
};

const DESCRIPTOR: Kind = Kind {
    what: "a descriptor",
    keys: &[
        "key",
        "value",
        "rate_limit",
        "descriptors",
        "shadow_mode",
        "quota_mode",
        "share_threshold",
        "detailed_metric",
        "value_to_metric",
        "metadata",
    ],
    meant: &[
        ("unit", "write it below `rate_limit`"),
        ("requests_per_unit", "write it below `rate_limit`"),
        ("unlimited", "write it below `rate_limit`"),
        ("replaces", "write it below `rate_limit`"),
        ("name", "write it below `rate_limit`"),
    ],
};

/// What is read and not done, and what happens instead.
const NOT_DONE: [(&str, &str); 3] = [
    ("detailed_metric", "no series is made from what requests say; the rule is counted under its own path"),
    ("value_to_metric", "no series is made from what requests say; the rule is counted under its own path"),
    ("metadata", "it is not passed on to Envoy"),
];

/// A file, by the name that errors call it.
#[derive(Clone, Copy, Debug)]
pub struct RuleFile<'a> {
    /// The name.
    pub name: &'a str,
    /// What is in it: YAML.
    pub contents: &'a str,
}

/// Everything that is wrong with some files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesError(pub Vec<ConfigError>);

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(i, error)| write!(f, "{}{error}", if i == 0 { "" } else { "\n" }))
    }
}

impl std::error::Error for RulesError {}

/// Reads all files of one configuration. Each rule is enforced by `algorithm` and handled as `handling` says. Beside the
/// rules come warnings: what the files ask for and is not done.
///
/// # Errors
/// Everything that is wrong, over all files.
pub fn read(
    files: &[RuleFile<'_>],
    algorithm: Algorithm,
    handling: Handling,
) -> Result<(DescriptorRules, Vec<String>), RulesError> {
    let mut all = Reading { algorithm, handling, rules: DescriptorRules::default(), home: HashMap::new() };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for file in files {
        match all.file(file) {
            Ok(faults) => warnings.extend(faults.into_iter().map(|ConfigFault { line, column, message, .. }| {
                format!("{}:{line}:{column}: {message}", printable(file.name))
            })),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok((all.rules, warnings)) } else { Err(RulesError(errors)) }
}

/// What has been read so far.
struct Reading<'f> {
    algorithm: Algorithm,
    handling: Handling,
    rules: DescriptorRules,
    /// The file of each domain.
    home: HashMap<String, &'f str>,
}

/// Where a descriptor stands.
#[derive(Clone, Debug, Default)]
struct Way {
    domain: String,
    /// As people write it.
    path: String,
    /// So that no two ways are the same text.
    exact: String,
    is_open: Vec<bool>,
}

impl Way {
    fn to(&self, key: &str, value: &str, is_shared: bool) -> Self {
        let mut way = self.clone();
        let underscore = if value.is_empty() { "" } else { "_" };
        way.path += &format!("{}{key}{underscore}{value}", if self.path.is_empty() { "" } else { "." });
        way.exact += &format!("{key:?}={value:?},");
        way.is_open.push(value.is_empty() || (value.contains('*') && !is_shared));
        way
    }
}

impl<'f> Reading<'f> {
    /// Reads one file; gives what is to be warned of.
    fn file(&mut self, file: &RuleFile<'f>) -> Result<Vec<ConfigFault>, ConfigError> {
        let RuleFile { name, contents } = *file;
        let error = |faults| ConfigError::new(name, contents, faults);
        if contents.len() > FILE_BYTES_MAX {
            let message = format!("the file is too large; the maximum is {FILE_BYTES_MAX} bytes");
            return Err(error(vec![Fault::new(&(0..0), message)]));
        }
        let (tree, _) = tree_of(contents, Format::Yaml).map_err(|fault| error(vec![fault]))?;
        let (mut reader, mut notes) = (Reader::default(), Notes::default());
        self.root(&tree, name, &mut reader, &mut notes);
        match reader.faults.is_empty() {
            true => Ok(error(notes.faults).faults().to_vec()),
            false => Err(error(reader.faults)),
        }
    }

    fn root(&mut self, tree: &Node, file: &'f str, reader: &mut Reader, notes: &mut Notes) {
        let Some(fields) = reader.fields(tree, &FILE) else { return };
        let Some(node) = fields.get("domain") else {
            return reader.fault(&(0..0), "the file has no `domain`; it is the one that Envoy's filter names");
        };
        let Some(domain) = scalar(reader, node).filter(|domain| !domain.is_empty()) else {
            return reader.fault(&node.span, "the domain is empty");
        };
        match self.home.entry(domain.to_owned()) {
            Slot::Occupied(home) => {
                let message = format!("the domain `{}` is in {} already", printable(domain), printable(home.get()));
                return reader.fault(&node.span, message);
            }
            Slot::Vacant(home) => home.insert(file),
        };
        let way = Way { domain: domain.to_owned(), ..Way::default() };
        let level = self.level(fields.get("descriptors"), &way, reader, notes);
        self.rules.domains.insert(domain.to_owned(), level);
    }

    fn level(&mut self, node: Option<&Node>, way: &Way, reader: &mut Reader, notes: &mut Notes) -> Level {
        let mut level = Level::default();
        let nodes = match node.map(|node| &node.value) {
            None | Some(Value::Null) => &[],
            Some(Value::List(nodes)) => &nodes[..],
            Some(_) => {
                let span = node.map_or(0..0, |node| node.span.clone());
                reader.fault(&span, "descriptors are a list: each begins with `- key:`");
                &[]
            }
        };
        if let Some(first) = nodes.first().filter(|_| way.is_open.len() >= RULE_DEPTH_MAX) {
            reader.fault(&first.span, format_args!("this is nested too deep; the maximum is {RULE_DEPTH_MAX}"));
            return level;
        }
        let mut seen = HashSet::new();
        for node in nodes {
            let Some(fields) = reader.fields(node, &DESCRIPTOR) else { continue };
            let Some((key, value)) = self.key_and_value(&fields, reader) else { continue };
            if !seen.insert((key, value)) {
                let text = printable(&way.to(key, value, false).path);
                reader.fault(&node.span, format_args!("a descriptor `{text}` is there already"));
                continue;
            }
            let place = self.descriptor(&fields, way, (key, value), reader, notes);
            level.insert(key, value, place);
        }
        level
    }

    fn key_and_value<'n>(&self, fields: &Fields<'n>, reader: &mut Reader) -> Option<(&'n str, &'n str)> {
        let Some(node) = fields.get("key") else {
            reader.fault(fields.span, "the descriptor has no `key`");
            return None;
        };
        let key = scalar(reader, node)?;
        if key.is_empty() {
            reader.fault(&node.span, "the key is empty");
            return None;
        }
        let value = fields.get("value").filter(|node| node.value != Value::Null);
        Some((key, value.map_or(Some(""), |node| scalar(reader, node))?))
    }

    fn descriptor(
        &mut self,
        fields: &Fields<'_>,
        way: &Way,
        (key, value): (&str, &str),
        reader: &mut Reader,
        notes: &mut Notes,
    ) -> Place {
        let mut flag = |name: &str| fields.get(name).and_then(|node| reader.flag(node)).unwrap_or(false);
        let (is_shared, is_shadow, is_quota) = (flag("share_threshold"), flag("shadow_mode"), flag("quota_mode"));
        notes.not_done(fields);
        if let Some((key, _)) = fields.entry("share_threshold").filter(|_| is_shared && !value.contains('*')) {
            reader.fault(&key.span, "`share_threshold` is for a value with a `*`");
        }
        let way = way.to(key, value, is_shared);
        let limit = fields.get("rate_limit").filter(|node| node.value != Value::Null);
        if limit.is_none() && (is_shadow || is_quota) {
            let name = if is_shadow { "shadow_mode" } else { "quota_mode" };
            let span = fields.entry(name).map_or(fields.span, |(key, _)| &key.span);
            notes.faults.push(Fault::new(
                span,
                format_args!("`{name}` has no effect here: there is no `rate_limit` beside it"),
            ));
        }
        let mode = if is_shadow || is_quota { Mode::Shadow } else { Mode::Enforce };
        let rule = limit.and_then(|node| self.rule(node, &way, reader));
        let rule = rule.map(|rule| DescriptorRule { mode, is_quota: is_quota && !is_shadow, ..rule });
        let rule = rule.and_then(|rule| self.keep(rule, fields.span, reader));
        Place { rule, below: self.level(fields.get("descriptors"), &way, reader, notes) }
    }

    /// Adds a rule, and says where.
    fn keep(&mut self, rule: DescriptorRule, span: &Range<usize>, reader: &mut Reader) -> Option<usize> {
        let place = self.rules.rules.len();
        if place == RULES_MAX {
            reader.fault(span, format_args!("there are too many rules; the maximum is {RULES_MAX}"));
        }
        (place < RULES_MAX).then(|| {
            self.rules.rules.push(rule);
            place
        })
    }

    fn rule(&self, node: &Node, way: &Way, reader: &mut Reader) -> Option<DescriptorRule> {
        let RateLimit { limit, unit, name, replaces } = RateLimit::read(node, self.algorithm, reader)?;
        Some(DescriptorRule {
            // No part of a key is called so, so no policy has a limit of this identity.
            id: LimitId::of(&way.domain, &way.exact).keyed_by("descriptors"),
            domain: way.domain.clone(),
            path: way.path.clone(),
            name,
            limit,
            unit,
            mode: Mode::Enforce,
            is_quota: false,
            replaces,
            handling: self.handling,
            is_open: way.is_open.clone(),
        })
    }
}

/// What is to be warned of.
#[derive(Default)]
struct Notes {
    faults: Vec<Fault>,
    /// What is not done and was told of: once for a file is enough.
    told: Vec<&'static str>,
}

impl Notes {
    fn not_done(&mut self, fields: &Fields<'_>) {
        for (name, instead) in NOT_DONE {
            let is_asked =
                fields.entry(name).filter(|(_, node)| !matches!(node.value, Value::Bool(false) | Value::Null));
            if let Some((key, _)) = is_asked
                && !self.told.contains(&name)
            {
                self.told.push(name);
                self.faults.push(Fault::new(&key.span, format_args!("`{name}` is read and not done: {instead}")));
            }
        }
    }
}
