//! One call of the script for decisions that share it.
//!
//! A call is made once. Only if the server answers that it has not seen the script, which proves that it did not run, is it
//! made again with the source. A reply that was lost is never asked for again: the tokens may have been taken.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value, pipe};

use crate::StoreError;
use crate::connection::{answer, server_text};
use crate::failure::{Against, FailureKind};
use crate::link::{Common, Job};
use crate::wire::{Request, replies};

/// Decisions that share a call.
pub const SHARING_MAX: usize = 32;

/// Which decisions may share a call: those of one slot that are asked for in the same manner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) slot: u16,
    pub(crate) manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With others.
    Shared,
    /// Alone: while a slot moves, the keys of several decisions need not be in one place.
    Alone,
    /// Alone, and of a node that is only just taking the slot over.
    Asking,
}

impl Lane {
    /// Where all that is asked shares calls.
    pub(crate) fn shared(slot: u16) -> Self {
        Self { slot, manner: Manner::Shared }
    }
}

/// Sorts decisions into the calls that they make.
pub(crate) fn lanes(jobs: impl Iterator<Item = Job>) -> Vec<(Lane, Vec<Job>)> {
    let mut lanes: Vec<(Lane, Vec<Job>)> = Vec::new();
    for job in jobs {
        // Whoever has stopped waiting is not charged, as far as that is known in time.
        if job.reply.is_closed() {
            continue;
        }
        let sharing = lanes.iter_mut().find(|(lane, _)| *lane == job.lane && lane.manner == Manner::Shared);
        match sharing {
            Some((_, jobs)) => jobs.push(job),
            None => lanes.push((job.lane, vec![job])),
        }
    }
    lanes
}

/// Makes one call for all of these decisions, and tells each its own. Is the connection still fit?
pub(crate) async fn call(
    mut connection: MultiplexedConnection,
    common: Arc<Common>,
    lane: Lane,
    jobs: Vec<Job>,
) -> bool {
    let _under_way = common.counts.in_flight(jobs.len());
    let requests = jobs.iter().map(|job| &*job.request);
    let counts: Vec<_> = requests.clone().map(|request: &Request| request.keys.len()).collect();
    let script = &common.script;
    let mut answer = answer_to(&mut connection, lane, script.by_digest(requests.clone())).await;
    if answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)) {
        answer = answer_to(&mut connection, lane, script.by_source(requests)).await;
    }
    let (told, is_fit) = match answer {
        Ok(value) => {
            let told = replies(value, &counts);
            let refused =
                |seen: &Result<_, _>| matches!(seen, Err(error @ StoreError::Server(_)) if !is_fit_after(error));
            let is_fit = !told.iter().any(refused);
            (told, is_fit)
        }
        Err(error) => {
            let told = told(&error);
            let is_fit = is_fit_after(&told);
            (counts.iter().map(|_| Err(told.clone())).collect(), is_fit)
        }
    };
    for (job, seen) in jobs.into_iter().zip(told) {
        // A caller that does not wait any more needs no answer.
        let _ = job.reply.send(seen);
    }
    is_fit
}

async fn answer_to(connection: &mut MultiplexedConnection, lane: Lane, call: Cmd) -> RedisResult<Value> {
    if lane.manner != Manner::Asking {
        return answer(connection.send_packed_command(&call).await);
    }
    let mut both = pipe();
    both.cmd("ASKING").add_command(call);
    let answers = connection.send_packed_commands(&both, 0, both.len()).await?;
    answers.into_iter().next_back().unwrap_or(Value::Nil).extract_error()
}

fn told(error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => StoreError::Server(server_text(error)),
        ErrorKind::Io => StoreError::Unavailable,
        _ => StoreError::Malformed,
    }
}

/// Can the next decision be asked for on the same connection? Not if it is broken, if another user is wanted, or if it
/// leads to a replica: after a failover another server stands behind the address.
fn is_fit_after(error: &StoreError) -> bool {
    match error {
        StoreError::Server(text) => {
            let kind = FailureKind::of_answer(text);
            kind.against() != Against::Connection && kind != FailureKind::Login
        }
        _ => false,
    }
}
