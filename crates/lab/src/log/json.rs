//! One JSON object on a line, walked through once for the fields that are wanted.
//!
//! It is no validator: what is not wanted is only passed over, and a line that is cut off is found out.

use crate::log::field::{Field, Values};
use crate::log::json_names::{NAMES_MAX, Name};
use crate::log::stamp::Clock;
use crate::log::{Fault, Line};

/// The deepest nesting that is followed.
const DEPTH_MAX: usize = 16;
/// The longest path of names, in bytes; what lies deeper is passed over.
const PATH_BYTES_MAX: usize = 96;

/// Reads a line into `out`, which is a blank one.
pub(crate) fn read<'a>(line: &'a [u8], names: &[Name], clock: &mut Clock, out: &mut Line<'a>) -> Result<(), Fault<'a>> {
    let mut walk = Walk { rest: line, names, path: [0; PATH_BYTES_MAX], found: [None; NAMES_MAX] };
    walk.value(0, 0)?;
    if !walk.rest.trim_ascii().is_empty() {
        return Err(Fault::new("the end of the line", walk.rest));
    }
    let mut values = Values::new(out);
    let found = walk.found;
    let mut taken: [Option<Field>; NAMES_MAX] = [None; NAMES_MAX];
    for (at, ((_, field), value)) in names.iter().zip(found).enumerate() {
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        let same = |other: Field| std::mem::discriminant(&other) == std::mem::discriminant(field);
        if taken[..at].iter().flatten().any(|other| same(*other)) {
            continue;
        }
        values.take(*field, value, clock)?;
        taken[at] = Some(*field);
    }
    values.finish(clock)
}

struct Walk<'a, 'n> {
    rest: &'a [u8],
    names: &'n [Name],
    path: [u8; PATH_BYTES_MAX],
    found: [Option<&'a [u8]>; NAMES_MAX],
}

impl<'a> Walk<'a, '_> {
    /// Passes over a value, and keeps it if its path is wanted. The first element of an array has the array's path.
    fn value(&mut self, path_bytes: usize, depth: usize) -> Result<(), Fault<'a>> {
        if depth > DEPTH_MAX {
            return Err(Fault::new("JSON that is less deep", self.rest));
        }
        self.rest = self.rest.trim_ascii_start();
        match self.rest.first() {
            Some(b'{') => self.members(path_bytes, depth),
            Some(b'[') => self.elements(path_bytes, depth),
            Some(b'"') => {
                let text = self.string()?;
                self.keep(path_bytes, text);
                Ok(())
            }
            Some(_) => {
                let end = self.rest.iter().position(|byte| b",}] \t".contains(byte)).unwrap_or(self.rest.len());
                let (value, rest) = self.rest.split_at(end);
                self.rest = rest;
                if end == 0 {
                    return Err(Fault::new("a JSON value", rest));
                }
                self.keep(path_bytes, if value == b"null" { b"" } else { value });
                Ok(())
            }
            None => Err(Fault::new("a JSON value", self.rest)),
        }
    }

    fn members(&mut self, path_bytes: usize, depth: usize) -> Result<(), Fault<'a>> {
        self.byte(b'{', "{")?;
        if self.ends(b'}') {
            return Ok(());
        }
        loop {
            self.rest = self.rest.trim_ascii_start();
            let name = self.string()?;
            self.byte(b':', ":")?;
            let longer = self.push(path_bytes, name);
            self.value(longer, depth + 1)?;
            if self.ends(b'}') {
                return Ok(());
            }
            self.byte(b',', ", or }")?;
        }
    }

    fn elements(&mut self, path_bytes: usize, depth: usize) -> Result<(), Fault<'a>> {
        self.byte(b'[', "[")?;
        let mut path_bytes = path_bytes;
        while !self.ends(b']') {
            self.value(path_bytes, depth + 1)?;
            path_bytes = PATH_BYTES_MAX + 1;
            if self.ends(b']') {
                return Ok(());
            }
            self.byte(b',', ", or ]")?;
        }
        Ok(())
    }

    /// The path with a name more; one that is too long is no path.
    fn push(&mut self, path_bytes: usize, name: &[u8]) -> usize {
        let start = if path_bytes == 0 { 0 } else { path_bytes + 1 };
        let end = start + name.len();
        if end > PATH_BYTES_MAX {
            return PATH_BYTES_MAX + 1;
        }
        if path_bytes > 0 {
            self.path[path_bytes] = b'.';
        }
        self.path[start..end].copy_from_slice(name);
        end
    }

    fn keep(&mut self, path_bytes: usize, value: &'a [u8]) {
        let Some(path) = self.path.get(..path_bytes) else { return };
        if let Some(at) = self.names.iter().position(|(name, _)| name.as_bytes() == path) {
            self.found[at].get_or_insert(value);
        }
    }

    fn string(&mut self) -> Result<&'a [u8], Fault<'a>> {
        self.byte(b'"', "\"")?;
        let is_end = |at: &usize| self.rest[..*at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0;
        let end =
            memchr::memchr_iter(b'"', self.rest).find(is_end).ok_or(Fault::new("the end of a text", self.rest))?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    fn byte(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault<'a>> {
        if self.ends(byte) { Ok(()) } else { Err(Fault::new(expected, self.rest)) }
    }

    /// Is this the next byte that is no space? Then it is passed over.
    fn ends(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}
