//! The quotas that buckets were written under, by number.
//!
//! A slot has no room for its quota, so it holds the number of it. Numbers are never taken back: a slot that was
//! written long ago can still be understood, which is what lets a changed limit keep what its keys owe.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tidegate_core::Quota;

/// The most different quotas that one table can know in its life.
pub const QUOTAS_MAX: usize = 1 << 16;

/// The first chunk's length; each further one is as long as all before it together.
const CHUNK: usize = 16;
const CHUNKS: usize = 13;
/// Twice the quotas, so that a probe soon meets a gap.
const INDEX: usize = 2 * QUOTAS_MAX;

/// A quota that a table knows: what its slots refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownQuota {
    pub(crate) quota: Quota,
    pub(crate) number: u32,
}

impl KnownQuota {
    /// The quota.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Its number in the table that knows it, from 1 up to [`QUOTAS_MAX`].
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// More than [`QUOTAS_MAX`] different quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyQuotas;

impl std::fmt::Display for TooManyQuotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "more than {QUOTAS_MAX} different quotas in one table; the one that was in force stays in force")
    }
}

impl std::error::Error for TooManyQuotas {}

pub(crate) struct Quotas {
    chunks: [OnceLock<Box<[OnceLock<Quota>]>>; CHUNKS],
    /// Numbers by the hash of their quota; 0 is a gap.
    index: Box<[AtomicU32]>,
    /// How many are known; held while one is added.
    known: Mutex<u32>,
}

impl Quotas {
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            index: bytemuck::zeroed_slice_box(INDEX),
            known: Mutex::new(0),
        }
    }

    /// The quota of this number, if it is known to this thread already.
    #[inline]
    pub(crate) fn quota(&self, number: u32) -> Option<&Quota> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        let (chunk, start) = chunk_of(place);
        self.chunks.get(chunk)?.get()?.get(place - start)?.get()
    }

    /// The number of this quota, a new one if it has none.
    #[inline]
    pub(crate) fn know(&self, quota: &Quota) -> Result<KnownQuota, TooManyQuotas> {
        match self.find(quota) {
            Ok(known) => Ok(known),
            Err(_) => self.learn(quota),
        }
    }

    /// The quota's number, or the gap in the index where it would stand.
    #[inline]
    fn find(&self, quota: &Quota) -> Result<KnownQuota, usize> {
        let mut at = hash(quota);
        loop {
            let number = self.index[at].load(Ordering::Acquire);
            if number == 0 {
                return Err(at);
            }
            if self.quota(number) == Some(quota) {
                return Ok(KnownQuota { quota: *quota, number });
            }
            at = (at + 1) % INDEX;
        }
    }

    #[cold]
    fn learn(&self, quota: &Quota) -> Result<KnownQuota, TooManyQuotas> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let gap = match self.find(quota) {
            Ok(known) => return Ok(known),
            Err(gap) => gap,
        };
        let place = usize::try_from(*known).map_err(|_| TooManyQuotas)?;
        if place >= QUOTAS_MAX {
            return Err(TooManyQuotas);
        }
        let (chunk, start) = chunk_of(place);
        let slots = self.chunks[chunk].get_or_init(|| (0..start.max(CHUNK)).map(|_| OnceLock::new()).collect());
        // The place is fresh: places are handed out in order, under the lock.
        let _ = slots[place - start].set(*quota);
        *known += 1;
        self.index[gap].store(*known, Ordering::Release);
        Ok(KnownQuota { quota: *quota, number: *known })
    }
}

/// The chunk in which a place lies, and the place at which that chunk starts.
fn chunk_of(place: usize) -> (usize, usize) {
    let doublings = (place / CHUNK).checked_ilog2().map_or(0, |log| log as usize + 1);
    (doublings, if doublings == 0 { 0 } else { CHUNK << (doublings - 1) })
}

fn hash(quota: &Quota) -> usize {
    let mixed = quota.to_words().into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, word| {
        let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f_u128;
        (product as u64) ^ ((product >> 64) as u64)
    });
    (mixed % INDEX as u64) as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use tidegate_core::Rate;

    use super::*;

    fn quota(count: u64) -> Quota {
        Quota::with_burst(Rate::new(count, Duration::from_secs(1)).unwrap(), 1).unwrap()
    }

    #[test]
    fn every_quota_has_one_number_until_there_are_too_many() {
        let quotas = Quotas::new();
        for i in 1..=QUOTAS_MAX as u64 {
            assert_eq!(u64::from(quotas.know(&quota(i)).unwrap().number), i);
        }
        assert_eq!(quotas.know(&quota(QUOTAS_MAX as u64 + 1)), Err(TooManyQuotas));
        for i in (1..=QUOTAS_MAX as u64).step_by(97) {
            assert_eq!(u64::from(quotas.know(&quota(i)).unwrap().number), i);
            assert_eq!(quotas.quota(i as u32), Some(&quota(i)));
        }
        assert_eq!(quotas.quota(0), None);
        assert_eq!(quotas.quota(QUOTAS_MAX as u32 + 1), None);
    }

    #[test]
    fn chunks_follow_each_other_without_gaps() {
        assert_eq!(
            [0, 15, 16, 31, 32, 63, 64].map(chunk_of),
            [(0, 0), (0, 0), (1, 16), (1, 16), (2, 32), (2, 32), (3, 64)]
        );
        assert_eq!(chunk_of(QUOTAS_MAX - 1).0, CHUNKS - 1);
    }
}
