//! Waiting for one's turn: first come, first served, for a bounded time.
//!
//! The waiters for one key stand in a line. Only the first of them asks the limiter; when it is denied it knows how long
//! to sleep, and the others sleep until it is their turn. So there is no polling and no race at the wake-up, and whoever
//! comes first passes first. A waiter that knows that its turn comes too late fails at once. Dropping the future leaves
//! the line; tokens are taken only in the step that also returns, so a waiter that was cancelled has taken none.
//!
//! A `check` beside the line is not held up by it, and can take a token that a waiter slept for; the waiter then sleeps
//! again, at the head of the line.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{Cost, Store};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout_at};

use crate::{Answer, Key, Limiter};

/// The most waiters of one limiter.
pub const WAITERS_MAX: usize = 1 << 16;

/// Why a wait ended without passing.
#[derive(Debug)]
#[non_exhaustive]
pub enum WaitError<E> {
    /// The cost can never pass; waiting would not help.
    Never,
    /// The turn would come, or came, later than the caller wants to wait.
    TooLong,
    /// [`WAITERS_MAX`] are waiting already.
    TooManyWaiters,
    /// The store could not answer.
    Store(E),
}

impl<E> fmt::Display for WaitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("the cost is above the burst, or the limit is zero: it can never pass"),
            Self::TooLong => f.write_str("the turn comes later than the longest wait"),
            Self::TooManyWaiters => write!(f, "{WAITERS_MAX} callers are waiting already"),
            Self::Store(_) => f.write_str("the store could not answer"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for WaitError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Never | Self::TooLong | Self::TooManyWaiters => None,
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Waits until `key` may take `cost` tokens, and takes them; at most for `at_most`.
    ///
    /// Runs on tokio's timer. It can be cancelled by dropping it at any time, and then takes nothing.
    ///
    /// # Errors
    /// The cost can never pass, or not within `at_most`, which is told as soon as it is known; too many are waiting; or
    /// the store could not answer.
    pub async fn wait<K: Key + ?Sized>(
        &self,
        key: &K,
        cost: impl Into<Cost>,
        at_most: Duration,
    ) -> Result<Answer, WaitError<S::Error>> {
        let cost = cost.into();
        // The timer reads the clock; an instant that is never slept until says when the time is up.
        let deadline = sleep(at_most).deadline();
        if self.limits().any(|(_, _, quota)| quota.is_some_and(|quota| cost.tokens() > quota.burst())) {
            return Err(WaitError::Never);
        }
        let line = self.turns.line(key).ok_or(WaitError::TooManyWaiters)?;
        let _turn = timeout_at(deadline, line.turn()).await.map_err(|_| WaitError::TooLong)?;
        loop {
            let answer = self.decide(key, cost).await.map_err(WaitError::Store)?;
            if answer.is_allowed() {
                return Ok(answer);
            }
            let wait = answer.retry_after().ok_or(WaitError::Never)?;
            let nap = sleep(wait);
            if nap.deadline() > deadline {
                return Err(WaitError::TooLong);
            }
            nap.await;
        }
    }
}

/// The lines of a limiter, by key. A key without waiters has none.
#[derive(Default)]
pub(crate) struct Turns {
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    by_key: HashMap<Box<[u8]>, Arc<Semaphore>>,
    waiters: usize,
}

/// A place in a key's line, left when dropped.
struct Line<'a> {
    turns: &'a Turns,
    key: Box<[u8]>,
    /// One permit, handed out in the order in which it was asked for.
    turn: Arc<Semaphore>,
}

impl Turns {
    fn line<K: Key + ?Sized>(&self, key: &K) -> Option<Line<'_>> {
        let mut lines = self.lock();
        if lines.waiters >= WAITERS_MAX {
            return None;
        }
        lines.waiters += 1;
        let key: Box<[u8]> = key.with_bytes(|key| key.into());
        let turn = Arc::clone(lines.by_key.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        Some(Line { turns: self, key, turn })
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line<'_> {
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed, so there is always a permit to come.
        self.turn.acquire().await.ok()
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lock();
        lines.waiters -= 1;
        // The map's reference and ours: nobody else stands in this line.
        if Arc::strong_count(&self.turn) <= 2 {
            lines.by_key.remove(&self.key);
        }
    }
}
