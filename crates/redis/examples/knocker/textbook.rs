//! The script of `docs/textbook-script.md`, which takes the caller's time.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, pipe};
use tidegate_core::Quota;

use crate::Failure;
use crate::seen::Answer;

const PAGE: &str = include_str!("../../../../docs/textbook-script.md");

#[derive(Clone)]
pub(crate) struct Textbook {
    connection: MultiplexedConnection,
}

impl Textbook {
    pub(crate) async fn new(url: &str) -> Result<Self, Failure> {
        Ok(Self { connection: Client::open(url)?.get_multiplexed_async_connection().await? })
    }

    /// `now` is the caller's time. The answer's is the store's, read in the same step.
    pub(crate) async fn ask(&mut self, quota: &Quota, key: &[u8], now: Duration) -> Result<Answer, Failure> {
        let (_, rest) = PAGE.split_once("```lua\n").ok_or("the page shows a script")?;
        let (script, _) = rest.split_once("```").ok_or("the script ends")?;
        let per_s = quota.rate().count() as f64 / quota.rate().period().as_secs_f64();
        let mut ask = pipe();
        ask.atomic().cmd("TIME").cmd("EVAL").arg(script).arg(1).arg(key).arg(per_s).arg(quota.burst());
        ask.arg(format!("{}.{:06}", now.as_secs(), now.subsec_micros())).arg(1);
        let ((s, us), allowed): ((u64, u64), u64) = ask.query_async(&mut self.connection).await?;
        Ok(Answer { at_ns: (s * 1_000_000 + us) * 1_000, is_allowed: allowed == 1 })
    }
}
