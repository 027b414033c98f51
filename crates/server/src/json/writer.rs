//! Writes an object, field by field, into a text.

use std::fmt::Write as _;

use tidegate_core::Limit;

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Writer<'t> {
    text: &'t mut String,
    is_first: bool,
}

impl<'t> Writer<'t> {
    /// An object at the end of `text`. [`Writer::end`] closes it.
    pub(crate) fn object(text: &'t mut String) -> Self {
        text.push('{');
        Self { text, is_first: true }
    }

    /// A field whose value is a text.
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        self.name(name);
        push_quoted(self.text, value);
    }

    /// A field whose value is a word of ours, which needs no escapes.
    pub(crate) fn word(&mut self, name: &'static str, word: &'static str) {
        self.name(name);
        self.text.push('"');
        self.text.push_str(word);
        self.text.push('"');
    }

    /// A field whose value is a limit as people write it, which needs no escapes.
    pub(crate) fn limit(&mut self, name: &'static str, limit: impl Into<Limit>) {
        self.name(name);
        // Writing into a text does not fail.
        let _ = write!(self.text, "\"{}\"", limit.into());
    }

    /// A field whose value is a number.
    pub(crate) fn number(&mut self, name: &'static str, value: u64) {
        self.name(name);
        self.text.push_str(itoa::Buffer::new().format(value));
    }

    /// A field whose value is true or false.
    pub(crate) fn truth(&mut self, name: &'static str, value: bool) {
        self.name(name);
        self.text.push_str(if value { "true" } else { "false" });
    }

    /// A field whose value is a list of objects; `write` writes one for each item.
    pub(crate) fn list<I: IntoIterator>(
        &mut self,
        name: &'static str,
        items: I,
        write: impl Fn(&mut Writer<'_>, I::Item),
    ) {
        self.name(name);
        self.text.push('[');
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            let mut object = Writer::object(self.text);
            write(&mut object, item);
            object.end();
        }
        self.text.push(']');
    }

    pub(crate) fn end(self) {
        self.text.push('}');
    }

    /// The name is ours, and needs no escapes.
    fn name(&mut self, name: &'static str) {
        if !self.is_first {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
        self.is_first = false;
    }
}

fn push_quoted(text: &mut String, value: &str) {
    text.push('"');
    let mut rest = value;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f)) {
        text.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            quoted @ (b'"' | b'\\') => text.extend(['\\', char::from(quoted)]),
            control => text.push_str(&format!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_reads_back_as_it_was_meant() {
        let mut text = String::new();
        let mut object = Writer::object(&mut text);
        object.text("text", "a\"\\\r\n\0\u{7f}\u{e9}\u{1f600}");
        object.number("number", u64::MAX);
        object.truth("truth", false);
        object.word("word", "ours");
        object.limit("limit", "60/min burst 10".parse::<Limit>().unwrap());
        object.list("list", [1, 2], |object, item| object.number("item", item));
        object.list("none", [0; 0], |_, _| ());
        object.end();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expect = serde_json::json!({ "text": "a\"\\\r\n\0\u{7f}\u{e9}\u{1f600}", "number": u64::MAX, "truth": false,
                                         "word": "ours", "limit": "60/min burst 10",
                                         "list": [{ "item": 1 }, { "item": 2 }], "none": [] });
        assert_eq!(read, expect);
    }
}
