//! One node of a service whose nodes share a limit: it asks as fast as it is answered, for some seconds.
//!
//! ```text
//! node URL LIMIT MOST TASKS SECONDS
//! ```
//!
//! MOST is the largest lease; 0 is exact mode. It says when it begins (`began NS`); each request that passes is a line:
//! `passed NS SOURCE`, by the machine's clock. In the end it gives back what it holds, and says how often it asked:
//! `asked N`.

use std::error::Error;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate::redis::{RedisOptions, RedisStore};
use tidegate::{Cost, Limiter, Shared, SharedOptions, Sharing, Source};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, limit, most, tasks, seconds] = arguments.as_slice() else {
        return Err("node URL LIMIT MOST TASKS SECONDS".into());
    };
    let sharing = NonZeroU32::new(most.parse()?).map_or(Sharing::Exact, |most| Sharing::Leased { most });
    let mut options = RedisOptions::default();
    // The deadline is not what is asked here.
    options.deadline = Duration::from_secs(5);
    let shared = Shared::new(RedisStore::new(url, options)?, SharedOptions::default());
    let limiter = Limiter::builder().limit("shared", limit.parse()?).sharing(sharing).over(shared.clone());
    let limiter = std::sync::Arc::new(limiter);

    println!("began {}", now()?);
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut asking = JoinSet::new();
    for _ in 0..tasks.parse::<usize>()? {
        let limiter = std::sync::Arc::clone(&limiter);
        asking.spawn(async move { ask(&limiter, end).await });
    }
    let mut asked = 0;
    while let Some(one) = asking.join_next().await {
        asked += one??;
    }
    shared.give_back_leases().await;
    println!("asked {asked}");
    Ok(())
}

async fn ask(limiter: &Limiter<Shared>, end: Instant) -> Result<u64, Failure> {
    let mut asked = 0;
    while Instant::now() < end {
        let answer = limiter.decide("hot", Cost::ONE).await?;
        asked += 1;
        if answer.is_allowed() {
            tell(answer.source)?;
            tokio::task::yield_now().await;
        } else {
            // A node does not spin on a denial; the others get to run.
            sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(asked)
}

fn tell(source: Source) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "passed {} {}", now()?, source.name())?;
    Ok(out.flush()?)
}

/// Nanoseconds by the machine's clock.
fn now() -> Result<u128, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}
