//! One bucket: for a limit that has no keys, such as everything that goes to one database.
//!
//! Eight words, one cache line: the head, the state, and the quota it is decided under if that is not the first one.
//! A denial and a look write nothing, so that a flood of denials does not move the line between processors.

use std::array;
use std::fmt;

use tidegate_core::{Cost, Decision, Quota, State, Time, carry_over, decide, grant, owe};

use crate::head::{Flag, Head, Version};
use crate::log_seats::is_log;
use crate::sync::{AtomicU64, Backoff, Ordering};

const HEAD: usize = 0;
const DEFICIT: usize = 1;
const STAMP: usize = 2;
const QUOTA: usize = 3;
const QUOTA_WORDS: usize = 5;
/// Raised in the head once the first quota was replaced.
const IS_REPLACED: Flag = Flag::FIRST;

/// A bucket that threads share. Time is an argument; each call is one atomic step.
///
/// ```
/// use tidegate_memory::Bucket;
/// use tidegate_core::{Cost, Limit, Time};
///
/// let quota = "10/s burst 2".parse::<Limit>().unwrap().quota().unwrap();
/// let bucket = Bucket::new(&quota);
/// assert!(bucket.decide_at(Cost::new(2), Time::ZERO).is_allowed());
/// assert!(!bucket.decide_at(Cost::ONE, Time::from_millis(99)).is_allowed());
/// assert!(bucket.decide_at(Cost::ONE, Time::from_millis(100)).is_allowed());
/// ```
#[repr(align(64))]
pub struct Bucket {
    words: [AtomicU64; QUOTA + QUOTA_WORDS],
    /// Most buckets never have another one, and this one is read without being put together from words.
    first: Quota,
}

impl Bucket {
    /// A full bucket.
    ///
    /// # Panics
    /// The quota is enforced by a sliding log, which does not fit a bucket: a table keeps logs.
    #[must_use]
    pub fn new(quota: &Quota) -> Self {
        assert!(!is_log(quota), "a sliding log does not fit a bucket; a table keeps logs");
        Self { words: array::from_fn(|_| AtomicU64::new(0)), first: *quota }
    }

    /// May `cost` tokens be taken at `now`? Takes them if so.
    #[inline]
    pub fn decide_at(&self, cost: Cost, now: Time) -> Decision {
        let mut backoff = Backoff::default();
        loop {
            let version = self.head().read();
            if let Some((quota, state)) = self.load(version) {
                let (decision, next) = decide(&quota, state, cost, now);
                if next == state {
                    if self.head().still(version) {
                        return decision;
                    }
                } else if let Some(_lock) = self.head().lock_from(version) {
                    self.store(next);
                    return decision;
                } else {
                    backoff.wait_for_winner();
                    continue;
                }
            }
            backoff.wait();
        }
    }

    /// Looks and changes nothing.
    pub fn peek_at(&self, now: Time) -> Decision {
        self.decide_at(Cost::ZERO, now)
    }

    /// Puts another quota in force. What is owed stays owed, in tokens.
    ///
    /// # Panics
    /// The quota is enforced by a sliding log, as in [`Bucket::new`].
    pub fn replace_at(&self, quota: &Quota, now: Time) {
        assert!(!is_log(quota), "a sliding log does not fit a bucket; a table keeps logs");
        let mut lock = self.head().lock();
        if let Some((old, state)) = self.load(lock.version()) {
            self.store(carry_over(&old, quota, state, now));
        }
        lock.raise(IS_REPLACED);
        for (word, value) in self.words[QUOTA..].iter().zip(quota.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Gives back `tokens`, at most to full.
    pub fn grant_at(&self, tokens: u64, now: Time) {
        let lock = self.head().lock();
        if let Some((quota, state)) = self.load(lock.version()) {
            self.store(grant(&quota, state, tokens, now));
        }
    }

    /// Owes `tokens` more, whether they are there or not; at most one further burst.
    pub fn owe_at(&self, tokens: u64, now: Time) {
        let lock = self.head().lock();
        if let Some((quota, state)) = self.load(lock.version()) {
            self.store(owe(&quota, state, tokens, now));
        }
    }

    /// Fills the bucket.
    pub fn reset(&self) {
        let _lock = self.head().lock();
        self.store(State::FULL);
    }

    /// The quota in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        let mut backoff = Backoff::default();
        loop {
            let version = self.head().read();
            let loaded = self.load(version);
            if let (Some((quota, _)), true) = (loaded, self.head().still(version)) {
                return quota;
            }
            backoff.wait();
        }
    }

    fn head(&self) -> Head<'_> {
        Head(&self.words[HEAD])
    }

    /// The quota and the state, possibly torn; `None` if so badly that there is no quota.
    #[inline]
    fn load(&self, version: Version) -> Option<(Quota, State)> {
        let word = |i: usize| self.words[i].load(Ordering::Relaxed);
        let quota =
            if version.has(IS_REPLACED) { Quota::from_words(array::from_fn(|i| word(QUOTA + i)))? } else { self.first };
        Some((quota, State::from_parts(word(DEFICIT), Time::from_nanos(word(STAMP)))))
    }

    #[inline]
    fn store(&self, state: State) {
        self.words[DEFICIT].store(state.deficit(), Ordering::Relaxed);
        self.words[STAMP].store(state.stamp().as_nanos(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("quota", &self.quota()).finish_non_exhaustive()
    }
}
