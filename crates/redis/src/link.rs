//! The way to one server: a queue, and a task that makes calls from it.
//!
//! Decisions wait in the queue, from which a call takes as many as are there: while calls are under way the queue fills, so
//! under load many decisions share a call, and at low load none waits for another. Any task of any runtime may ask; the
//! connection belongs to the runtime in which the store was made.

use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::time::Sleep;

use crate::StoreError;
use crate::call::Lane;
use crate::complaints::Complaints;
use crate::connection::Dialer;
use crate::failure::{Against, Fault};
use crate::health::Health;
use crate::script::Script;
use crate::serve::Serve;
use crate::state::{Counts, Nodes};
use crate::target::Target;
use crate::wire::{Request, Seen};

/// Decisions that may wait for a call to one server.
pub const WAITING_MAX: usize = 4_096;

/// What all links of a store share.
pub(crate) struct Common {
    pub(crate) dialer: Dialer,
    pub(crate) script: Script,
    pub(crate) counts: Counts,
    pub(crate) complaints: Complaints,
    /// Told when a server is lost: in a cluster another may serve its slots.
    pub(crate) lost: Notify,
    /// Where all tasks of the store run.
    pub(crate) runtime: Handle,
    /// For decisions that give back what they had reserved.
    pub(crate) giving: Arc<Semaphore>,
}

/// A decision that waits for its call.
pub(crate) struct Job {
    pub(crate) request: Arc<Request>,
    pub(crate) lane: Lane,
    pub(crate) reply: oneshot::Sender<Result<Seen, StoreError>>,
}

#[derive(Clone)]
pub(crate) struct Link {
    jobs: mpsc::Sender<Job>,
    health: Arc<Health>,
    common: Arc<Common>,
}

impl Link {
    /// A link to `target`, which connects at once. At most `calls_max` calls are under way before those who
    /// wait are gathered.
    pub(crate) fn open(target: Target, common: &Arc<Common>, calls_max: usize) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let health = Arc::new(Health::unknown());
        let serve = Serve { target, common: Arc::clone(common), health: Arc::clone(&health), jobs: queue, calls_max };
        common.runtime.spawn(serve.run());
        Self { jobs, health, common: Arc::clone(common) }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.health.is_up()
    }

    /// Adds what this link knows of itself.
    pub(crate) fn count(&self, nodes: &mut Nodes) {
        nodes.all += 1;
        nodes.up += usize::from(self.is_up());
        nodes.waiting += self.jobs.max_capacity() - self.jobs.capacity();
    }

    /// Asks, at most until the deadline. Nothing is ever asked twice.
    pub(crate) async fn ask(
        &self,
        request: &Arc<Request>,
        lane: Lane,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Seen, StoreError> {
        if !self.health.is_up() {
            return Err(StoreError::Unavailable);
        }
        let (reply, answer) = oneshot::channel();
        self.jobs.try_send(Job { request: Arc::clone(request), lane, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Unavailable,
        })?;
        let seen = tokio::select! {
            biased;
            seen = answer => seen.unwrap_or(Err(StoreError::Unavailable)),
            () = deadline => Err(StoreError::Deadline),
        };
        self.judge(&seen);
        seen
    }

    /// What an answer says about the server.
    fn judge(&self, seen: &Result<Seen, StoreError>) {
        let Err(error) = seen else {
            if self.health.answered() {
                self.common.complaints.settle();
            }
            return;
        };
        let Some(kind) = error.kind() else { return };
        match kind.against() {
            Against::Request => {
                self.health.answered();
            }
            Against::Connection | Against::Store => self.health.failed(),
            Against::Configuration => {
                if let StoreError::Server(text) = error {
                    self.common.complaints.tell(&Fault::new(kind, text.clone()));
                }
                self.health.failed();
            }
        }
    }
}
