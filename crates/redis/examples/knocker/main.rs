//! One process of several that ask for the same keys as fast as they are answered, for some seconds.
//!
//! ```text
//! knocker HOW URL LIMIT KEYS TASKS SECONDS
//! ```
//!
//! HOW is `store` (ours), or one of the two that are known to be wrong, which show that the tests can fail:
//! `read-then-write` and `textbook`. It prints its own clock (`clock NS`), and in the end for each key what it was answered,
//! by the store's clock: `key K asked N first NS last NS passed NS NS ...`; and how often it had no answer (`errors N`).

mod read_then_write;
mod seen;
mod textbook;

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_core::{Charge, Decision, Limit, LimitId, Quota, Store as _};
use tidegate_redis::{RedisOptions, RedisStore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::read_then_write::ReadThenWrite;
use crate::seen::{Answer, Seen};
use crate::textbook::Textbook;

type Failure = Box<dyn Error + Send + Sync>;

/// Who decides.
#[derive(Clone)]
enum Decider {
    Store(RedisStore),
    ReadThenWrite(ReadThenWrite),
    Textbook(Textbook),
}

impl Decider {
    async fn new(how: &str, url: &str) -> Result<Self, Failure> {
        // The deadline is not what is asked here.
        let mut options = RedisOptions::default();
        options.deadline = Duration::from_secs(10);
        match how {
            "store" => Ok(Self::Store(RedisStore::new(url, options)?)),
            "read-then-write" => Ok(Self::ReadThenWrite(ReadThenWrite::new(url).await?)),
            "textbook" => Ok(Self::Textbook(Textbook::new(url).await?)),
            other => Err(format!("who decides? not {other}").into()),
        }
    }

    async fn ask(&mut self, quota: &Quota, key: &[u8]) -> Result<Answer, Failure> {
        match self {
            Self::Store(store) => ask_store(store, quota, key).await,
            Self::ReadThenWrite(decider) => decider.ask(quota, key).await,
            Self::Textbook(decider) => decider.ask(quota, key, now()?).await,
        }
    }
}

async fn ask_store(store: &RedisStore, quota: &Quota, key: &[u8]) -> Result<Answer, Failure> {
    let charge = Charge::new(LimitId::of("knocker", "limit"), *quota, key);
    let mut decisions = [Decision::unmade(quota)];
    let verdict = store.decide(&[charge], &mut decisions).await?;
    Ok(Answer { at_ns: decisions[0].decided_at().as_nanos(), is_allowed: verdict.allowed })
}

/// This process's own clock.
fn now() -> Result<Duration, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [how, url, limit, keys, tasks, seconds] = arguments.as_slice() else {
        return Err("knocker HOW URL LIMIT KEYS TASKS SECONDS".into());
    };
    let quota = limit.parse::<Limit>()?.quota().ok_or("a limit that limits")?;
    let (keys, tasks, seconds): (usize, usize, u64) = (keys.parse()?, tasks.parse()?, seconds.parse()?);
    println!("clock {}", now()?.as_nanos());
    let decider = Decider::new(how, url).await?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut knocking = JoinSet::new();
    for task in 0..tasks {
        knocking.spawn(knock(decider.clone(), quota, keys, keys * task / tasks, end));
    }
    let mut seen = Seen::of(keys);
    knocking.join_all().await.into_iter().for_each(|more| seen.add(more));
    print!("{seen}");
    Ok(())
}

/// Asks for one key after the other, from the `start`th on, until the end. Runs over another number of keys have other keys.
async fn knock(mut decider: Decider, quota: Quota, keys: usize, start: usize, end: Instant) -> Seen {
    let mut seen = Seen::of(keys);
    for key in (0..keys).cycle().skip(start) {
        if Instant::now() >= end {
            break;
        }
        match decider.ask(&quota, format!("{keys}/{key}").as_bytes()).await {
            Ok(answer) => seen.record(key, answer),
            Err(error) => seen.failed(error.as_ref()),
        }
    }
    seen
}
