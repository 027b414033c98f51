//! A configuration file as a tree, whatever it is written in: each value with the place where it stands.

use std::ops::Range;

/// How deep lists and tables may be nested.
pub(crate) const DEPTH_MAX: usize = 32;

/// A value, and the bytes of the file that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    Text(String),
    /// A date or time, as TOML has them.
    Time(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

/// The name in front of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) span: Range<usize>,
    pub(crate) name: String,
}

impl Node {
    /// What it is, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Time(_) => "a date or time",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}
