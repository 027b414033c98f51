//! A key as people can read it.

use std::fmt;
use std::net::IpAddr;

use crate::{Client, Printable, key::Tag};

/// How many bytes of a hash are shown.
const HASH_BYTES_SHOWN: usize = 8;

/// One part of a key, read back from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyValue<'a> {
    /// The client's network.
    Client(Client),
    /// The client's network, in place of a value that the request did not have.
    Missing(Client),
    /// A value.
    Value(&'a [u8]),
    /// A value of several lines, each behind its length in one byte.
    Lines(&'a [u8]),
    /// The SHA-256 of a value.
    Hash(&'a [u8; 32]),
    /// Nothing.
    Global,
}

impl<'a> KeyValue<'a> {
    fn of(tag: u8, content: &'a [u8]) -> Option<Self> {
        Some(match Tag::ALL.into_iter().find(|known| *known as u8 == tag)? {
            Tag::Client => Self::Client(client(content)?),
            Tag::Missing => Self::Missing(client(content)?),
            Tag::Value => Self::Value(content),
            Tag::Lines => Self::Lines(content),
            Tag::Hash => Self::Hash(content.try_into().ok()?),
            Tag::Global => content.is_empty().then_some(Self::Global)?,
        })
    }
}

impl fmt::Display for KeyValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => client.fmt(f),
            Self::Missing(client) => write!(f, "missing ({client})"),
            Self::Value(value) => write!(f, "\"{}\"", Printable(value)),
            Self::Lines(lines) => write_lines(f, lines),
            Self::Hash(hash) => {
                f.write_str("sha256:")?;
                hash[..HASH_BYTES_SHOWN].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Global => f.write_str("global"),
        }
    }
}

/// The bytes of a key, fit for a log line: its parts, or if it has none, because somebody else built it, the bytes
/// with what cannot be read escaped.
#[derive(Clone, Copy, Debug)]
pub struct KeyText<'a>(pub &'a [u8]);

impl<'a> KeyText<'a> {
    /// The parts of the key. `None` if the bytes were not built from parts.
    #[must_use]
    pub fn values(&self) -> Option<Vec<KeyValue<'a>>> {
        let mut values = Vec::new();
        let mut rest = self.0;
        while let [tag, length, after @ ..] = rest {
            let (content, behind) = after.split_at_checked(usize::from(*length))?;
            values.push(KeyValue::of(*tag, content)?);
            rest = behind;
        }
        (rest.is_empty() && !values.is_empty()).then_some(values)
    }
}

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(values) = self.values() else { return Printable(self.0).fmt(f) };
        for (i, value) in values.iter().enumerate() {
            write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, mut lines: &[u8]) -> fmt::Result {
    while let [length, after @ ..] = lines {
        let (line, behind) = after.split_at(after.len().min(usize::from(*length)));
        write!(f, "\"{}\"{}", Printable(line), if behind.is_empty() { "" } else { " and " })?;
        lines = behind;
    }
    Ok(())
}

fn client(content: &[u8]) -> Option<Client> {
    if content.is_empty() {
        return Some(Client::Unix);
    }
    let v4 = <[u8; 4]>::try_from(content).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(content).map(IpAddr::from)).ok().map(Client::Ip)
}
