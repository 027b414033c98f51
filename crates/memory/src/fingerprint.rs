//! What stands in the table for a key: 64 bits of a seeded hash over limit and key.
//!
//! The seed is drawn at random for each table, and nothing that a caller can see depends on it, so nobody can choose
//! keys that share a bucket, or that crowd one part of the table. Two given keys share a fingerprint with a chance of
//! 2^-64; among a million live keys, a newcomer meets one of them with a chance of 2^-44, and any two of them are
//! one with a chance of 2^-25.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use tidegate_core::LimitId;

/// A key of a limit, as the table knows it. Only the table that made it understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) const NONE: Self = Self(1);

    /// The fingerprint that [`Fingerprint::as_u64`] gave as a number; `None` if it is zero, which is none.
    #[must_use]
    pub fn from_u64(number: u64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// As a number, which is never zero.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// A number below `range`, all equally likely.
    #[inline]
    pub(crate) fn scaled_to(self, range: usize) -> usize {
        home_of(self.0, range)
    }
}

/// The same for a fingerprint that was read back from a slot.
#[inline]
pub(crate) fn home_of(fingerprint: u64, range: usize) -> usize {
    // Below `range`, so it fits.
    ((u128::from(fingerprint) * range as u128) >> 64) as usize
}

/// What a hash function is made of. Whoever knows it can choose keys that share a bucket, so it is kept where nobody
/// else reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seeds(pub [u64; 2]);

impl fmt::Debug for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seeds(..)")
    }
}

/// The hash function of one table, or of whatever else is kept by limit and key.
pub struct Fingerprints {
    seeds: Seeds,
    shared: SharedSeed,
}

impl Fingerprints {
    /// A function that nobody knows: its seed is drawn.
    #[must_use]
    pub fn random() -> Self {
        // The standard library seeds these from the operating system.
        let drawn = || RandomState::new().build_hasher().finish();
        Self::of_seeds(Seeds([drawn(), drawn()]))
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        Self::of_seeds(Seeds([seed, !seed]))
    }

    pub(crate) fn of_seeds(seeds: Seeds) -> Self {
        Self { seeds, shared: SharedSeed::from_u64(seeds.0[1]) }
    }

    pub(crate) fn seeds(&self) -> Seeds {
        self.seeds
    }

    /// The fingerprint of a key of a limit.
    #[must_use]
    #[inline]
    pub fn of<K: Hash + ?Sized>(&self, limit: LimitId, key: &K) -> Fingerprint {
        let mut hasher = FoldHasher::with_seed(self.seeds.0[0] ^ limit.as_u64(), &self.shared);
        key.hash(&mut hasher);
        Fingerprint(hasher.finish().max(1))
    }
}

impl fmt::Debug for Fingerprints {
    /// The seed is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprints").finish_non_exhaustive()
    }
}
