//! Servers whose memory is full: what `docs/redis.md` says of each policy.

use redis::{Connection, cmd};
use tidegate_redis::{RedisStore, StoreError};

use crate::given::{answer, ask, charge, left, of_cost, passes, patient};
use crate::server::{Kind, Server};

/// Room for a few thousand buckets beyond what an empty server takes.
const ROOM_BYTES: u64 = 1_000_000;
/// Far more than there is room for.
const KEYS: u32 = 20_000;

/// A server with a little room, and this policy.
fn start(kind: Kind, policy: &str) -> (Server, Connection) {
    let server = Server::start_with(kind, &["--maxmemory-policy", policy]);
    let mut connection = server.connection();
    let info: String = redis::from_redis_value(answer(&mut connection, cmd("INFO").arg("memory"))).unwrap();
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().parse::<u64>().unwrap();
    answer(&mut connection, cmd("CONFIG").arg("SET").arg("maxmemory").arg(used + ROOM_BYTES));
    (server, connection)
}

/// Charges one key after the other, until the server has no room or there are no more keys.
async fn flood(store: &RedisStore) -> Result<(), StoreError> {
    for key in 0..KEYS {
        assert!(ask(store, charge("10/min", &key.to_be_bytes())).await?.is_allowed());
    }
    Ok(())
}

#[tokio::test]
async fn without_eviction_a_newcomer_is_an_error_and_nobody_is_forgotten() {
    for kind in Kind::ALL {
        let (server, _) = start(kind, "noeviction");
        let store = patient(&server.url());
        assert_eq!(passes(&store, charge("3/day", b"spent"), 4).await, 3);
        let full = flood(&store).await.unwrap_err();
        assert!(matches!(&full, StoreError::Server(text) if text.starts_with("OOM")), "{full:?}");
        // A denial needs no room, and neither does a look.
        assert!(!ask(&store, charge("3/day", b"spent")).await.unwrap().is_allowed());
        assert_eq!(left(&store, charge("3/day", b"spent")).await, 0);
    }
}

#[tokio::test]
async fn with_volatile_ttl_newcomers_are_served_and_long_limits_outlive_a_flood() {
    for kind in Kind::ALL {
        let (server, mut connection) = start(kind, "volatile-ttl");
        let store = patient(&server.url());
        assert!(ask(&store, of_cost(charge("3/day", b"spent"), 3)).await.unwrap().is_allowed());
        flood(&store).await.unwrap();
        let redis::Value::Int(keys) = answer(&mut connection, &cmd("DBSIZE")) else { panic!("a number") };
        assert!(keys < i64::from(KEYS), "some were forgotten: {keys} are left");
        assert!(!ask(&store, charge("3/day", b"spent")).await.unwrap().is_allowed(), "{kind:?}");
    }
}
