//! How long a key stays: until its bucket is full, and never for ever, on every branch of the script.

use redis::{Connection, Value, cmd};
use tidegate_core::{Algorithm, Mode, Quota, Store as _};
use tidegate_redis::RedisStore;

use crate::given::clocked::Clocked;
use crate::given::{answer, ask, assert_all_expire, charge, charge_under, kept, left, of_cost, passes, patient, quota};
use crate::server::{Kind, Server};

/// What is added to the time to full, in milliseconds.
const MORE_MS: i64 = 2;

/// Milliseconds after which the only key expires.
fn expiry_ms(connection: &mut Connection) -> i64 {
    let keys = kept(connection);
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys[0].1
}

#[tokio::test]
async fn br_019_the_expiry_is_the_time_to_full_in_milliseconds() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut connection = server.connection();
        let store = patient(&server.url());
        for (limit, full_ms) in [("60/min", 1_000), ("1/h", 3_600_000), ("3/day", 28_800_000)] {
            let decision = ask(&store, charge(limit, b"k")).await.unwrap();
            let us = |time: Value| match time {
                Value::Array(parts) => parts.iter().fold(0_u64, |us, part| match part {
                    Value::BulkString(text) => {
                        us * 1_000_000 + std::str::from_utf8(text).unwrap().parse::<u64>().unwrap()
                    }
                    other => panic!("{other:?}"),
                }),
                other => panic!("{other:?}"),
            };
            let ms = expiry_ms(&mut connection);
            let since_ms =
                (us(answer(&mut connection, &cmd("TIME"))) - decision.decided_at().as_nanos() / 1_000) / 1_000;
            let elapsed_ms = i64::try_from(since_ms).unwrap() + 1;
            assert!((full_ms - elapsed_ms..=full_ms + MORE_MS).contains(&ms), "{kind:?}, {limit}: {ms} ms");
            answer(&mut connection, &cmd("FLUSHALL"));
        }
    }
}

#[tokio::test]
async fn br_021_an_expiry_that_is_lost_comes_back_and_an_old_count_never_gets_a_new_one() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let store = patient(&server.url());
    let window = quota("100/min").with_algorithm(Algorithm::FixedWindow).unwrap();
    let hit = charge_under("limit", window, b"k");
    let start_ms = 120_000;
    server.set_ms(start_ms);
    assert_eq!(passes(&store, hit, 60).await, 60);
    let whole_ms = 60_000 + MORE_MS;
    assert_eq!(expiry_ms(&mut connection), whole_ms);

    // In the last millisecond of the window the count is the old one, and so is its end.
    server.set_us(start_ms * 1_000 + 59_999_500);
    assert_eq!(ask(&store, hit).await.unwrap().remaining(), 39);
    assert!(expiry_ms(&mut connection) <= 1 + MORE_MS);
    // The key is still there when its window is over: a new window, and a count of one.
    server.set_ms(start_ms + 60_000);
    assert_eq!(ask(&store, hit).await.unwrap().remaining(), 99);
    assert_eq!(expiry_ms(&mut connection), whole_ms);

    // Somebody took the expiry away: the next one that passes sets it again.
    let key = kept(&mut connection).remove(0).0;
    answer(&mut connection, cmd("PERSIST").arg(&key));
    assert_eq!(expiry_ms(&mut connection), -1);
    server.set_ms(start_ms + 90_000);
    assert_eq!(ask(&store, hit).await.unwrap().remaining(), 98);
    assert_eq!(expiry_ms(&mut connection), 30_000 + MORE_MS);

    answer(&mut connection, cmd("DEL").arg(&key));
    assert_eq!(ask(&store, hit).await.unwrap().remaining(), 99);
}

/// The branches of the script: each is taken on an empty store and on a warm one, under a limit that is in force, and
/// under another one that was when the key was written.
const BRANCHES: &[&str] = &["hit", "look", "denied", "never", "shadow", "denied shadow", "grant", "big grant", "reset"];

async fn branch(store: &RedisStore, name: &str, quota: Quota) {
    let one = charge_under("limit", quota, b"k");
    let shadow = one.with_mode(Mode::Shadow);
    let spend = of_cost(one, quota.burst());
    let answered = match name {
        "hit" => ask(store, one).await.map(|_| ()),
        "look" => ask(store, of_cost(one, 0)).await.map(|_| ()),
        "denied" => {
            let _ = ask(store, spend).await.unwrap();
            ask(store, spend).await.map(|_| ())
        }
        "never" => ask(store, of_cost(one, quota.burst() + 1)).await.map(|_| ()),
        "shadow" => ask(store, shadow).await.map(|_| ()),
        "denied shadow" => {
            let _ = ask(store, spend).await.unwrap();
            ask(store, of_cost(shadow, quota.burst())).await.map(|_| ())
        }
        "grant" => store.grant(one.limit, &quota, b"k", 1).await,
        "big grant" => store.grant(one.limit, &quota, b"k", u64::MAX).await,
        "reset" => store.reset(one.limit, b"k").await,
        other => panic!("{other}"),
    };
    answered.unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[tokio::test]
async fn br_027_every_branch_leaves_an_expiry() {
    // Before and in force: the same, another rate, another burst, and both.
    const LIMITS: &[(&str, &str)] =
        &[("10/s", "10/s"), ("10/day", "10/day"), ("10/day", "20/h"), ("20/day", "5/day"), ("5/min", "50/h")];
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut connection = server.connection();
        let store = patient(&server.url());
        for (before, now) in LIMITS {
            for algorithm in Algorithm::ALL {
                let [before, now] = [before, now].map(|limit| quota(limit).with_algorithm(algorithm).unwrap());
                // A bucket whose burst is its count fills within the period; what is not written keeps its expiry.
                let longest = before.time_to_fill().max(now.time_to_fill());
                let longest_ms = i64::try_from(longest.as_millis()).unwrap() + MORE_MS;
                for name in BRANCHES {
                    for warm in [0, 1, before.burst()] {
                        answer(&mut connection, &cmd("FLUSHALL"));
                        let _ = ask(&store, of_cost(charge_under("limit", before, b"k"), warm)).await.unwrap();
                        branch(&store, name, now).await;
                        let keys = kept(&mut connection);
                        let is_bounded = |ms: i64| (0..=longest_ms).contains(&ms);
                        assert!(keys.iter().all(|(_, ms)| is_bounded(*ms)), "{kind:?} {algorithm} {name}: {keys:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn br_026_keys_that_are_full_within_a_millisecond_expire_too() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server.url());
    for i in 0..1_000_u32 {
        assert!(ask(&store, charge("1000/s", &i.to_be_bytes())).await.unwrap().is_allowed());
    }
    assert_all_expire(&mut server.connection());
}

#[tokio::test]
async fn br_099_giving_back_never_makes_more_than_full_and_no_key_that_stays() {
    let server = Clocked::start();
    let mut connection = server.connection();
    let store = patient(&server.url());
    let five = charge("5/s", b"k");
    assert_eq!(passes(&store, five, 5).await, 5);
    server.set_ms(1_500);
    for _ in 0..10 {
        store.grant(five.limit, &five.quota, b"k", 1).await.unwrap();
        store.grant(five.limit, &five.quota, b"absent", 1).await.unwrap();
    }
    assert_eq!(kept(&mut connection), []);
    assert_eq!(passes(&store, five, 10).await, 5);
    assert_eq!(left(&store, charge("5/s", b"absent")).await, 5);
    assert_all_expire(&mut connection);
}
