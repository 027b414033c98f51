//! The paths of all policies in one tree, so that a request's path is walked once.
//!
//! Each level of the tree is a segment. Whatever the path, no node is visited twice, so a walk is bounded by the
//! patterns that begin like the path.

use std::collections::HashMap;

use crate::PathPattern;
use crate::path_pattern::{End, Segment};
use crate::policy_set::PolicySet;

/// For each path, the policies with a pattern that means it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathIndex {
    /// The first is the root, where a path's leading slash is behind us.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Where a segment of this text leads.
    literal: HashMap<Box<str>, usize>,
    /// Where any segment leads that is not empty.
    any: Option<usize>,
    /// The policies of patterns that end here.
    here: PolicySet,
    /// The policies of patterns that end in a text and `*`.
    begins: Vec<(Box<str>, PolicySet)>,
}

impl Default for PathIndex {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl PathIndex {
    /// With a pattern of the policy at `place`.
    pub(crate) fn add(&mut self, pattern: &PathPattern, place: usize) {
        let at = pattern.segments.iter().fold(0, |at, segment| self.child(at, segment));
        let node = &mut self.nodes[at];
        let one = PolicySet::default().with(place);
        match &pattern.end {
            End::Here => node.here.add(&one),
            End::Begins(begin) => match node.begins.iter_mut().find(|(known, _)| **known == **begin) {
                Some((_, set)) => set.add(&one),
                None => node.begins.push((begin.as_str().into(), one)),
            },
        }
    }

    fn child(&mut self, at: usize, segment: &Segment) -> usize {
        let new = self.nodes.len();
        let node = &mut self.nodes[at];
        let child = match segment {
            Segment::Is(text) => *node.literal.entry(text.as_str().into()).or_insert(new),
            Segment::Any => *node.any.get_or_insert(new),
        };
        if child == new {
            self.nodes.push(Node::default());
        }
        child
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == 1 && self.nodes[0].here.is_empty() && self.nodes[0].begins.is_empty()
    }

    /// The policies that mean this path, which is in its normal form.
    pub(crate) fn of(&self, path: &str) -> PolicySet {
        let mut found = PolicySet::default();
        if let Some(path) = path.strip_prefix('/') {
            self.walk(0, Some(path), &mut found);
        }
        found
    }

    /// Goes on from a node. Not deeper than patterns have segments.
    fn walk(&self, at: usize, rest: Option<&str>, found: &mut PolicySet) {
        let node = &self.nodes[at];
        let Some(rest) = rest else { return found.add(&node.here) };
        for (_, set) in node.begins.iter().filter(|(begin, _)| rest.starts_with(&**begin)) {
            found.add(set);
        }
        if node.literal.is_empty() && node.any.is_none() {
            return;
        }
        let (first, behind) = match rest.bytes().position(|byte| byte == b'/') {
            Some(slash) => (&rest[..slash], Some(&rest[slash + 1..])),
            None => (rest, None),
        };
        if let Some(child) = node.literal.get(first) {
            self.walk(*child, behind, found);
        }
        if let Some(child) = node.any.filter(|_| !first.is_empty()) {
            self.walk(child, behind, found);
        }
    }
}
