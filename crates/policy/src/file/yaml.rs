//! YAML as a tree: plain data, as its core schema reads it.
//!
//! Anchors, aliases, tags and several documents are refused by name: a file that says what it means does not need
//! them, and an alias of an alias can stand for more than fits.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::Fault;
use super::tree::{DEPTH_MAX, Key, Node, Value};

/// The tree of a text.
pub(crate) fn tree(text: &str) -> Result<Node, Fault> {
    let mut builder = Builder { offsets: Offsets::of(text), open: Vec::new(), root: None, end: text.len() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = builder.offsets.byte(error.marker().index());
            Fault::new(&(at..at), format_args!("this is no YAML: {}", error.info()))
        })?;
        let span = builder.offsets.span(span);
        builder.take(event, span)?;
    }
    let empty = Node { span: 0..0, value: Value::Table(Vec::new()) };
    Ok(builder.root.unwrap_or(empty))
}

/// From the parser's places, in characters, to bytes.
struct Offsets(Option<Vec<usize>>);

impl Offsets {
    fn of(text: &str) -> Self {
        Self((!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()))
    }

    fn byte(&self, index: usize) -> usize {
        match &self.0 {
            Some(offsets) => offsets.get(index).or(offsets.last()).copied().unwrap_or(0),
            None => index,
        }
    }

    fn span(&self, span: Span) -> Range<usize> {
        self.byte(span.start.index())..self.byte(span.end.index())
    }
}

/// A list or table whose end has not come.
enum Open {
    List(Range<usize>, Vec<Node>),
    Table(Range<usize>, Vec<(Key, Node)>, Option<Key>),
}

struct Builder {
    offsets: Offsets,
    /// At most [`DEPTH_MAX`].
    open: Vec<Open>,
    root: Option<Node>,
    end: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), Fault> {
        match event {
            Event::Alias(_) => Err(Fault::new(&span, "aliases are not read here; write the value out")),
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                Err(Fault::new(&span, "tags are not read here; leave out what begins with `!`"))
            }
            Event::Scalar(text, style, _, None) => {
                self.add(Node { span, value: scalar(&text, style == ScalarStyle::Plain) })
            }
            Event::SequenceStart(_, None) => self.open(&span, Open::List(span.clone(), Vec::new())),
            Event::MappingStart(_, None) => self.open(&span, Open::Table(span.clone(), Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(start, list)) => {
                    self.add(Node { span: start.start..span.end.max(start.end), value: Value::List(list) })
                }
                Some(Open::Table(start, entries, _)) => {
                    self.add(Node { span: start.start..span.end.max(start.end), value: Value::Table(entries) })
                }
                None => Ok(()),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Fault::new(&span, "a second document begins here; one file is one configuration"))
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn open(&mut self, span: &Range<usize>, open: Open) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::new(span, format_args!("this is nested too deep; the maximum is {DEPTH_MAX}")));
        }
        if let Some(Open::Table(_, _, key @ None)) = self.open.last_mut() {
            *key = None;
            return Err(Fault::new(span, "a key is a text, not a list or table"));
        }
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), Fault> {
        match self.open.last_mut() {
            Some(Open::List(_, list)) => list.push(node),
            Some(Open::Table(_, entries, key)) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let name = match node.value {
                        Value::Text(name) | Value::Number(name) => name,
                        Value::Bool(is) => is.to_string(),
                        _ => return Err(Fault::new(&node.span, "a key is a text")),
                    };
                    *key = Some(Key { span: node.span, name });
                }
            },
            None => self.root = Some(Node { span: node.span.start..self.end.max(node.span.end), ..node }),
        }
        Ok(())
    }
}

/// The core schema of YAML 1.2: `no` and `on` are texts, and so is `60/min`.
fn scalar(text: &str, is_plain: bool) -> Value {
    let is_number = || {
        let digits = text.trim_start_matches(['-', '+']);
        digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
    };
    match text {
        _ if !is_plain => Value::Text(text.to_owned()),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number() => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}
