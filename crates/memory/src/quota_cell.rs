//! A quota that can be replaced while others read it.
//!
//! Reading takes no lock and writes nothing, so that the limit that every request looks up stays in every
//! processor's cache.

use std::array;
use std::fmt;

use tidegate_core::{Quota, Time};

use crate::head::Head;
use crate::sync::{AtomicU64, Backoff, Ordering};

const HEAD: usize = 0;
const SINCE: usize = 1;
const IS_LIMITED: usize = 2;
const QUOTA: usize = 3;
const QUOTA_WORDS: usize = 5;

/// The quota in force, or that there is none (unlimited), and since when.
#[repr(align(64))]
pub struct QuotaCell {
    words: [AtomicU64; QUOTA + QUOTA_WORDS],
}

impl QuotaCell {
    /// A cell that holds `quota` since ever.
    #[must_use]
    pub fn new(quota: Option<Quota>) -> Self {
        let cell = Self { words: array::from_fn(|_| AtomicU64::new(0)) };
        cell.replace(quota, Time::ZERO);
        cell
    }

    /// The quota, `None` if everything passes, and the time since which that is in force.
    #[must_use]
    #[inline]
    pub fn load(&self) -> (Option<Quota>, Time) {
        let head = Head(&self.words[HEAD]);
        let word = |i: usize| self.words[i].load(Ordering::Relaxed);
        let mut backoff = Backoff::default();
        loop {
            let version = head.read();
            let (since, is_limited) = (Time::from_nanos(word(SINCE)), word(IS_LIMITED) != 0);
            let quota = Quota::from_words(array::from_fn(|i| word(QUOTA + i))).filter(|_| is_limited);
            if head.still(version) {
                return (quota, since);
            }
            backoff.wait();
        }
    }

    /// Puts another quota in force, since `since`.
    pub fn replace(&self, quota: Option<Quota>, since: Time) {
        let _lock = Head(&self.words[HEAD]).lock();
        self.words[SINCE].store(since.as_nanos(), Ordering::Relaxed);
        self.words[IS_LIMITED].store(u64::from(quota.is_some()), Ordering::Relaxed);
        let words = quota.map_or([0; QUOTA_WORDS], |quota| quota.to_words());
        for (word, value) in self.words[QUOTA..].iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for QuotaCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}
