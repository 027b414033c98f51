//! The connection of one runtime to one server: shared by all of its tasks, made again when it is lost.
//!
//! Decisions wait in a queue, from which a call takes as many as are there: while calls are under way the queue fills, so
//! under load many decisions share a call, and at low load none waits for another.
//!
//! A call is made once. Only if the server answers that it has not seen the script, which proves that it did not run, is it
//! made again with the source. A reply that was lost is never asked for again: the tokens may have been taken.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::StoreError;
use crate::health::Health;
use crate::script::Script;
use crate::wire::{Request, Seen, replies};

/// Decisions that may wait for a call.
pub const WAITING_MAX: usize = 4_096;
/// Decisions that share a call.
pub const SHARING_MAX: usize = 32;
/// Calls under way at once.
const CALLS_MAX: usize = 4;
/// The pause before the first new connection, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A decision that waits for its call.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Seen, StoreError>>,
}

/// What a link is made of.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) script: Script,
    pub(crate) health: Arc<Health>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    /// How long a connection, and the first answer on it, may take.
    pub(crate) patience: Duration,
}

/// Why a connection is given up.
enum End {
    /// Nobody will ask any more.
    Closed,
    /// It is lost, leads to a server that cannot serve, or does not answer.
    Lost,
}

impl Link {
    /// Serves until the queue is closed.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            if let Some(connection) = self.connect().await {
                pause = PAUSE;
                self.health.up();
                if matches!(self.serve(connection).await, End::Closed) {
                    return;
                }
            }
            self.health.down();
            if matches!(self.refuse_for(jittered(pause)).await, End::Closed) {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A connection on which the server has answered that it can run the script.
    async fn connect(&self) -> Option<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = timeout(self.patience, connecting).await.ok()?.ok()?;
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&self.script.source);
        timeout(self.patience, answer_to(&mut connection, load)).await.ok()?.ok()?;
        Some(connection)
    }

    async fn serve(&mut self, connection: MultiplexedConnection) -> End {
        let mut calls = FuturesUnordered::new();
        let mut taken = Vec::with_capacity(SHARING_MAX);
        loop {
            tokio::select! {
                Some(is_fit) = ended(&mut calls), if !calls.is_empty() => {
                    if !is_fit {
                        return End::Lost;
                    }
                }
                count = self.jobs.recv_many(&mut taken, SHARING_MAX), if calls.len() < CALLS_MAX => {
                    if count == 0 {
                        return End::Closed;
                    }
                    let jobs = std::mem::replace(&mut taken, Vec::with_capacity(SHARING_MAX));
                    calls.push(call(connection.clone(), self.script.clone(), jobs));
                }
                () = self.health.gave_up() => return End::Lost,
            }
        }
    }

    /// Answers whoever still asks that the store is not available.
    async fn refuse_for(&mut self, pause: Duration) -> End {
        let refuse = async {
            while let Some(job) = self.jobs.recv().await {
                let _ = job.reply.send(Err(StoreError::Unavailable));
            }
        };
        match timeout(pause, refuse).await {
            Ok(()) => End::Closed,
            Err(_) => End::Lost,
        }
    }
}

/// The next of the calls that ends: is the connection still fit? `None` if none is under way.
async fn ended<F: Future<Output = bool>>(calls: &mut FuturesUnordered<F>) -> Option<bool> {
    calls.next().await
}

/// Makes one call for all of these decisions, and tells each its own. Is the connection still fit?
async fn call(mut connection: MultiplexedConnection, script: Script, jobs: Vec<Job>) -> bool {
    // Whoever has stopped waiting is not charged, as far as that is known in time.
    let jobs: Vec<_> = jobs.into_iter().filter(|job| !job.reply.is_closed()).collect();
    if jobs.is_empty() {
        return true;
    }
    let requests = jobs.iter().map(|job| &job.request);
    let counts: Vec<_> = requests.clone().map(|request| request.keys.len()).collect();
    let mut answer = answer_to(&mut connection, script.by_digest(requests.clone())).await;
    if answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)) {
        answer = answer_to(&mut connection, script.by_source(requests)).await;
    }
    let (told, is_fit) = match answer {
        Ok(value) => (replies(value, &counts), true),
        Err(error) => {
            let told = told(&error);
            (counts.iter().map(|_| Err(told.clone())).collect(), is_fit_after(&error))
        }
    };
    for (job, seen) in jobs.into_iter().zip(told) {
        // A caller that does not wait any more needs no answer.
        let _ = job.reply.send(seen);
    }
    is_fit
}

/// What the server answers; an error that it answers is one.
async fn answer_to(connection: &mut MultiplexedConnection, call: Cmd) -> RedisResult<Value> {
    connection.req_packed_command(&call).await.and_then(Value::extract_error)
}

fn told(error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => StoreError::Server(error.to_string()),
        ErrorKind::Io => StoreError::Unavailable,
        _ => StoreError::Malformed,
    }
}

/// Can the next decision be asked for on the same connection? Not if it is broken, and not if it leads to a replica: after a
/// failover another server stands behind the address.
fn is_fit_after(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(kind) => !matches!(kind, ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown),
        ErrorKind::Extension => true,
        _ => false,
    }
}

/// Between half of the pause and all of it, so that many processes do not come back at one moment.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    pause / 2 + (pause / 2) * u32::from(random as u16) / u32::from(u16::MAX)
}
