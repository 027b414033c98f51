//! One request, as a line of a log tells of it.

use std::borrow::Cow;

use crate::log::{Escapes, Stamp};

/// One request. Everything is borrowed from the line, as it stands there; what the line does not tell is empty, or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// When the request came, as exactly as the log knows.
    pub time: Stamp,
    /// Who sent it: an address, with or without a port, or a name.
    pub client: &'a [u8],
    /// As whom the client was known.
    pub user: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// What was asked for: a path, mostly with its query, or a whole URL.
    pub target: &'a [u8],
    /// The query, where the log has it apart.
    pub query: &'a [u8],
    /// `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// The host that was asked for.
    pub host: &'a [u8],
    /// The status of the response.
    pub status: u16,
    /// The length of the response, in bytes.
    pub bytes: Option<u64>,
    /// The field Referer.
    pub referer: &'a [u8],
    /// The field User-Agent.
    pub agent: &'a [u8],
    /// The field X-Forwarded-For.
    pub forwarded: &'a [u8],
    /// How long it took, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// How the values above are escaped.
    pub escapes: Escapes,
}

impl<'a> Line<'a> {
    /// A value of this line as text: unescaped, with what is no UTF-8 replaced.
    #[must_use]
    pub fn text(&self, value: &'a [u8]) -> Cow<'a, str> {
        match self.escapes.decode(value) {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The path, without the query, as it stands in the line.
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        let target = match self.target.first() {
            Some(b'/') | None => self.target,
            Some(_) => split_url(self.target).map_or(self.target, |(_, path)| path),
        };
        &target[..memchr::memchr2(b'?', b'#', target).unwrap_or(target.len())]
    }

    /// The host that was asked for, from wherever the line tells it.
    #[must_use]
    pub fn authority(&self) -> &'a [u8] {
        match self.host {
            [] => split_url(self.target).map_or(&[], |(host, _)| host),
            host => host,
        }
    }

    /// The path as text. Percent signs are part of it.
    #[must_use]
    pub fn path_text(&self) -> Cow<'a, str> {
        match self.escapes {
            Escapes::Percent | Escapes::Plus | Escapes::Nothing => String::from_utf8_lossy(self.path()),
            Escapes::Backslash | Escapes::Json => self.text(self.path()),
        }
    }
}

/// The authority and the path of `http://host:80/path`.
fn split_url(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = memchr::memmem::find(target, b"://")? + 3;
    let rest = &target[start..];
    let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    Some((&rest[..end], if end == rest.len() { b"/" } else { &rest[end..] }))
}
