//! HMAC-SHA-256 (RFC 2104), which shows that a text is one of ours.

use std::hint::black_box;

use rustls::crypto::{CryptoProvider, ring};
use sha2::{Digest as _, Sha256};

/// The length of a block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// A key that only those who may make such texts know.
#[derive(Clone)]
pub(super) struct MacKey([u8; BLOCK]);

impl MacKey {
    /// The key that follows from a secret: the same in all processes that know it.
    pub(super) fn of(secret: &[u8]) -> Self {
        let mut key = [0; BLOCK];
        match key.get_mut(..secret.len()) {
            Some(room) => room.copy_from_slice(secret),
            None => key[..32].copy_from_slice(&Sha256::digest(secret)),
        }
        Self(key)
    }

    /// A key that nobody else knows; `None` if the system gives nothing by chance.
    pub(super) fn draw() -> Option<Self> {
        let mut key = [0; 32];
        provider().secure_random.fill(&mut key).ok().map(|()| Self::of(&key))
    }

    /// The key for one purpose, which tells nothing of this one.
    pub(super) fn derived(&self, purpose: &[u8]) -> Self {
        Self::of(&self.mac(purpose))
    }

    pub(super) fn mac(&self, text: &[u8]) -> [u8; 32] {
        let inner = Sha256::new_with_prefix(self.0.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
        Sha256::new_with_prefix(self.0.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
    }
}

impl std::fmt::Debug for MacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MacKey(..)")
    }
}

/// A number that nobody else draws; `None` if the system gives nothing by chance.
pub(super) fn draw() -> Option<u128> {
    let mut number = [0; 16];
    provider().secure_random.fill(&mut number).ok().map(|()| u128::from_le_bytes(number))
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Are they the same? The time that the answer takes says nothing but whether the lengths are equal.
pub(super) fn are_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |bits, (one, other)| black_box(bits | (one ^ other)));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &[u8], text: &[u8], expect: &str) {
        let mac: String = MacKey::of(key).mac(text).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(mac, expect);
    }

    #[test]
    fn macs_are_those_of_rfc_4231() {
        let one = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        check(&[0x0b; 20], b"Hi There", one);
        let two = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        check(b"Jefe", b"what do ya want for nothing?", two);
        let six = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        check(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First", six);
    }

    #[test]
    fn what_is_drawn_differs() {
        assert_ne!(draw(), draw());
        assert_ne!(MacKey::draw().unwrap().0, MacKey::draw().unwrap().0);
        assert!(are_same(b"a", b"a") && !are_same(b"a", b"b") && !are_same(b"a", b"ab") && !are_same(b"a", b""));
    }
}
