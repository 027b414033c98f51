//! The task behind a link: one connection, shared by all who ask, and made again when it is lost.
//!
//! One attempt to connect at a time, with growing and jittered pauses between them, however many wait. A connection counts
//! when the server has said that it is a primary and has taken the script.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::StoreError;
use crate::call::{SHARING_MAX, call, lanes};
use crate::connection::Connection;
use crate::failure::{Against, Fault};
use crate::health::Health;
use crate::link::{Common, Job};
use crate::target::Target;

/// The pause before the first new connection, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Serve {
    pub(crate) target: Target,
    pub(crate) common: Arc<Common>,
    pub(crate) health: Arc<Health>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    /// While so many calls are under way no more are begun.
    pub(crate) calls_max: usize,
}

/// Why a connection is given up.
enum End {
    /// Nobody will ask any more.
    Closed,
    /// It is lost, leads to a server that cannot serve, or does not answer.
    Lost,
}

impl Serve {
    /// Serves until the queue is closed.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            match self.connect().await {
                Ok(connection) => {
                    self.health.up();
                    if matches!(self.serve(connection).await, End::Closed) {
                        return;
                    }
                    // One that was connected and never answered is as good as one that was not.
                    if self.health.is_proven() {
                        pause = PAUSE;
                    }
                }
                Err(fault) if fault.kind.against() == Against::Configuration => self.common.complaints.tell(&fault),
                Err(_) => {}
            }
            self.health.down();
            self.common.lost.notify_one();
            if matches!(self.refuse_for(jittered(pause)).await, End::Closed) {
                return;
            }
            self.common.counts.reconnected();
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A connection on which the server has answered that it can run the script.
    async fn connect(&self) -> Result<Connection, Fault> {
        let connection = self.target.connect(&self.common.dialer).await?;
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&self.common.script.source);
        connection.ask(&load).await?;
        Ok(connection)
    }

    async fn serve(&mut self, mut connection: Connection) -> End {
        let Self { target, common, health, jobs: queue, calls_max } = self;
        let at = connection.at.clone();
        let mut left = pin!(target.left(&common.dialer, &at));
        let mut calls = FuturesUnordered::new();
        let mut taken = Vec::with_capacity(SHARING_MAX);
        loop {
            tokio::select! {
                Some(is_fit) = ended(&mut calls), if !calls.is_empty() => {
                    if !is_fit {
                        return End::Lost;
                    }
                }
                count = queue.recv_many(&mut taken, SHARING_MAX), if calls.len() < *calls_max => {
                    if count == 0 {
                        // Who still waits is told.
                        let _ = timeout(common.dialer.patience, calls.count()).await;
                        return End::Closed;
                    }
                    for (lane, jobs) in lanes(taken.drain(..)) {
                        calls.push(call(connection.calls(), Arc::clone(common), lane, jobs));
                    }
                }
                () = connection.ended() => return End::Lost,
                () = health.gave_up() => return End::Lost,
                () = &mut left => return End::Lost,
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

/// Between half of the pause and all of it, so that many processes do not come back at one moment.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause / 2 + (pause / 2) * u32::from(random()) / u32::from(u16::MAX)
}

/// A number that no other process draws.
pub(crate) fn random() -> u16 {
    RandomState::new().build_hasher().finish() as u16
}
