//! From the text of a file to limits, or to all that is wrong with it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tidegate_core::{Algorithm, BURST_MAX, Handling, PERIOD_MAX, Quota, QuotaError, Rate};

use super::apart;
use super::cel::{CelError, Condition, Own, Variable};
use super::charging::Limits;
use super::limit::{Limit, VARIABLES_MAX, identity};
use crate::POLICIES_MAX;
use crate::file::ConfigError;
use crate::file::fault::Fault;
use crate::file::reader::{Fields, Kind, Reader, printable, within};
use crate::file::tree::{Node, Value};
use crate::file::yaml;

/// The largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// The most limits of one file.
const LIMITS_MAX: usize = POLICIES_MAX;
/// The most conditions of one limit.
const CONDITIONS_MAX: usize = 16;
/// The longest namespace, name and id, in bytes.
const NAME_BYTES_MAX: usize = 256;

const LIMIT: Kind = Kind {
    what: "a limit",
    keys: &["namespace", "max_value", "seconds", "conditions", "variables", "id", "name"],
    meant: &[
        ("domain", "did you mean `namespace`?"),
        ("max", "did you mean `max_value`?"),
        ("limit", "did you mean `max_value`?"),
        ("value", "did you mean `max_value`?"),
        ("period", "write `seconds`"),
        ("window", "write `seconds`"),
        ("minutes", "write `seconds`"),
        ("when", "did you mean `conditions`?"),
        ("counters", "did you mean `variables`?"),
        ("burst", "a limit of limitador has none; as a token bucket its burst is `max_value`"),
    ],
};

/// Reads a file of limits. Each is enforced by `algorithm` and handled as `handling` says; `name` is what errors call the
/// file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(name: &str, contents: &str, algorithm: Algorithm, handling: Handling) -> Result<Limits, ConfigError> {
    let error = |faults| ConfigError::new(name, contents, faults);
    if contents.len() > FILE_BYTES_MAX {
        let message = format!("the file is too large; the maximum is {FILE_BYTES_MAX} bytes");
        return Err(error(vec![Fault::new(&(0..0), message)]));
    }
    let tree = yaml::tree(contents).map_err(|fault| error(vec![fault]))?;
    limits(&tree, algorithm, handling).map_err(error)
}

fn limits(tree: &Node, algorithm: Algorithm, handling: Handling) -> Result<Limits, Vec<Fault>> {
    let mut reader = Reader::default();
    let nodes = match &tree.value {
        Value::List(nodes) if nodes.len() <= LIMITS_MAX => nodes.as_slice(),
        Value::List(nodes) => {
            let message = format!("these are {} limits; the maximum is {LIMITS_MAX}", nodes.len());
            return Err(vec![Fault::new(&nodes[LIMITS_MAX].span, message)]);
        }
        // A file that says nothing limits nothing.
        Value::Null => &[],
        Value::Table(entries) if entries.is_empty() => &[],
        _ => {
            let message = format!("expected a list of limits, each behind `-`, found {}", tree.kind());
            return Err(vec![Fault::new(&tree.span, message)]);
        }
    };
    let mut read: Vec<(&Node, Limit)> = Vec::new();
    for node in nodes {
        let Some(limit) = reader.imported(node, algorithm, handling) else { continue };
        match read.iter().any(|(_, known)| known.limit == limit.limit) {
            true => reader.fault(
                &node.span,
                "this limit is there already, with the same namespace, seconds, conditions and variables",
            ),
            false => read.push((node, limit)),
        }
    }
    let mut namespaces: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    read.iter().enumerate().for_each(|(i, (_, limit))| namespaces.entry(&limit.namespace).or_default().push(i));
    let labels: Vec<_> = namespaces.values().flat_map(|places| labels(&read, places)).collect();
    for (namespace, places) in &namespaces {
        let group: Vec<_> = places.iter().map(|place| &read[*place].1).collect();
        if let Some(last) = apart::too_many(&group).and_then(|group| group.last().copied()) {
            let message = format!(
                "with this limit, more than {} limits of namespace `{}` could apply to one call",
                tidegate_core::CHARGES_MAX,
                printable(namespace)
            );
            reader.fault(&read[places[last]].0.span, message);
        }
    }
    if !reader.faults.is_empty() {
        return Err(reader.faults);
    }
    labels.into_iter().for_each(|(place, label)| read[place].1.label = label);
    Ok(Limits::new(read.into_iter().map(|(_, limit)| limit).collect()))
}

