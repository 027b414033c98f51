//! JSON (RFC 8259) as a tree, with the places that its usual readers do not keep.

use super::fault::Fault;
use super::tree::{DEPTH_MAX, Key, Node, Value};

/// The tree of a text.
pub(crate) fn tree(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_spaces();
    let node = reader.value(0)?;
    reader.skip_spaces();
    match reader.at == text.len() {
        true => Ok(node),
        false => Err(reader.fault("the file goes on behind its value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        let value = match self.peek() {
            Some('{' | '[') if depth >= DEPTH_MAX => {
                return Err(self.fault(&format!("this is nested too deep; the maximum is {DEPTH_MAX}")));
            }
            Some('{') => self.table(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { span: start..self.at, value })
    }

    fn table(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        self.items('}', |reader| {
            let start = reader.at;
            if reader.peek() != Some('"') {
                return Err(reader.fault("expected a key in double quotes"));
            }
            let key = Key { name: reader.string()?, span: start..reader.at };
            reader.skip_spaces();
            if !reader.take(':') {
                return Err(reader.fault("expected `:` and a value behind the key"));
            }
            reader.skip_spaces();
            entries.push((key, reader.value(depth + 1)?));
            Ok(())
        })?;
        Ok(Value::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut list = Vec::new();
        self.items(']', |reader| {
            list.push(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Value::List(list))
    }

    /// Items with commas between them, from the opening bracket to the closing one.
    fn items(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.at += 1;
        self.skip_spaces();
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_spaces();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(',') {
                return Err(self.fault(&format!("expected `,` or `{close}`")));
            }
            self.skip_spaces();
            if self.peek() == Some(close) {
                return Err(self.fault("JSON has no comma behind the last item; leave it out"));
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(c) if c >= ' ' => text.push(c),
                Some(c) => {
                    self.at -= c.len_utf8();
                    return Err(self.fault("a text ends on its line; a line break is written `\\n`"));
                }
                None => return Err(self.fault("the text has no end; expected `\"`")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        Ok(match self.next() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let first = self.four_digits()?;
                let code = match first {
                    0xd800..0xdc00 if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        let second = self.four_digits()?;
                        0x1_0000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff)
                    }
                    _ => first,
                };
                char::from_u32(code).ok_or_else(|| self.fault("the escape before this is no character"))?
            }
            _ => return Err(self.fault("this escape is none that JSON has")),
        })
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.fault("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let number = &rest[..length];
        let digits = number.strip_prefix('-').unwrap_or(number);
        let has_zero_in_front = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        if number.parse::<f64>().is_err() || has_zero_in_front || !is_plain || number.ends_with('.') {
            return Err(self.fault("this is no number; a text such as `60/min` is written in double quotes"));
        }
        self.at += length;
        Ok(Value::Number(number.to_owned()))
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let words = [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        let found = words.into_iter().find(|(word, _)| self.text[self.at..].starts_with(word));
        match (found, self.peek()) {
            (Some((word, value)), _) => {
                self.at += word.len();
                Ok(value)
            }
            (None, Some('\'')) => Err(self.fault("texts are written in double quotes")),
            (None, Some('/' | '#')) => Err(self.fault("JSON has no comments; TOML and YAML have")),
            (None, None) => Err(self.fault("the file ends here; expected a value")),
            (None, Some(_)) => Err(self.fault("expected a value; texts are written in double quotes")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, c: char) -> bool {
        let taken = self.peek() == Some(c);
        self.at += if taken { c.len_utf8() } else { 0 };
        taken
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn fault(&self, message: &str) -> Fault {
        Fault::new(&(self.at..self.at), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_read() {
        let text = |json: &str| match tree(json).map(|node| node.value) {
            Ok(Value::Text(text) | Value::Number(text)) => text,
            other => format!("{other:?}"),
        };
        assert_eq!(text(r#" "a\"\\\/\n\u00e9\ud83d\ude00" "#), "a\"\\/\n\u{e9}\u{1f600}");
        assert_eq!(["0", "-1", "1.5e3"].map(text), ["0", "-1", "1.5e3"]);
        for wrong in [
            "01",
            "1.",
            "1x",
            "+1",
            "'a'",
            "\"a",
            "\"\n\"",
            r#""\x""#,
            r#""\ud800""#,
            "{a:1}",
            "[1,]",
            "[1 2]",
            "",
            "nul",
            "1 2",
        ] {
            assert!(tree(wrong).is_err(), "{wrong}");
        }
        let deep = "[".repeat(DEPTH_MAX + 1);
        assert!(tree(&deep).unwrap_err().message.contains("too deep"));
    }
}
