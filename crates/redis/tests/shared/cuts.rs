//! Connections that are cut at every byte: what the server keeps is all of a decision or none of it, and it expires.

use std::time::Duration;

use tidegate_core::{Decision, Store as _};
use tidegate_redis::RedisStore;
use tokio::time::sleep;

use crate::given::proxy::Proxy;
use crate::given::{assert_all_expire, charge_under, left, patient, quota};
use crate::server::{Kind, Server};

/// Room enough for all connections of a test.
const LIMIT: &str = "1000/day";

/// Charges two limits of a key in one decision; is there an answer?
async fn both(store: &RedisStore, key: &[u8]) -> bool {
    let charges = ["a", "b"].map(|limit| charge_under(limit, quota(LIMIT), key));
    let mut decisions = charges.map(|charge| Decision::unmade(&charge.quota));
    match store.decide(&charges, &mut decisions).await {
        Ok(verdict) => {
            assert!(verdict.allowed);
            true
        }
        Err(_) => false,
    }
}

/// A store whose connection is made, and the bytes that a decision takes on it, in each direction.
async fn connected(proxy: &Proxy) -> (RedisStore, [u64; 2]) {
    let store = patient(&proxy.url());
    assert!(both(&store, b"first").await);
    let before = proxy.bytes();
    assert!(both(&store, b"k0000").await);
    let after = proxy.bytes();
    (store, [after[0] - before[0], after[1] - before[1]])
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Cut {
    Request,
    Reply,
}

/// Cuts within one decision, after so many bytes; gives what is left of each of the two limits.
async fn cut_within(proxy: &Proxy, direct: &RedisStore, cut: Cut, bytes: u64, key: &[u8]) -> [u64; 2] {
    let (store, _) = connected(proxy).await;
    let budget = i64::try_from(bytes).unwrap();
    match cut {
        Cut::Request => proxy.cut_after_requests(budget),
        Cut::Reply => proxy.cut_after_replies(budget),
    }
    let is_answered = both(&store, key).await;
    proxy.cut_none();
    assert!(!is_answered, "{cut:?} was cut after {bytes} bytes");
    let mut rest = [0; 2];
    for (rest, limit) in rest.iter_mut().zip(["a", "b"]) {
        *rest = left(direct, charge_under(limit, quota(LIMIT), key)).await;
    }
    rest
}

#[tokio::test]
async fn br_026_a_cut_after_any_byte_leaves_all_or_nothing_and_an_expiry() {
    let server = Server::start(Kind::Redis7);
    let proxy = Proxy::before(server.port());
    let direct = patient(&server.url());
    let (_, [request, reply]) = connected(&proxy).await;
    assert!(request > 100 && reply > 20, "{request} and {reply} bytes");
    for bytes in 0..request {
        let key = format!("q{bytes:04}");
        let rest = cut_within(&proxy, &direct, Cut::Request, bytes, key.as_bytes()).await;
        assert_eq!(rest, [1_000, 1_000], "a request of which {bytes} of {request} bytes arrived did nothing");
    }
    for bytes in 0..reply {
        let key = format!("r{bytes:04}");
        let rest = cut_within(&proxy, &direct, Cut::Reply, bytes, key.as_bytes()).await;
        assert_eq!(rest, [999, 999], "a reply that was lost is not asked for again");
    }
    assert_all_expire(&mut server.connection());
}

#[tokio::test]
async fn a_decision_whose_reply_was_lost_is_counted_once_and_the_next_one_finds_its_way() {
    let server = Server::start(Kind::Valkey9);
    let proxy = Proxy::before(server.port());
    let (store, _) = connected(&proxy).await;
    proxy.cut_after_replies(0);
    assert!(!both(&store, b"k").await);
    proxy.cut_none();
    let before = proxy.connections();
    while !both(&store, b"k").await {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(left(&store, charge_under("a", quota(LIMIT), b"k")).await, 998);
    assert_eq!(proxy.connections(), before + 1, "one connection is made anew");
}
