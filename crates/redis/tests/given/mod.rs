//! What the tests are given: charges, stores, what is left in a server, a network that can be broken, clocks that can be
//! set, and the law.

#![allow(dead_code, reason = "each of the test programs uses its part")]

pub(crate) mod clocked;
pub(crate) mod law;
pub(crate) mod proxy;
pub(crate) mod textbook;

use std::time::Duration;

use redis::{Cmd, Connection, ConnectionLike as _, Value, cmd};
use tidegate_core::{Charge, Cost, Decision, Limit, LimitId, Quota, Store as _};
use tidegate_redis::{RedisOptions, RedisStore, StoreError};

/// The quota of a limit as people write it.
pub(crate) fn quota(limit: &str) -> Quota {
    limit.parse::<Limit>().unwrap().quota().unwrap()
}

/// A charge of one token.
pub(crate) fn charge<'a>(limit: &str, key: &'a [u8]) -> Charge<'a> {
    charge_under("limit", quota(limit), key)
}

pub(crate) fn charge_under<'a>(name: &str, quota: Quota, key: &'a [u8]) -> Charge<'a> {
    Charge::new(LimitId::of("test", name), quota, key)
}

/// The same charge of another cost.
pub(crate) fn of_cost(charge: Charge<'_>, tokens: u64) -> Charge<'_> {
    charge.with_cost(Cost::new(tokens))
}

/// A store whose deadline is not what is tested: the machine that runs the tests may be busy.
pub(crate) fn patient(url: &str) -> RedisStore {
    RedisStore::new(url, options(Duration::from_secs(5))).unwrap()
}

pub(crate) fn options(deadline: Duration) -> RedisOptions {
    let mut options = RedisOptions::default();
    options.deadline = deadline;
    options.patience = deadline.max(Duration::from_millis(500));
    options
}

pub(crate) async fn ask(store: &RedisStore, charge: Charge<'_>) -> Result<Decision, StoreError> {
    let mut decisions = [Decision::unmade(&charge.quota)];
    store.decide(&[charge], &mut decisions).await.map(|_| decisions[0])
}

/// How many of `times` pass, one after the other.
pub(crate) async fn passes(store: &RedisStore, charge: Charge<'_>, times: usize) -> usize {
    let mut passed = 0;
    for _ in 0..times {
        passed += usize::from(ask(store, charge).await.unwrap().is_allowed());
    }
    passed
}

/// The tokens that are left.
pub(crate) async fn left(store: &RedisStore, charge: Charge<'_>) -> u64 {
    ask(store, of_cost(charge, 0)).await.unwrap().remaining()
}

/// A command's answer.
pub(crate) fn answer(connection: &mut Connection, command: &Cmd) -> Value {
    connection.req_command(command).unwrap()
}

/// All keys of a server, with the milliseconds after which each expires; -1 is never.
pub(crate) fn kept(connection: &mut Connection) -> Vec<(Vec<u8>, i64)> {
    let Value::Array(keys) = answer(connection, cmd("KEYS").arg("*")) else { panic!("keys") };
    let names = keys.into_iter().map(|key| match key {
        Value::BulkString(key) => key,
        other => panic!("{other:?}"),
    });
    let names: Vec<_> = names.collect();
    let expiry = |key: Vec<u8>| match answer(connection, cmd("PTTL").arg(&key)) {
        Value::Int(ms) => (key, ms),
        other => panic!("{other:?}"),
    };
    // One that expired between the two commands is gone.
    names.into_iter().map(expiry).filter(|(_, ms)| *ms != -2).collect()
}

/// No key stays for ever.
pub(crate) fn assert_all_expire(connection: &mut Connection) {
    for (key, ms) in kept(connection) {
        assert!(ms >= 0, "{} has no expiry", String::from_utf8_lossy(&key));
    }
}
