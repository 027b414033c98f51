//! The bytes of a key.
//!
//! A key is its parts one behind the other, each a tag, a length and that many bytes. So no bytes within a part can
//! look like the border of two, and different tuples of parts are always different keys:
//!
//! ```text
//! c 4 bytes of IPv4, 16 of IPv6, 0 of a unix socket     the client
//! m as c                                               the client, in place of a part that was missing
//! v bytes                                              a value as it is
//! l a length and bytes per line                        a value of several lines
//! h 32 bytes                                           the SHA-256 of a value that is long or secret
//! g 0 bytes                                            nothing
//! ```
//!
//! The hash is taken over the lines of the value, each behind its length in 8 bytes, little end first. A value of
//! several lines is a list whose lines keep their borders, so `a, b` on one line is another value than `a` and `b`
//! on two.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::{Client, Grouping};

/// The longest value that stands in a key as it is, in bytes; a longer one is hashed.
pub const VALUE_BYTES_MAX: usize = 128;
/// The most keys of one request: each makes a charge at least.
pub(crate) const KEYS_MAX: usize = tidegate_core::CHARGES_MAX;
/// Keys up to this many bytes in all need no allocation.
const INLINE_BYTES: usize = 256;

/// What the bytes of a part are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    Client = b'c',
    Missing = b'm',
    Value = b'v',
    Lines = b'l',
    Hash = b'h',
    Global = b'g',
}

impl Tag {
    pub(crate) const ALL: [Self; 6] = [Self::Client, Self::Missing, Self::Value, Self::Lines, Self::Hash, Self::Global];
}

/// Room for the keys of one request, which its charges borrow. Lives on the stack; only unusually long keys allocate.
#[derive(Clone, Debug)]
pub struct Keys {
    inline: [u8; INLINE_BYTES],
    /// Holds everything once it does not fit inline.
    spilled: Vec<u8>,
    /// Bytes in use.
    length: usize,
    /// Where each finished key ends.
    ends: [u16; KEYS_MAX],
    count: usize,
}

impl Default for Keys {
    fn default() -> Self {
        Self::new()
    }
}

impl Keys {
    /// Room without keys.
    #[must_use]
    pub const fn new() -> Self {
        Self { inline: [0; INLINE_BYTES], spilled: Vec::new(), length: 0, ends: [0; KEYS_MAX], count: 0 }
    }

    /// Forgets the keys.
    pub fn clear(&mut self) {
        self.spilled.clear();
        self.length = 0;
        self.count = 0;
    }

    /// The bytes of key `i`, which is finished. A key has at least two, unless it was abandoned.
    ///
    /// # Panics
    /// There are not as many.
    #[must_use]
    pub fn key(&self, i: usize) -> &[u8] {
        &self.bytes()[self.start(i)..usize::from(self.ends[i])]
    }

    /// Finishes the key that was pushed since the last one. Callers finish at most [`KEYS_MAX`] keys.
    pub(crate) fn finish(&mut self) {
        // All keys together have at most 16 x 8 x 130 bytes, which fits.
        self.ends[self.count] = self.length as u16;
        self.count += 1;
    }

    /// Forgets the parts of the key that is not finished.
    pub(crate) fn abandon(&mut self) {
        self.length = self.start(self.count);
        self.spilled.truncate(self.length);
    }

    /// Adds a part. `content` has at most 255 bytes.
    pub(crate) fn push(&mut self, tag: Tag, content: &[u8]) {
        self.push_bytes(&[tag as u8, content.len() as u8]);
        self.push_bytes(content);
    }

    /// Adds the client, or the client in place of something else.
    pub(crate) fn push_client(&mut self, tag: Tag, client: Client, grouping: &Grouping) {
        match grouping.network(client) {
            Client::Ip(IpAddr::V4(ip)) => self.push(tag, &ip.octets()),
            Client::Ip(IpAddr::V6(ip)) => self.push(tag, &ip.octets()),
            Client::Unix => self.push(tag, &[]),
        }
    }

    /// Adds a value of one line.
    pub(crate) fn push_value(&mut self, value: &[u8], secret: bool) {
        if secret || value.len() > VALUE_BYTES_MAX {
            let mut hash = LinesHash::default();
            hash.add(value);
            self.push(Tag::Hash, &hash.finish());
        } else {
            self.push(Tag::Value, value);
        }
    }

    /// Adds a value of several lines, with `framed_bytes` bytes in all, a byte for the length of each included.
    /// `lines` calls its argument with each of them.
    pub(crate) fn push_lines(&mut self, framed_bytes: usize, secret: bool, lines: impl Fn(&mut dyn FnMut(&[u8]))) {
        if secret || framed_bytes > VALUE_BYTES_MAX {
            let mut hash = LinesHash::default();
            lines(&mut |line| hash.add(line));
            return self.push(Tag::Hash, &hash.finish());
        }
        self.push_bytes(&[Tag::Lines as u8, framed_bytes as u8]);
        lines(&mut |line| {
            self.push_bytes(&[line.len() as u8]);
            self.push_bytes(line);
        });
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        match self.inline.get_mut(self.length..end) {
            Some(room) if self.spilled.is_empty() => room.copy_from_slice(bytes),
            _ => self.spill(bytes),
        }
        self.length = end;
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.spilled.is_empty() {
            self.spilled.extend_from_slice(&self.inline[..self.length]);
        }
        self.spilled.extend_from_slice(bytes);
    }

    fn bytes(&self) -> &[u8] {
        if self.spilled.is_empty() { &self.inline[..self.length] } else { &self.spilled }
    }

    fn start(&self, i: usize) -> usize {
        i.checked_sub(1).map_or(0, |before| usize::from(self.ends[before]))
    }
}

/// The SHA-256 of a value's lines.
#[derive(Default)]
struct LinesHash(Sha256);

impl LinesHash {
    fn add(&mut self, line: &[u8]) {
        self.0.update((line.len() as u64).to_le_bytes());
        self.0.update(line);
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

const _: () = assert!(KEYS_MAX * crate::PARTS_MAX * (2 + VALUE_BYTES_MAX) <= u16::MAX as usize);
