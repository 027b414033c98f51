//! Complaints about a file that reads well: whoever acts on it cannot do what it says.
//!
//! The engine's types know nothing of files, so the place is looked up again, by the names of the policy and the key.

use std::ops::Range;

use super::fault::Fault;
use super::tree::{Node, Value};
use super::{ConfigError, Format, tree_of};

/// Something that a policy says, and that cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The policy's name.
    pub policy: String,
    /// The policy's key that says it, such as `penalty`; the policy as a whole if it has no such key.
    pub key: &'static str,
    /// What cannot be done, and what to do instead.
    pub message: String,
}

/// The error that these are wrong, each where it stands. The other arguments are those that were given to
/// [`read`](super::read).
#[must_use]
pub fn complain(name: &str, contents: &str, format: Format, complaints: &[Complaint]) -> ConfigError {
    let tree = tree_of(contents, format).ok().map(|(tree, _)| tree);
    let fault = |complaint: &Complaint| {
        let place = tree.as_ref().and_then(|tree| place(tree, complaint));
        Fault::new(&place.unwrap_or(0..0), &complaint.message)
    };
    ConfigError::new(name, contents, complaints.iter().map(fault).collect())
}

fn place(tree: &Node, complaint: &Complaint) -> Option<Range<usize>> {
    let Value::List(policies) = &entry(tree, "policies")?.1.value else { return None };
    let named = policies.iter().find_map(|policy| {
        let (_, name) = entry(policy, "name")?;
        matches!(&name.value, Value::Text(text) if *text == complaint.policy).then_some((policy, name))
    });
    let (policy, name) = named?;
    Some(entry(policy, complaint.key).map_or(&name.span, |(key, _)| &key.span).clone())
}

fn entry<'n>(node: &'n Node, name: &str) -> Option<(&'n super::tree::Key, &'n Node)> {
    let Value::Table(entries) = &node.value else { return None };
    entries.iter().find(|(key, _)| key.name == name).map(|(key, node)| (key, node))
}
