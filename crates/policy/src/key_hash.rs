//! A key that can be told from others without being shown.
//!
//! Logs and reports of those who are denied can name keys by their hash: the first 64 bits of the SHA-256 of a salt and
//! the key's bytes, one behind the other. All that names a key under the same salt names it alike, so that lines of a log
//! and a report can be joined. Without a salt, whoever guesses a key can check the guess; with a secret one only those
//! who know it.

use std::fmt;

use sha2::{Digest, Sha256};

/// The longest salt, in bytes.
pub const SALT_BYTES_MAX: usize = 256;

/// What a deployment mixes into the hashes of its keys; by default nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeySalt(Box<[u8]>);

/// The hash of a key under a salt: 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(u64);

impl KeySalt {
    /// A salt of these bytes.
    ///
    /// # Errors
    /// There are more than [`SALT_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self, SaltError> {
        if bytes.len() > SALT_BYTES_MAX { Err(SaltError) } else { Ok(Self(bytes.into())) }
    }

    /// The hash of a key, from the bytes that a store is given.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = Sha256::new_with_prefix(&self.0).chain_update(key).finalize();
        KeyHash(hash.iter().take(size_of::<u64>()).fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
    }
}

impl fmt::Debug for KeySalt {
    /// A salt can be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySalt({} bytes)", self.0.len())
    }
}

impl KeyHash {
    /// The hash as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The salt is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaltError;

impl fmt::Display for SaltError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a salt has at most {SALT_BYTES_MAX} bytes")
    }
}

impl std::error::Error for SaltError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_what_sha256sum_says_of_salt_and_key() {
        // printf 'v\006gold-1' | sha256sum, and printf 'pepperv\006gold-1' | sha256sum
        let salted = |salt: &[u8]| KeySalt::new(salt).unwrap().hash(b"v\x06gold-1").to_string();
        assert_eq!(salted(b""), "76c5c9d2180e794f");
        assert_eq!(salted(b"pepper"), "4ca1e5107d43ccc7");
    }

    #[test]
    fn a_salt_is_bounded_and_not_shown() {
        assert_eq!(KeySalt::new(&[7; SALT_BYTES_MAX + 1]), Err(SaltError));
        assert_eq!(format!("{:?}", KeySalt::new(b"pepper").unwrap()), "KeySalt(6 bytes)");
    }
}
