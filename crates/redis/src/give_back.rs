//! What is owed to the store when a decision over several slots comes to nothing.
//!
//! It is given back by a task of the store's, whatever becomes of whoever asked: also if the caller stops waiting. What is
//! given back is asked for by the id of its reservation, so that asking again is safe.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::RedisStore;
use crate::wire::Request;

/// Decisions that give back at once. One more than these stays spent, which is safe.
pub(crate) const GIVING_MAX: usize = 1_024;
/// So often it is tried, and the pause before the second time.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// Gives back when it is dropped, unless it is told to forget.
pub(crate) struct GiveBack<'a> {
    store: &'a RedisStore,
    requests: Vec<Request>,
}

impl<'a> GiveBack<'a> {
    pub(crate) fn new(store: &'a RedisStore) -> Self {
        Self { store, requests: Vec::new() }
    }

    pub(crate) fn extend(&mut self, request: Option<Request>) {
        self.requests.extend(request);
    }

    /// The charges stay.
    pub(crate) fn forget(mut self) {
        self.requests.clear();
    }

    /// Gives back, and waits for it. Whoever stops waiting does not stop it.
    pub(crate) async fn now(mut self) {
        if let Some(task) = self.begin() {
            let _ = task.await;
        }
    }

    fn begin(&mut self) -> Option<JoinHandle<()>> {
        let requests = std::mem::take(&mut self.requests);
        if requests.is_empty() {
            return None;
        }
        let common = self.store.route.common();
        let permit = common.giving.clone().try_acquire_owned().ok()?;
        let store = self.store.clone();
        Some(common.runtime.spawn(async move {
            join_all(requests.into_iter().map(|request| give(&store, request))).await;
            drop(permit);
        }))
    }
}

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        self.begin();
    }
}

async fn give(store: &RedisStore, request: Request) {
    for time in 0..TRIES {
        if time > 0 {
            sleep(PAUSE * time).await;
        }
        if store.ask(request.clone()).await.is_ok() {
            return;
        }
    }
}
