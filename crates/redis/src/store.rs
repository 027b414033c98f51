//! The shared store, as the rest of Tidegate sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Algorithm, Charge, Cost, Decision, Kept, LimitId, Quota, ReservationId, Settled, Store, Verdict};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};

use crate::address::Address;
use crate::complaints::Complaints;
use crate::connection::Dialer;
use crate::give_back::GIVING_MAX;
use crate::link::Common;
use crate::names::{Names, PREFIX_BYTES_MAX};
use crate::route::Route;
use crate::script::Script;
use crate::state::Counts;
use crate::terms::{Act, Terms};
use crate::wire::{Asked, Request, Seen};
use crate::{Complaint, OutOfRange, StoreError, StoreState, TlsError, TlsFiles, UrlError};

/// How a store is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The longest that a decision waits. 10 ms unless told otherwise: below the 20 ms that Envoy gives its rate limit
    /// service.
    pub deadline: Duration,
    /// How long a connection, and the first answer on it, may take. One second.
    pub patience: Duration,
    /// What the names of all buckets begin with. `tg`.
    pub prefix: String,
    /// Whom to trust, for a URL that asks for TLS.
    pub tls: TlsFiles,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(10),
            patience: Duration::from_secs(1),
            prefix: "tg".to_owned(),
            tls: TlsFiles::default(),
        }
    }
}

/// Why a store could not be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is not one of a store.
    Url(UrlError),
    /// The prefix is longer than [`PREFIX_BYTES_MAX`], or has a brace, which would move the hash tag.
    Prefix,
    /// A file that TLS needs cannot be used.
    Tls(TlsError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Prefix => write!(f, "a prefix has at most {PREFIX_BYTES_MAX} bytes and no braces"),
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetupError {}

/// Buckets in Redis or Valkey. Clones share its connections, which belong to the runtime it was made in; it may be asked
/// from tasks of any tokio runtime that has its timer.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) route: Arc<Route>,
    pub(crate) names: Names,
    pub(crate) deadline: Duration,
}

impl RedisStore {
    /// A store at `url`, of which `address` in this crate has all forms: `redis://user:password@host:6379/0` is one
    /// server. It connects at once, and the first decisions wait for that as long as their deadline.
    ///
    /// # Errors
    /// The URL, the prefix or a file for TLS cannot be used.
    ///
    /// # Panics
    /// It is called outside of a tokio runtime.
    pub fn new(url: &str, options: RedisOptions) -> Result<Self, SetupError> {
        let RedisOptions { deadline, patience, prefix, tls } = options;
        if prefix.len() > PREFIX_BYTES_MAX || prefix.contains(['{', '}']) {
            return Err(SetupError::Prefix);
        }
        let Address { deployment, login, is_tls } = Address::parse(url).map_err(SetupError::Url)?;
        if !is_tls && !tls.is_empty() {
            return Err(SetupError::Tls(TlsError::NotAsked));
        }
        let tls = if is_tls { Some(tls.connector().map_err(SetupError::Tls)?) } else { None };
        let common = Arc::new(Common {
            dialer: Dialer { tls, login, patience },
            script: Script::new(),
            counts: Counts::default(),
            complaints: Complaints::default(),
            lost: Notify::new(),
            runtime: Handle::current(),
            giving: Arc::new(Semaphore::new(GIVING_MAX)),
        });
        let route = Arc::new(Route::open(deployment, common));
        Ok(Self { route, names: Names::new(&prefix), deadline })
    }

    /// Can this quota be exact here?
    ///
    /// # Errors
    /// It cannot; the error says which of its numbers is too large.
    pub fn takes(quota: &Quota) -> Result<(), OutOfRange> {
        Terms::of(quota).map(|_| ())
    }

    /// Is the store asked at present? Not while it is left alone after a run of failures. In a cluster: is any node?
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state().is_up
    }

    /// How it is doing now, and what has happened so far.
    #[must_use]
    pub fn state(&self) -> StoreState {
        self.route.state()
    }

    /// The next thing that is wrong with the configuration, such as a refused password: each is told once, and again only
    /// if the store has answered in between. Of several who wait one is told.
    pub async fn complaint(&self) -> Complaint {
        self.route.common().complaints.next().await
    }

    /// The same store, asked with the patience that a connection gets.
    pub(crate) fn patient(&self) -> Self {
        Self { deadline: self.route.common().dialer.patience, ..self.clone() }
    }

    /// The longest that a decision waits.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Asks, at most for the deadline. Nothing is ever asked twice.
    pub(crate) async fn ask(&self, request: Request) -> Result<Seen, StoreError> {
        self.route.ask(&Arc::new(request), self.deadline).await
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
        if let Some(groups) = self.groups(charges) {
            return self.decide_apart(&groups, charges, decisions).await;
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
