//! Reads a text front to back. What a caller expects is asked for by its kind, and the answer borrows the text.

use std::borrow::Cow;

use tidegate_policy::Printable;
use tidegate_policy::file::near;

use super::Fault;

/// The most items of one list or object: no caller reads more.
const ITEMS_MAX: usize = 1_024;

/// Reads a text, which is one value, by `value`.
///
/// # Errors
/// It is no JSON, or not what `value` expects.
pub(crate) fn read<'a, T>(text: &'a str, value: impl FnOnce(&mut Reader<'a>) -> Result<T, Fault>) -> Result<T, Fault> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_spaces();
    if reader.at == text.len() {
        return Err(reader.fault("there is nothing here; expected JSON"));
    }
    let value = value(&mut reader)?;
    reader.skip_spaces();
    if reader.at < text.len() {
        return Err(reader.fault("the text goes on behind its value"));
    }
    Ok(value)
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    List,
    Text,
    Number,
    True,
    False,
    Null,
    /// No JSON.
    Nothing,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Text => "a text",
            Self::Number => "a number",
            Self::True | Self::False => "a truth value",
            Self::Null => "null; leave the field out",
            Self::Nothing => "something that is no JSON",
        }
    }
}

/// A text that is being read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Something that is wrong with what comes next.
    pub(crate) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault::new(self.at, message)
    }

    /// The place of what comes next, for a fault that is found later.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.text.as_bytes().get(self.at) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::Text,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            _ if self.rest().starts_with("true") => Kind::True,
            _ if self.rest().starts_with("false") => Kind::False,
            _ if self.rest().starts_with("null") => Kind::Null,
            _ => Kind::Nothing,
        }
    }

    /// Reads an object that has no fields but `known`, each at most once, at most 32 of them; `field` reads the value of
    /// the one that it is given. `what` is what the object is, for a message.
    pub(crate) fn object(
        &mut self,
        what: &str,
        known: &[&'static str],
        mut field: impl FnMut(&mut Self, &'static str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut seen = 0_u32;
        self.entries(what, |reader, name, name_at| {
            let Some(place) = known.iter().position(|known| *known == *name) else {
                return Err(unknown(what, name, known, name_at));
            };
            if seen & 1 << place != 0 {
                return Err(Fault::new(name_at, format_args!("`{name}` is there twice")));
            }
            seen |= 1 << place;
            field(reader, known[place]).map_err(|fault| fault.within(name))
        })
    }

    /// Reads an object of any fields. `entry` is given the name and the place of each, and reads its value.
    pub(crate) fn entries(
        &mut self,
        what: &str,
        mut entry: impl FnMut(&mut Self, &Cow<'a, str>, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(Kind::Object, what)?;
        self.items(b'}', |reader, _| {
            let name_at = reader.at;
            if reader.kind() != Kind::Text {
                return Err(reader.fault("expected the name of a field, in double quotes"));
            }
            let name = reader.quoted()?;
            reader.skip_spaces();
            if !reader.take(b':') {
                return Err(reader.fault("expected `:` and a value behind the name of a field"));
            }
            reader.skip_spaces();
            entry(reader, &name, name_at)
        })
    }

    /// Reads a list; `item` reads the item of this place.
    pub(crate) fn list(
        &mut self,
        what: &str,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(Kind::List, what)?;
        self.items(b']', |reader, place| item(reader, place).map_err(|fault| fault.within(place)))
    }

    /// Items with commas between them, from the opening bracket to the closing one.
    fn items(&mut self, close: u8, mut item: impl FnMut(&mut Self, usize) -> Result<(), Fault>) -> Result<(), Fault> {
        self.at += 1;
        self.skip_spaces();
        if self.take(close) {
            return Ok(());
        }
        for place in 0..ITEMS_MAX {
            item(self, place)?;
            self.skip_spaces();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.fault(format_args!("expected `,` or `{}`", char::from(close))));
            }
            self.skip_spaces();
        }
        Err(self.fault(format_args!("there are more than {ITEMS_MAX} items")))
    }

    /// Reads a text.
    pub(crate) fn text(&mut self, what: &str) -> Result<Cow<'a, str>, Fault> {
        self.expect(Kind::Text, what)?;
        self.quoted()
    }

    /// Reads `true` or `false`.
    pub(crate) fn truth(&mut self) -> Result<bool, Fault> {
        let (is_true, length) = match self.kind() {
            Kind::True => (true, "true".len()),
            Kind::False => (false, "false".len()),
            other => return Err(self.fault(format_args!("expected true or false, not {}", other.name()))),
        };
        self.at += length;
        Ok(is_true)
    }

    /// Reads a whole number from 0 to 2^64 - 1; it may be written `5`, `5.0` or `5e0`.
    pub(crate) fn whole_number(&mut self, what: &str) -> Result<u64, Fault> {
        self.expect(Kind::Number, what)?;
        let rest = self.rest();
        let is_of_it = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let number = &rest[..rest.bytes().position(|byte| !is_of_it(byte)).unwrap_or(rest.len())];
        let whole = match number.parse::<u64>() {
            Ok(whole) if is_plain(number) => Some(whole),
            _ => self.whole_of(number)?,
        };
        let whole = whole.ok_or_else(|| self.fault(format_args!("expected {what}, not `{}`", shown(number))))?;
        self.at += number.len();
        Ok(whole)
    }

    /// A number that is not written in digits alone; `None` if it is not a whole one from 0 to 2^64 - 1.
    fn whole_of(&self, number: &str) -> Result<Option<u64>, Fault> {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let (mantissa, exponent) =
            digits.split_once(['e', 'E']).map_or((digits, "0"), |(before, after)| (before, after));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain(whole) || !all_digits(fraction) || !all_digits(exponent) {
            return Err(self.fault(format_args!("`{}` is no number", shown(number))));
        }
        // Within the range, a number with a fraction of zero is read exactly as far as its digits can be.
        let value = number.parse::<f64>().ok().filter(|value| value.fract() == 0.0);
        Ok(value.filter(|value| (0.0..18_446_744_073_709_551_616.0).contains(value)).map(|value| value as u64))
    }

    fn quoted(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let rest = self.rest();
        let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
        if rest.as_bytes().get(end) == Some(&b'"') {
            self.at += end + 1;
            return Ok(Cow::Borrowed(&rest[..end]));
        }
        self.escaped().map(Cow::Owned)
    }

    /// The rest of a text that has escapes, or that is wrong.
    fn escaped(&mut self) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
            text.push_str(&rest[..end]);
            self.at += end;
            match rest.as_bytes().get(end) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => {
                    return Err(self.fault("a control character in a text is written with an escape, such as `\\n`"));
                }
                None => return Err(self.fault("the text has no end; expected `\"`")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let plain = match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => return self.unit_escape(),
            Some(quoted @ (b'"' | b'\\' | b'/')) => char::from(*quoted),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.fault("this escape is none that JSON has")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// A character by its number in UTF-16, which is two escapes for one beyond the first 65,536.
    fn unit_escape(&mut self) -> Result<char, Fault> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
        };
        let first = unit(self.at).ok_or_else(|| self.fault("expected four hexadecimal digits behind `\\u`"))?;
        let units = [first, unit(self.at + 6).unwrap_or_default()];
        let decoded = char::decode_utf16(units).next().unwrap_or(Ok('\0'));
        let decoded =
            decoded.map_err(|_| self.fault("this escape is half a character; the other half is not there"))?;
        self.at += 6 * decoded.len_utf16();
        Ok(decoded)
    }

    fn expect(&self, kind: Kind, what: &str) -> Result<(), Fault> {
        match self.kind() {
            found if found == kind => Ok(()),
            found => Err(self.fault(format_args!("expected {what}, not {}", found.name()))),
        }
    }

    fn rest(&self) -> &'a str {
        // `at` stands behind ASCII, or behind whole pieces of text.
        &self.text[self.at..]
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_spaces(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    }
}

/// Digits without a needless zero in front.
fn is_plain(digits: &str) -> bool {
    digits == "0"
        || digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.bytes().next().is_some_and(|it| it != b'0')
}

fn shown(number: &str) -> Printable<'_> {
    Printable(number.as_bytes())
}

#[cold]
fn unknown(what: &str, name: &str, known: &[&'static str], at: usize) -> Fault {
    let meant = near(name, known.iter().copied()).map(|meant| format!("; did you mean `{meant}`?"));
    let listed =
        || format!("; there are {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "));
    let name = Printable(name.as_bytes());
    Fault::new(at, format_args!("there is no field `{name}` in {what}{}", meant.unwrap_or_else(listed)))
}