/// What to call each limit of a namespace, so that no two are called the same.
fn labels(read: &[(&Node, Limit)], places: &[usize]) -> Vec<(usize, String)> {
    let mut taken = HashSet::new();
    let label = |(i, place): (usize, &usize)| {
        let limit = &read[*place].1;
        let plain = limit.name.as_ref().or(limit.id.as_ref()).cloned().unwrap_or_else(|| format!("limit-{}", i + 1));
        let numbered = (2..=LIMITS_MAX + 1).map(|number| format!("{plain}-{number}"));
        let label = [plain.clone()].into_iter().chain(numbered).find(|label| taken.insert(label.clone()));
        (*place, label.unwrap_or(plain))
    };
    places.iter().enumerate().map(label).collect()
}

impl Reader {
    fn imported(&mut self, node: &Node, algorithm: Algorithm, handling: Handling) -> Option<Limit> {
        let fields = self.fields(node, &LIMIT)?;
        let namespace =
            self.required(&fields, "namespace", "the domain that calls name").and_then(|it| self.name_of(it));
        let seconds = self.required(&fields, "seconds", "the length of the window");
        let seconds = seconds.and_then(|node| self.whole(node, 1, PERIOD_MAX.as_secs()));
        let most = "how much may pass; limitador takes 0 if it is missing, which denies everything: write \
                    `max_value: 0` if that is meant";
        let max_value = self.required(&fields, "max_value", most).and_then(|node| self.whole(node, 0, BURST_MAX));
        let id = self.optional_name(&fields, "id");
        let name = self.optional_name(&fields, "name");
        let own = Own { id: id.as_deref(), name: name.as_deref() };
        let conditions = self.expressions(&fields, "conditions", CONDITIONS_MAX, |text| Condition::parse(text, own));
        let variables = self.expressions(&fields, "variables", VARIABLES_MAX, |text| Variable::parse(text, own));
        let (mut conditions, mut variables) = (conditions?, variables?);
        conditions.dedup_by(|one, other| one.source == other.source);
        variables.sort_by(|one, other| one.source.cmp(&other.source));
        variables.dedup_by(|one, other| one.source == other.source);
        let (namespace, seconds, max_value) = (namespace?, seconds?, max_value?);
        let quota = match quota(max_value, seconds, algorithm) {
            Ok(quota) => quota,
            Err(error) => {
                self.fault(fields.span, format_args!("{max_value} in {seconds} seconds: {error}"));
                return None;
            }
        };
        let limit = identity(&namespace, seconds, &conditions, &variables);
        let label = String::new();
        Some(Limit { namespace, max_value, seconds, name, id, label, limit, quota, handling, conditions, variables })
    }

    fn required<'n>(&mut self, fields: &Fields<'n>, name: &str, what: &str) -> Option<&'n Node> {
        let node = fields.get(name);
        if node.is_none() {
            self.fault(fields.span, format_args!("a limit needs `{name}`, {what}"));
        }
        node
    }

    fn optional_name(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        fields.get(name).filter(|node| node.value != Value::Null).and_then(|node| self.name_of(node))
    }

    /// A text that stands in header fields, metrics and messages.
    fn name_of(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, "a text of printable ASCII")?;
        let is_name =
            (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !is_name {
            let message = format!("expected 1 to {NAME_BYTES_MAX} characters of printable ASCII");
            self.fault(&node.span, message);
        }
        is_name.then(|| text.to_owned())
    }

    /// The expressions of a list, which may be missing or empty; `None` if one is wrong.
    fn expressions<T>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        most: usize,
        parse: impl Fn(&str) -> Result<T, CelError>,
    ) -> Option<Vec<T>> {
        let node = match fields.get(name) {
            None => return Some(Vec::new()),
            Some(node) if node.value == Value::Null => return Some(Vec::new()),
            Some(node) => node,
        };
        let list = match &node.value {
            Value::List(list) => list.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if list.len() > most {
            self.fault(&list[most].span, format_args!("these are too many {name}; the maximum is {most}"));
            return None;
        }
        let read: Vec<_> = list.iter().map(|node| self.expression(node, &parse)).collect();
        read.into_iter().collect()
    }

    fn expression<T>(&mut self, node: &Node, parse: impl Fn(&str) -> Result<T, CelError>) -> Option<T> {
        let text = self.text(node, "a text, an expression such as \"descriptors[0].method == 'POST'\"")?;
        parse(text).map_err(|error| self.fault(&within(node, text, error.at), error)).ok()
    }
}

fn quota(max_value: u64, seconds: u64, algorithm: Algorithm) -> Result<Quota, QuotaError> {
    let period = Duration::from_secs(seconds);
    match max_value {
        0 => Quota::block(period),
        _ => Quota::new(Rate::new(max_value, period)?)?.with_algorithm(algorithm),
    }
}
