//! What is noted of a request on its way, by whoever learns it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::Request;
use tidegate_http::{Onlook, Sight};
use tidegate_policy::{Client, KeySalt};

use super::{Finding, Head};

/// No time was noted.
const NONE: u64 = u64::MAX;

/// The notes on one request.
#[derive(Debug)]
pub(crate) struct Notes {
    salt: Arc<KeySalt>,
    finding: OnceLock<Finding>,
    upstream_ns: AtomicU64,
    meant: Mutex<Option<Box<Meant>>>,
}

/// The request that is told of instead, where the one that came only asks about it.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) head: Head,
    pub(super) client: Client,
}

/// The notes as a request carries them in its extensions.
#[derive(Clone, Debug)]
pub(crate) struct Noted(pub(crate) Arc<Notes>);

impl Noted {
    /// The upstream took so long to answer.
    pub(crate) fn upstream_took(&self, time: Duration) {
        self.0.upstream_ns.store(u64::try_from(time.as_nanos()).unwrap_or(NONE - 1), Relaxed);
    }

    /// This is the request that is asked about, and its client.
    pub(crate) fn means<B>(&self, request: &Request<B>, client: Client) {
        let meant = Box::new(Meant { head: Head::of(request), client });
        *self.0.meant.lock().unwrap_or_else(PoisonError::into_inner) = Some(meant);
    }
}

impl Notes {
    pub(crate) fn new(salt: Arc<KeySalt>) -> Self {
        Self { salt, finding: OnceLock::new(), upstream_ns: AtomicU64::new(NONE), meant: Mutex::default() }
    }

    pub(crate) fn finding(&self) -> Option<&Finding> {
        self.finding.get()
    }

    /// The request that is told of instead.
    pub(super) fn take_meant(&self) -> Option<Box<Meant>> {
        self.meant.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn upstream_time(&self) -> Option<Duration> {
        match self.upstream_ns.load(Relaxed) {
            NONE => None,
            ns => Some(Duration::from_nanos(ns)),
        }
    }
}

impl Onlook for Notes {
    fn see(&self, sight: &Sight<'_>) {
        // It is decided once.
        let _ = self.finding.set(Finding::of(sight, &self.salt));
    }
}
