//! The keyed table, beside governor's keyed limiter with ahash. Both read the same clock; keys are uniformly random.

mod rounds;

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Duration;

use ahash::RandomState;
use governor::RateLimiter;
use governor::clock::QuantaClock;
use governor::state::keyed::DashMapStateStore;
use rounds::{Clock, compare, header, peer_quota, quota, resident_bytes, scattered, timed};
use tidegate_core::{AtBound, Cost, Decision, LimitId};
use tidegate_memory::{BATCH_MAX, Table, TableLimit, TableOptions};

const ROUNDS: usize = 201;
const OPERATIONS: u64 = 16_000;
const LIMIT: &str = "1000/h";
/// Room for so many keys more than are held, in percent: 31.7 bytes for each key held.
const SPARE_PERCENT: usize = 24;
const BYTES_MAX: f64 = 32.0;

type Peer<K> = RateLimiter<K, DashMapStateStore<K, RandomState>, QuantaClock>;

fn main() {
    numbers(1_000_000);
    strings(10_000_000);
}

fn table(keys: u64) -> (Table, TableLimit) {
    let keys = usize::try_from(keys).expect("64 bits");
    let table = Table::new(TableOptions::with_keys(keys + keys * SPARE_PERCENT / 100));
    let limit = table.know(LimitId::of("bench", "limit"), &quota(LIMIT), AtBound::Displace).expect("few quotas");
    (table, limit)
}

fn peer<K: std::hash::Hash + Eq + Clone>() -> Peer<K> {
    let hasher = RandomState::new();
    RateLimiter::dashmap_with_clock_and_hasher(
        peer_quota(1_000, Duration::from_secs(3_600)),
        QuantaClock::default(),
        hasher,
    )
}

/// Fills both, and prints what a key takes.
fn fill(keys: u64, table: &Table, ours: impl Fn(u64), peers: impl Fn(u64)) {
    (0..keys).for_each(ours);
    let before = resident_bytes();
    (0..keys).for_each(peers);
    let peers_bytes = (resident_bytes() - before) as f64 / keys as f64;
    let bytes = table.bytes() as f64 / keys as f64;
    let verdict = if bytes <= BYTES_MAX { "met" } else { "missed" };
    println!("bytes for each of {keys} keys: ours {bytes:.1}, peer {peers_bytes:.1}, target {BYTES_MAX} {verdict}");
    println!("displaced: {}", table.stats().displaced);
}

fn numbers(keys: u64) {
    header(&format!("{keys} keys of 64 bits, governor keyed with ahash beside it"));
    let (clock, (table, limit), peer) = (Clock::new(), table(keys), peer::<u64>());
    fill(
        keys,
        &table,
        |key| assert!(table.check_at(&limit, &key, Cost::ONE, clock.now()).is_allowed()),
        |key| assert!(peer.check_key(&key).is_ok()),
    );
    let key = |thread: usize, i| scattered(i ^ (thread as u64) << 40, keys);
    for threads in [1, 2] {
        let ours = |t, i| table.check_at(&limit, &key(t, i), Cost::ONE, clock.now()).is_allowed();
        let peers = |t, i| peer.check_key(&key(t, i)).is_ok();
        let name = format!("one by one, {threads} threads");
        compare(&name, 0.75, ROUNDS, || timed(threads, OPERATIONS, ours), || timed(threads, OPERATIONS, peers));
        let batched = || {
            per_key(timed(threads, OPERATIONS / BATCH_MAX as u64, |t, i| {
                let keys: [u64; BATCH_MAX] = std::array::from_fn(|j| key(t, i * BATCH_MAX as u64 + j as u64));
                let mut decisions = [Decision::unmade(limit.quota().quota()); BATCH_MAX];
                table.check_each_at(&limit, &keys, Cost::ONE, clock.now(), &mut decisions);
                black_box(decisions)[0].is_allowed()
            }))
        };
        compare(&format!("batches of sixteen, {threads} threads"), 0.375, ROUNDS, batched, || {
            timed(threads, OPERATIONS, peers)
        });
    }
}

fn strings(keys: u64) {
    header(&format!("{keys} keys of 16 bytes, governor keyed with ahash beside it"));
    let (clock, (table, limit), peer) = (Clock::new(), table(keys), peer::<String>());
    fill(
        keys,
        &table,
        |key| assert!(table.check_at(&limit, &with_name(key, String::clone), Cost::ONE, clock.now()).is_allowed()),
        |key| assert!(with_name(key, |key| peer.check_key(key).is_ok())),
    );
    let key = |thread: usize, i| scattered(i ^ (thread as u64) << 40, keys);
    for threads in [1, 2] {
        let ours = |t, i| with_name(key(t, i), |key| table.check_at(&limit, key, Cost::ONE, clock.now()).is_allowed());
        let peers = |t, i| with_name(key(t, i), |key| peer.check_key(key).is_ok());
        let name = format!("one by one, {threads} threads");
        compare(&name, 0.5, ROUNDS, || timed(threads, OPERATIONS, ours), || timed(threads, OPERATIONS, peers));
        let batched = || {
            per_key(timed(threads, OPERATIONS / BATCH_MAX as u64, |t, i| {
                with_names(
                    |j| key(t, i * BATCH_MAX as u64 + j),
                    |keys| {
                        let mut decisions = [Decision::unmade(limit.quota().quota()); BATCH_MAX];
                        table.check_each_at(&limit, keys, Cost::ONE, clock.now(), &mut decisions);
                        black_box(decisions)[0].is_allowed()
                    },
                )
            }))
        };
        compare(&format!("batches of sixteen, {threads} threads"), 0.25, ROUNDS, batched, || {
            timed(threads, OPERATIONS, peers)
        });
    }
}

fn per_key(batch_ns: Option<f64>) -> Option<f64> {
    batch_ns.map(|ns| ns / BATCH_MAX as f64)
}

/// Calls `with` with the name of a key: sixteen bytes, in memory that is used again.
fn with_name<R>(key: u64, with: impl FnOnce(&String) -> R) -> R {
    thread_local!(static NAME: RefCell<String> = RefCell::new(String::with_capacity(16)));
    NAME.with_borrow_mut(|name| {
        write_name(key, name);
        with(name)
    })
}

fn with_names<R>(key: impl Fn(u64) -> u64, with: impl FnOnce(&[String; BATCH_MAX]) -> R) -> R {
    thread_local!(static NAMES: RefCell<[String; BATCH_MAX]> = const { RefCell::new([const { String::new() }; BATCH_MAX]) });
    NAMES.with_borrow_mut(|names| {
        (0..).zip(names.iter_mut()).for_each(|(j, name)| write_name(key(j), name));
        with(names)
    })
}

/// `key-` and the number in base 64, least digit first: cheap to write, and as long as it shall be.
fn write_name(key: u64, name: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = *b"key-AAAAAAAAAAAA";
    for (i, byte) in bytes[4..10].iter_mut().enumerate() {
        *byte = DIGITS[(key >> (6 * i) & 63) as usize];
    }
    name.clear();
    name.push_str(std::str::from_utf8(&bytes).expect("ASCII"));
}
