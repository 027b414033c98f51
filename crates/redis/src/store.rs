//! The shared store, as the rest of Tidegate sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, RedisError};
use tidegate_core::{Algorithm, Charge, Cost, Decision, Kept, LimitId, Quota, ReservationId, Settled, Store, Verdict};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::health::Health;
use crate::link::{Job, Link, WAITING_MAX};
use crate::names::{Names, PREFIX_BYTES_MAX};
use crate::script::Script;
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request, Seen};
use crate::{OutOfRange, StoreError};

/// How a store is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The longest that a decision waits. 10 ms unless told otherwise: below the 20 ms that Envoy gives its rate limit
    /// service.
    pub deadline: Duration,
    /// How long a connection, and the first answer on it, may take. One second.
    pub patience: Duration,
    /// What the names of all buckets begin with. `tidegate`.
    pub prefix: String,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { deadline: Duration::from_millis(10), patience: Duration::from_secs(1), prefix: "tidegate".to_owned() }
    }
}

/// Why a store could not be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of a Redis or Valkey server.
    Url(RedisError),
    /// The prefix is longer than [`PREFIX_BYTES_MAX`], or has a brace, which would move the hash tag.
    Prefix,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(_) => f.write_str("not the URL of a store; write it like `redis://127.0.0.1:6379`"),
            Self::Prefix => write!(f, "a prefix has at most {PREFIX_BYTES_MAX} bytes and no braces"),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(error) => Some(error),
            Self::Prefix => None,
        }
    }
}

/// Buckets in one Redis or Valkey server. Clones share its connection; all of them belong to the runtime it was made in.
#[derive(Clone)]
pub struct RedisStore {
    jobs: mpsc::Sender<Job>,
    health: Arc<Health>,
    pub(crate) names: Names,
    deadline: Duration,
}

impl RedisStore {
    /// A store at `url`, such as `redis://user:password@host:6379/0` or `redis+unix:///run/redis.sock`. It connects as it
    /// is first needed, and the first decisions wait for that as long as their deadline.
    ///
    /// # Errors
    /// The URL or the prefix cannot be used.
    ///
    /// # Panics
    /// It is called outside of a tokio runtime.
    pub fn new(url: &str, options: RedisOptions) -> Result<Self, SetupError> {
        Self::with_script(url, options, Script::new())
    }

    pub(crate) fn with_script(url: &str, options: RedisOptions, script: Script) -> Result<Self, SetupError> {
        let RedisOptions { deadline, patience, prefix } = options;
        if prefix.len() > PREFIX_BYTES_MAX || prefix.contains(['{', '}']) {
            return Err(SetupError::Prefix);
        }
        let client = Client::open(url).map_err(SetupError::Url)?;
        let (sender, jobs) = mpsc::channel(WAITING_MAX);
        let health = Arc::new(Health::unknown());
        tokio::spawn(Link { client, script, health: Arc::clone(&health), jobs, patience }.run());
        Ok(Self { jobs: sender, health, names: Names::new(&prefix), deadline })
    }

    /// Can this quota be exact here?
    ///
    /// # Errors
    /// It cannot; the error says which of its numbers is too large.
    pub fn takes(quota: &Quota) -> Result<(), OutOfRange> {
        Terms::of(quota).map(|_| ())
    }

    /// Is the store asked at present? Not while it is left alone after a run of failures.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.health.is_up()
    }

    /// Asks, at most for the deadline. Nothing is ever asked twice.
    pub(crate) async fn ask(&self, request: Request) -> Result<Seen, StoreError> {
        if !self.health.is_up() {
            return Err(StoreError::Unavailable);
        }
        let (reply, answer) = oneshot::channel();
        self.jobs.try_send(Job { request, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Unavailable,
        })?;
        let seen = match timeout(self.deadline, answer).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(_)) => Err(StoreError::Unavailable),
            Err(_) => Err(StoreError::Deadline),
        };
        match &seen {
            Ok(_) => self.health.answered(),
            Err(_) => self.health.failed(),
        }
        seen
    }
}

impl Store for RedisStore {
    type Error = StoreError;

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, StoreError> {
        if charges.is_empty() {
            return Ok(Verdict::over(charges, decisions));
        }
        let asked = Asked::new(charges);
        if asked.is_never() {
            return Ok(Asked::never(charges, decisions));
        }
        let seen = self.ask(asked.request(&self.names)?).await?;
        asked.decide(charges, &seen, decisions)
    }

    async fn reset(&self, limit: LimitId, key: &[u8]) -> Result<(), StoreError> {
        for algorithm in Algorithm::ALL {
            // More than any bucket can lack.
            self.give_back(self.names.name(limit, key, algorithm), Terms::any(algorithm), u64::MAX).await?;
        }
        Ok(())
    }

    async fn grant(&self, limit: LimitId, quota: &Quota, key: &[u8], tokens: u64) -> Result<(), StoreError> {
        self.give_back(self.names.name(limit, key, quota.algorithm()), Terms::of(quota)?, tokens).await
    }

    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        id: ReservationId,
        open_for: Duration,
    ) -> Result<Verdict, StoreError> {
        self.reserve_as(charges, decisions, id, open_for).await
    }

    async fn settle(&self, id: ReservationId, charges: &[Charge<'_>], actual: &[Cost]) -> Result<Settled, StoreError> {
        self.settle_as(id, charges, actual).await
    }

    async fn inspect(&self, limit: LimitId, quota: &Quota, key: &[u8]) -> Result<Option<Kept>, StoreError> {
        self.look_into(limit, quota.algorithm(), key).await
    }
}

impl RedisStore {
    async fn give_back(&self, key: String, terms: Terms, tokens: u64) -> Result<(), StoreError> {
        let terms = terms.pack(Act::Give, Cost::new(tokens), true);
        self.ask(Request { keys: vec![key], terms: vec![terms] }).await.map(|_| ())
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("is_up", &self.is_up())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
