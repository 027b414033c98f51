//! What a key costs the server in memory, and that keys leave nothing behind.
//!
//! ```text
//! cargo bench -p tidegate-redis --bench memory [-- --keys 10000000]
//! ```
//!
//! Each key has sixteen bytes and one bucket, which is full again after a while. The peer is the textbook script's hash,
//! whose keys are as long.

#[path = "../src/tests/server.rs"]
#[allow(dead_code, reason = "a part is used")]
mod server;

use std::time::{Duration, Instant};

use redis::{Connection, cmd};
use tidegate_core::{Charge, Decision, Limit, LimitId, Quota, Store as _};
use tidegate_redis::{RedisOptions, RedisStore};

use crate::server::{Kind, Server};

const KEYS_DEFAULT: u64 = 1_000_000;
/// Decisions under way at once.
const TASKS: u64 = 128;
/// Longer than it takes to write all keys.
const WAIT_MAX: Duration = Duration::from_secs(900);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|one| one == "--keys").and_then(|i| arguments.get(i + 1)?.parse().ok());
    let keys = given.unwrap_or(KEYS_DEFAULT);
    for kind in Kind::ALL {
        per_key(kind, keys.min(KEYS_DEFAULT));
    }
    expiry(keys);
}

/// Bytes for each idle key.
fn per_key(kind: Kind, keys: u64) {
    let server = Server::start(kind);
    let mut connection = server.connection();
    let before = used_memory(&mut connection);
    write(&server, keys, "1/day");
    assert_eq!(count(&mut connection), keys);
    let ours = (used_memory(&mut connection) - before) as f64 / keys as f64;
    println!("{kind:?}: {ours:.1} bytes a key");
}

/// Writes keys that are soon full again, and waits until the server holds none.
fn expiry(keys: u64) {
    let server = Server::start(Kind::Redis7);
    let mut connection = server.connection();
    let start = Instant::now();
    write(&server, keys, "1/10s");
    println!("{keys} keys written in {:.0} s", start.elapsed().as_secs_f64());
    while count(&mut connection) > 0 {
        assert!(start.elapsed() < WAIT_MAX, "{} keys are left", count(&mut connection));
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("none is left after {:.0} s", start.elapsed().as_secs_f64());
}

fn write(server: &Server, keys: u64, limit: &str) {
    let quota = limit.parse::<Limit>().expect("a limit").quota().expect("with a quota");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut options = RedisOptions::default();
        options.deadline = Duration::from_secs(5);
        let store = &RedisStore::new(&server.url(), options).expect("a store");
        let task = |first| async move {
            for i in (first..keys).step_by(TASKS as usize) {
                decide(store, &quota, &format!("client-{i:09}")).await;
            }
        };
        futures_util::future::join_all((0..TASKS).map(task)).await;
    });
}

async fn decide(store: &RedisStore, quota: &Quota, key: &str) {
    let charge = Charge::new(LimitId::of("bench", "memory"), *quota, key.as_bytes());
    let mut decisions = [Decision::unmade(quota)];
    let verdict = store.decide(&[charge], &mut decisions).await.expect("the store answers");
    assert!(verdict.allowed);
}

fn count(connection: &mut Connection) -> u64 {
    cmd("DBSIZE").query(connection).expect("it answers")
}

fn used_memory(connection: &mut Connection) -> u64 {
    let info: String = cmd("INFO").arg("memory").query(connection).expect("it answers");
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).expect("an account")
}
