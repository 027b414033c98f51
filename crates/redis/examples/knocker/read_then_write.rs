//! A limiter that reads the bucket, decides in this process, and writes it back: right in each step, and wrong together,
//! since others read the same bucket in between.

use redis::aio::MultiplexedConnection;
use redis::{Client, pipe};
use tidegate_core::{Cost, Quota, State, Time, decide};

use crate::Failure;
use crate::seen::Answer;

#[derive(Clone)]
pub(crate) struct ReadThenWrite {
    connection: MultiplexedConnection,
}

impl ReadThenWrite {
    pub(crate) async fn new(url: &str) -> Result<Self, Failure> {
        Ok(Self { connection: Client::open(url)?.get_multiplexed_async_connection().await? })
    }

    /// The time and the bucket are read in one step, the same arithmetic decides, and then the bucket is written.
    pub(crate) async fn ask(&mut self, quota: &Quota, key: &[u8]) -> Result<Answer, Failure> {
        let mut read = pipe();
        read.atomic().cmd("TIME").cmd("GET").arg(key);
        let ((s, us), kept): ((u64, u64), Option<String>) = read.query_async(&mut self.connection).await?;
        let now = Time::from_nanos((s * 1_000_000 + us) * 1_000);
        let state = match kept.as_deref().and_then(|kept| kept.split_once(' ')) {
            Some((deficit, ns)) => State::from_parts(deficit.parse()?, Time::from_nanos(ns.parse()?)),
            None => State::FULL,
        };
        let (decision, next) = decide(quota, state, Cost::ONE, now);
        let kept = format!("{} {}", next.deficit(), next.stamp().as_nanos());
        let (): () = pipe().cmd("SET").arg(key).arg(kept).query_async(&mut self.connection).await?;
        Ok(Answer { at_ns: now.as_nanos(), is_allowed: decision.is_allowed() })
    }
}
