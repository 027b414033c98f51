//! What a bucket is called in the store.
//!
//! ```text
//! tg{KEY}tLIMIT        a token bucket
//! tg{KEY}wLIMIT        a fixed window
//! tg{KEY}cLIMIT        a sliding counter
//! tg{KEY}lLIMIT        a sliding log
//! tg{KEY}r:ID          the record of a reservation, beside its first bucket
//! ```
//!
//! `tg` is the prefix. The letter is the algorithm, and stands for the version of what is kept too: another version will
//! have another letter. LIMIT is 42 bits of the limit's identity, in seven letters, so that the name of a key of sixteen
//! bytes has 28, which is what a server keeps in 32: names are a good part of what a bucket costs it. Among a thousand
//! limits over one store any two are taken for one with a chance of one in nine million.
//!
//! KEY stands in braces, which is the hash tag of a cluster, so that all limits of one key live on one node and are
//! decided in one call. In KEY every byte that is not a letter, a digit or one of `-._~@/` is written as `%XX`, so a brace
//! in a caller's data is data; a key that would be long is written as its SHA-256.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use tidegate_core::{Algorithm, Charge, LimitId, ReservationId};

/// Longer keys, as they would be written, are replaced by their hash. Bytes.
const KEY_BYTES_MAX: usize = 96;
/// Letters that stand for the limit.
const LIMIT_LETTERS: usize = 7;
/// The 64 letters of base64url (RFC 4648, section 5).
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The longest prefix, in bytes.
pub const PREFIX_BYTES_MAX: usize = 64;

/// Names buckets under one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(crate) fn bucket(&self, charge: &Charge<'_>) -> String {
        self.name(charge.limit, charge.key, charge.quota.algorithm())
    }

    pub(crate) fn name(&self, limit: LimitId, key: &[u8], algorithm: Algorithm) -> String {
        let mut name = self.tag(key);
        name.push(match algorithm {
            Algorithm::TokenBucket => 't',
            Algorithm::FixedWindow => 'w',
            Algorithm::SlidingCounter => 'c',
            Algorithm::SlidingLog => 'l',
        });
        push_limit(&mut name, limit);
        name
    }

    /// The record of a reservation, in the slot of this key.
    pub(crate) fn reservation(&self, key: &[u8], id: ReservationId) -> String {
        format!("{}r:{id}", self.tag(key))
    }

    fn tag(&self, key: &[u8]) -> String {
        let mut name = format!("{}{{", self.prefix);
        push_key(&mut name, key);
        name.push('}');
        name
    }
}

fn push_limit(name: &mut String, limit: LimitId) {
    // All 64 bits take part in those that stay.
    let mut bits = limit.as_u64() ^ (limit.as_u64() >> 42);
    for _ in 0..LIMIT_LETTERS {
        name.push(char::from(LETTERS[(bits % 64) as usize]));
        bits /= 64;
    }
}

fn push_key(name: &mut String, key: &[u8]) {
    let start = name.len();
    if key.is_empty() {
        // Braces around nothing are no hash tag. No other key is written as this.
        name.push('%');
    }
    for byte in key {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' | b'/' => {
                name.push(char::from(*byte))
            }
            _ => {
                let _ = write!(name, "%{byte:02X}");
            }
        }
        if name.len() - start > KEY_BYTES_MAX {
            name.truncate(start);
            // No other key is written with a colon.
            name.push_str("sha256:");
            return Sha256::digest(key).iter().for_each(|byte| {
                let _ = write!(name, "{byte:02x}");
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(key: &[u8]) -> String {
        let name = Names::new("tg").name(LimitId::of("api", "minute"), key, Algorithm::TokenBucket);
        let (key, rest) = name.strip_prefix("tg{").unwrap().rsplit_once('}').unwrap();
        assert_eq!((rest.len(), &rest[..1]), (8, "t"));
        key.to_owned()
    }

    #[test]
    fn limits_and_algorithms_have_names_of_their_own_and_a_key_of_sixteen_bytes_takes_28() {
        let names = Names::new("tg");
        let name = |limit: &str, algorithm| names.name(LimitId::of("api", limit), b"client-000000001", algorithm);
        let limits = (0..1_000).map(|i| format!("limit-{i}"));
        let all: std::collections::HashSet<_> =
            limits.flat_map(|limit| Algorithm::ALL.map(|algorithm| name(&limit, algorithm))).collect();
        assert_eq!(all.len(), 1_000 * Algorithm::ALL.len());
        assert!(all.iter().all(|name| name.len() == 28));
    }

    #[test]
    fn br_087_braces_and_control_bytes_are_data() {
        assert_eq!(key_of(b"user-42"), "user-42");
        assert_eq!(key_of(b"user{1}"), "user%7B1%7D");
        assert_eq!(key_of(b"{}"), "%7B%7D");
        assert_eq!(key_of(b"a\0\r\n%"), "a%00%0D%0A%25");
        assert_eq!(key_of(b""), "%");
    }

    #[test]
    fn long_keys_are_hashed_and_never_meet_a_written_one() {
        let long = key_of(&[b'x'; 97]);
        assert_eq!((long.len(), long.starts_with("sha256:")), (71, true));
        assert_ne!(long, key_of(&[b'x'; 98]));
        assert_eq!(key_of(&[b'x'; 96]).len(), 96);
        assert_ne!(key_of(long.as_bytes()), long);
    }
}
