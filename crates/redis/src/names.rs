//! What a bucket is called in the store.
//!
//! ```text
//! tidegate:1:{KEY}:LIMIT:ALGORITHM        a bucket
//! tidegate:1:{KEY}:reservation:ID         the record of a reservation, beside its first bucket
//! ```
//!
//! The number is the version of what is kept. KEY stands in braces, which is the hash tag of a cluster, so that all limits
//! of one key live on one node and are decided in one call. In KEY every byte that is not a letter, a digit or one of
//! `-._~@/` is written as `%XX`, so a brace in a caller's data is data; a key that would be long is written as its SHA-256.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use tidegate_core::{Algorithm, Charge, LimitId, ReservationId};

/// Longer keys, as they would be written, are replaced by their hash. Bytes.
const KEY_BYTES_MAX: usize = 96;
/// What is kept, and how: another version does not read what this one wrote.
const VERSION: u32 = 1;
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
        let _ = write!(name, ":{:016x}:{algorithm}", limit.as_u64());
        name
    }

    /// The record of a reservation, in the slot of this key.
    pub(crate) fn reservation(&self, key: &[u8], id: ReservationId) -> String {
        format!("{}:reservation:{id}", self.tag(key))
    }

    fn tag(&self, key: &[u8]) -> String {
        let mut name = format!("{}:{VERSION}:{{", self.prefix);
        push_key(&mut name, key);
        name.push('}');
        name
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
        let name = Names::new("tidegate").name(LimitId::of("api", "minute"), key, Algorithm::TokenBucket);
        let rest = name.strip_prefix("tidegate:1:{").unwrap();
        rest.strip_suffix(&format!("}}:{:016x}:token-bucket", LimitId::of("api", "minute").as_u64()))
            .unwrap()
            .to_owned()
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
