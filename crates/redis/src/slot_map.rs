//! Which node serves which slot, as the cluster says.

use std::sync::Arc;

use redis::Value;

use crate::address::HostPort;
use crate::link::Link;
use crate::slots::SLOTS;
use crate::target::text;

/// The most nodes that are known at once.
pub(crate) const NODES_MAX: usize = 1_024;
/// No node serves the slot, as far as is known.
const NOBODY: u16 = u16::MAX;

/// A primary, and the way to it.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) at: HostPort,
    pub(crate) link: Link,
}

/// What is known of a cluster. A new one takes its place when something changes.
#[derive(Clone)]
pub(crate) struct SlotMap {
    /// The place in `nodes` of the one that serves the slot.
    owners: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
}

impl SlotMap {
    pub(crate) fn empty() -> Self {
        Self { owners: vec![NOBODY; usize::from(SLOTS)].into_boxed_slice(), nodes: Vec::new() }
    }

    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    pub(crate) fn node(&self, at: &HostPort) -> Option<&Arc<Node>> {
        self.nodes.iter().find(|node| node.at == *at)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter()
    }

    /// The slots `first` to `last` are served by this node.
    pub(crate) fn give(&mut self, first: u16, last: u16, node: &Arc<Node>) {
        let Some(place) = self.meet(node).filter(|_| first <= last && last < SLOTS) else { return };
        self.owners[usize::from(first)..=usize::from(last)].fill(place);
    }

    /// Takes the node in, if it is not known yet. `None` if there are [`NODES_MAX`] of them already.
    pub(crate) fn meet(&mut self, node: &Arc<Node>) -> Option<u16> {
        let known = self.nodes.iter().position(|known| known.at == node.at);
        let place = known.unwrap_or(self.nodes.len());
        if place >= NODES_MAX {
            return None;
        }
        if known.is_none() {
            self.nodes.push(Arc::clone(node));
        }
        u16::try_from(place).ok()
    }
}

/// Some slots, and who serves them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) at: HostPort,
}

/// Reads the answer to `CLUSTER SLOTS`, which was asked of `asked`: a node that does not know its own host is where it was
/// asked. `None` if it is no such answer.
pub(crate) fn ranges(answer: Value, asked: &HostPort) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.into_iter().map(|one| range(one, asked)).collect()
}

fn range(one: Value, asked: &HostPort) -> Option<Range> {
    let Value::Array(parts) = one else { return None };
    let mut parts = parts.into_iter();
    let mut slot = || match parts.next()? {
        Value::Int(slot) => u16::try_from(slot).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    };
    let (first, last) = (slot()?, slot()?);
    let Value::Array(primary) = parts.next()? else { return None };
    let mut primary = primary.into_iter();
    let host = primary.next().and_then(text).filter(|host| !host.is_empty() && host != "?");
    let port = text(primary.next()?)?.parse().ok()?;
    Some(Range { first, last, at: HostPort { host: host.unwrap_or_else(|| asked.host.clone()), port } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_with_their_primary_and_without_its_replicas() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let node = |host, port| Value::Array(vec![host, Value::Int(port), bulk("id")]);
        let asked = HostPort { host: "asked".to_owned(), port: 1 };
        let answer = Value::Array(vec![
            Value::Array(vec![Value::Int(0), Value::Int(99), node(bulk("a"), 7), node(bulk("replica"), 8)]),
            Value::Array(vec![Value::Int(100), Value::Int(100), node(bulk(""), 9)]),
            Value::Array(vec![Value::Int(101), Value::Int(16_383), node(Value::Nil, 10)]),
        ]);
        let read = ranges(answer, &asked).unwrap();
        let told = read.iter().map(|one| (one.first, one.last, one.at.to_string())).collect::<Vec<_>>();
        let expected = [(0, 99, "a:7"), (100, 100, "asked:9"), (101, 16_383, "asked:10")];
        assert_eq!(told, expected.map(|(first, last, at)| (first, last, at.to_owned())));

        let beyond = Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16_384), node(bulk("a"), 7)])]);
        assert_eq!(ranges(beyond, &asked), None);
        assert_eq!(ranges(Value::Okay, &asked), None);
    }
}
