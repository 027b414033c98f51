//! TOML as a tree.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::tree::{Key, Node, Value};

/// The tree of a text, and everything that is wrong with its syntax.
pub(crate) fn tree(text: &str) -> (Node, Vec<Fault>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let faults = errors.iter().map(|error| {
        let message = error.message().trim_end().replace('\n', ", ");
        Fault::new(&error.span().unwrap_or(0..0), message)
    });
    let faults = faults.collect();
    (Node { span: 0..text.len(), value: Value::Table(entries(table.into_inner(), text)) }, faults)
}

fn entries(table: DeTable<'_>, text: &str) -> Vec<(Key, Node)> {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let key = Key { span: key.span(), name: String::from(key.into_inner()) };
        let span = value.span();
        (key, node(value.into_inner(), span, text))
    };
    let mut entries: Vec<_> = table.into_iter().map(entry).collect();
    // The parser orders them by name; the file has an order of its own.
    entries.sort_by_key(|(key, _)| key.span.start);
    entries
}

fn node(value: DeValue<'_>, span: Range<usize>, text: &str) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => Value::Number(number.to_string()),
        DeValue::Float(number) => Value::Number(number.to_string()),
        DeValue::Boolean(is) => Value::Bool(is),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(list) => Value::List(
            list.into_iter()
                .map(|one| {
                    let span = one.span();
                    node(one.into_inner(), span, text)
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(entries(table, text)),
    };
    Node { span, value }
}
