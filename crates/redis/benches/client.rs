//! What our client adds: throughput over one shared connection, and time at low load.
//!
//! ```text
//! cargo bench -p tidegate-redis --bench client
//! ```
//!
//! The peer for throughput does nothing but send: sixteen deep on fifty connections, as redis-benchmark does, the very
//! calls that a store sends (recorded on their way; redis-benchmark itself cannot send the zero bytes in them). The peer
//! at low load is a bare GET on the redis crate's connection. Both sides take turns on one server.

#[path = "script/calls.rs"]
#[allow(dead_code, reason = "a part is used")]
mod calls;
#[path = "script/drive.rs"]
#[allow(dead_code, reason = "a part is used")]
mod drive;
#[path = "script/record.rs"]
#[allow(dead_code, reason = "a part is used")]
mod record;
#[path = "script/reply.rs"]
mod reply;
#[path = "../src/tests/server.rs"]
#[allow(dead_code, reason = "a part is used")]
mod server;

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::cmd;
use tidegate_core::{Charge, Decision, Limit, LimitId, Store as _};
use tidegate_redis::{RedisOptions, RedisStore};
use tokio::runtime::{Builder, Runtime};

use crate::calls::contestants;
use crate::drive::Driver;
use crate::server::{Kind, Server};

const ROUNDS: usize = 7;
const TASKS: usize = 64;
const TURN: Duration = Duration::from_secs(1);
/// Calls, one after the other, of which the median is told.
const CALLS: usize = 4_000;

fn main() {
    let server = Server::start(Kind::Redis7);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    throughput(&server, &runtime);
    low_load(&server, &runtime);
}

fn throughput(server: &Server, runtime: &Runtime) {
    let sent = contestants(server).into_iter().find(|one| one.name == "ours, one limit").expect("it takes part");
    let driver = Driver::new(server);
    let store = runtime.block_on(async { store(&server.url()) });
    let mut ratios = Vec::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(runtime.block_on(decisions_per_s(&store)));
        theirs.push(driver.calls(&sent, TURN) as f64 / TURN.as_secs_f64());
        ratios.push(ours[ours.len() - 1] / theirs[theirs.len() - 1]);
    }
    println!(
        "{TASKS} tasks over one connection: {:.0} decisions a second; the same calls, sixteen deep on fifty: {:.0}; ratio {:.2}",
        median(ours),
        median(theirs),
        median(ratios)
    );
}

fn low_load(server: &Server, runtime: &Runtime) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let store = store(&server.url());
        let client = redis::Client::open(server.url()).expect("a URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("it connects");
        for _ in 0..ROUNDS {
            ours.push(median_us_of_decisions(&store).await);
            theirs.push(median_us_of_gets(&mut connection).await);
        }
    });
    let added = median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect());
    println!(
        "one at a time: a decision {:.1} us, a bare GET {:.1} us; the median of the differences is {added:.1} us",
        median(ours),
        median(theirs)
    );
}

fn store(url: &str) -> RedisStore {
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(5);
    RedisStore::new(url, options).expect("a store")
}

async fn decisions_per_s(store: &RedisStore) -> f64 {
    let start = Instant::now();
    let task = |i: usize| async move {
        let mut made = 0_u64;
        while start.elapsed() < TURN {
            decide(store, i).await;
            made += 1;
        }
        made
    };
    let made: u64 = futures_util::future::join_all((0..TASKS).map(task)).await.into_iter().sum();
    made as f64 / start.elapsed().as_secs_f64()
}

async fn median_us_of_decisions(store: &RedisStore) -> f64 {
    let mut taken = Vec::with_capacity(CALLS);
    for i in 0..CALLS {
        let start = Instant::now();
        decide(store, i % TASKS).await;
        taken.push(start.elapsed().as_secs_f64() * 1e6);
    }
    median(taken)
}

async fn median_us_of_gets(connection: &mut MultiplexedConnection) -> f64 {
    let mut taken = Vec::with_capacity(CALLS);
    for i in 0..CALLS {
        let get = cmd("GET").arg(format!("key-{}", i % TASKS)).to_owned();
        let start = Instant::now();
        let _: Option<Vec<u8>> = get.query_async(connection).await.expect("it answers");
        taken.push(start.elapsed().as_secs_f64() * 1e6);
    }
    median(taken)
}

async fn decide(store: &RedisStore, i: usize) {
    let quota = "1000000/s burst 1000000".parse::<Limit>().expect("a limit").quota().expect("with a quota");
    let key = (i as u64).to_be_bytes();
    let charge = Charge::new(LimitId::of("bench", "client"), quota, &key);
    let mut decisions = [Decision::unmade(&quota)];
    let verdict = store.decide(&[charge], &mut decisions).await.expect("the store answers");
    assert!(verdict.allowed);
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
