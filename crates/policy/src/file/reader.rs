//! From the nodes of a tree to values: whatever is wrong is noted, and reading goes on.

use std::collections::HashSet;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use super::fault::Fault;
use super::near::near;
use super::tree::{Key, Node, Value};
use crate::Printable;

/// The keys that a kind of table has.
pub(crate) struct Kind {
    /// What it is, for a message: `a policy`.
    pub(crate) what: &'static str,
    pub(crate) keys: &'static [&'static str],
    /// Words that others use, and what to do here.
    pub(crate) meant: &'static [(&'static str, &'static str)],
}

/// The entries of a table whose keys are known.
pub(crate) struct Fields<'n> {
    pub(crate) span: &'n Range<usize>,
    entries: Vec<&'n (Key, Node)>,
}

impl<'n> Fields<'n> {
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|(_, node)| node)
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&'n (Key, Node)> {
        self.entries.iter().find(|(key, _)| key.name == name).copied()
    }
}

/// What is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) faults: Vec<Fault>,
}

impl Reader {
    pub(crate) fn fault(&mut self, span: &Range<usize>, message: impl Display) {
        self.faults.push(Fault::new(span, message));
    }

    fn unexpected(&mut self, node: &Node, expected: &str) {
        let hint = match node.value {
            Value::Number(_) | Value::Bool(_) | Value::Time(_) if expected.starts_with("a text") => {
                "; put it in double quotes"
            }
            _ => "",
        };
        self.fault(&node.span, format_args!("expected {expected}, found {}{hint}", node.kind()));
    }

    /// The entries of a table, each key once.
    pub(crate) fn table<'n>(&mut self, node: &'n Node, expected: &str) -> Option<Vec<&'n (Key, Node)>> {
        let Value::Table(entries) = &node.value else {
            self.unexpected(node, expected);
            return None;
        };
        let (mut names, mut seen) = (HashSet::new(), Vec::new());
        for entry in entries {
            match names.insert(entry.0.name.as_str()) {
                true => seen.push(entry),
                false => self.fault(&entry.0.span, format_args!("`{}` is there already", printable(&entry.0.name))),
            }
        }
        Some(seen)
    }

    /// The entries of a table of a known kind.
    pub(crate) fn fields<'n>(&mut self, node: &'n Node, kind: &Kind) -> Option<Fields<'n>> {
        let mut entries = self.table(node, &format!("{} as a table", kind.what))?;
        entries.retain(|(key, _)| {
            let is_known = kind.keys.contains(&key.name.as_str());
            if !is_known {
                self.unknown(key, kind);
            }
            is_known
        });
        Some(Fields { span: &node.span, entries })
    }

    fn unknown(&mut self, key: &Key, kind: &Kind) {
        let name = printable(&key.name);
        let plain = key.name.to_ascii_lowercase().replace('-', "_");
        let known = || kind.keys.join("`, `");
        let message =
            match (kind.meant.iter().find(|(word, _)| *word == plain), near(&key.name, kind.keys.iter().copied())) {
                (Some((_, meant)), _) => format!("{} has no key `{name}`; {meant}", kind.what),
                (None, Some(meant)) => format!("{} has no key `{name}`; did you mean `{meant}`?", kind.what),
                (None, None) => format!("{} has no key `{name}`; it has `{}`", kind.what, known()),
            };
        self.fault(&key.span, message);
    }

    /// A text.
    pub(crate) fn text<'n>(&mut self, node: &'n Node, expected: &str) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => {
                self.unexpected(node, expected);
                None
            }
        }
    }

    /// A text that means something.
    pub(crate) fn parsed<T>(&mut self, node: &Node, expected: &str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let text = self.text(node, expected)?;
        text.parse().map_err(|error| self.fault(&node.span, error)).ok()
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let list = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let text = self.text(node, &format!("a text, one of {list}"))?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let text = printable(text);
            match near(&text, words.iter().map(|(word, _)| *word)) {
                Some(meant) => self.fault(&node.span, format_args!("`{text}` is not known; did you mean `{meant}`?")),
                None => self.fault(&node.span, format_args!("`{text}` is not known; expected one of {list}")),
            }
        }
        found
    }

    pub(crate) fn flag(&mut self, node: &Node) -> Option<bool> {
        match node.value {
            Value::Bool(is) => Some(is),
            _ => {
                self.unexpected(node, "true or false");
                None
            }
        }
    }

    /// A whole number within a range.
    pub(crate) fn whole(&mut self, node: &Node, from: u64, to: u64) -> Option<u64> {
        let number = match &node.value {
            Value::Number(text) => text.replace('_', "").parse().ok().filter(|number| (from..=to).contains(number)),
            _ => None,
        };
        if number.is_none() {
            self.fault(&node.span, format_args!("expected a whole number from {from} to {to}"));
        }
        number
    }

    /// The nodes of a list; a node that is no list stands for a list of itself.
    pub(crate) fn each<'n>(&mut self, node: &'n Node, expected: &str) -> &'n [Node] {
        match &node.value {
            Value::List(list) => {
                if list.is_empty() {
                    self.fault(
                        &node.span,
                        format_args!("the list is empty; expected {expected}, or leave the key out"),
                    );
                }
                list
            }
            _ => std::slice::from_ref(node),
        }
    }

    /// What the texts of a list mean; a text alone stands for a list of itself.
    pub(crate) fn all_parsed<T>(&mut self, node: Option<&Node>, expected: &str) -> Vec<T>
    where
        T: FromStr<Err: Display>,
    {
        let Some(node) = node else { return Vec::new() };
        self.each(node, expected).iter().filter_map(|node| self.parsed(node, expected)).collect()
    }
}

/// The bytes of the file from byte `at` of a text's value on, if the text is written without escapes; else all of it.
pub(crate) fn within(node: &Node, text: &str, at: usize) -> Range<usize> {
    let (start, end) = (node.span.start, node.span.end);
    match (end - start).checked_sub(text.len()) {
        Some(0) if at < text.len() => start + at..end,
        Some(2) if at < text.len() => start + 1 + at..end - 1,
        _ => start..end,
    }
}

pub(crate) fn printable(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}
