//! The server's clock steps: nothing is refilled twice, nobody waits for a time that has been before, and law 9 holds.

use tidegate_core::{Algorithm, Decision, Store as _};

use crate::given::clocked::Clocked;
use crate::given::{ask, charge, charge_under, kept, left, of_cost, passes, patient, quota};

/// An hour into the server's clock, so that it can be set back.
const START_MS: u64 = 3_600_000;

#[tokio::test]
async fn br_024_traffic_never_prolongs_what_is_waited_for() {
    let server = Clocked::start();
    let store = patient(&server.url());
    // A window lets ten pass in each minute; in a counter the last ten have to weigh one less first.
    for algorithm in Algorithm::ALL {
        let of = |key: &'static str| {
            charge_under("limit", quota("10/min").with_algorithm(algorithm).unwrap(), key.as_bytes())
        };
        for second in (0..3_600).step_by(10) {
            server.set_ms(START_MS + second * 1_000);
            assert!(ask(&store, of("polite")).await.unwrap().is_allowed(), "{algorithm}, at {second} s");
        }
        server.set_ms(START_MS);
        assert_eq!(passes(&store, of("greedy"), 11).await, 10);
        let wait_ms = ask(&store, of("greedy")).await.unwrap().retry_after().unwrap().as_millis();
        let expected_ms = match algorithm {
            Algorithm::TokenBucket => 6_000,
            Algorithm::FixedWindow | Algorithm::SlidingLog => 60_000,
            Algorithm::SlidingCounter => 66_000,
        };
        assert_eq!(wait_ms, u128::from(expected_ms));
        for second in (10..3_600).step_by(10) {
            server.set_ms(START_MS + second * 1_000);
            let passed = ask(&store, of("greedy")).await.unwrap().is_allowed();
            assert_eq!(passed, second * 1_000 >= expected_ms, "{algorithm}, at {second} s");
        }
        server.set_ms(0);
    }
}

#[tokio::test]
async fn br_028_a_step_back_neither_refills_nor_makes_a_debt() {
    let server = Clocked::start();
    let store = patient(&server.url());
    let take = async |key: &'static str, ms: u64| {
        server.set_ms(START_MS + ms);
        ask(&store, charge("1/s burst 10", key.as_bytes())).await.unwrap().remaining()
    };
    assert_eq!([take("a", 20_000).await, take("a", 20_000).await, take("a", 20_000).await], [9, 8, 7]);
    assert_eq!([take("a", 11_000).await, take("a", 20_001).await], [6, 5]);
    assert_eq!([take("b", 20_000).await, take("b", 20_000).await, take("b", 20_000).await], [9, 8, 7]);
    // Further back than the bucket takes to fill: the stamp becomes now, and at most one burst is gained.
    assert_eq!([take("b", 9_000).await, take("b", 20_001).await], [6, 9]);
}

#[tokio::test]
async fn br_030_after_a_clock_was_set_back_for_days_nobody_waits_for_days() {
    const DAYS_MS: u64 = 172_800_000;
    let server = Clocked::start();
    let store = patient(&server.url());
    let five = charge("5/s", b"k");
    server.set_ms(START_MS + DAYS_MS);
    assert_eq!(passes(&store, five, 5).await, 5);
    server.set_ms(START_MS);
    let denied = ask(&store, five).await.unwrap();
    assert_eq!(denied.retry_after().unwrap().as_millis(), 200);
    let keys = kept(&mut server.connection());
    assert!(keys.len() == 1 && (1..=1_002).contains(&keys[0].1), "the repair expires in time: {keys:?}");
    server.set_ms(START_MS + 1_000);
    assert_eq!(passes(&store, five, 6).await, 5);
}

#[tokio::test]
async fn br_033_any_order_of_instants_is_answered() {
    // Far enough ahead that it is the largest instant for whoever computes in 64 bits of microseconds and less; near
    // enough for the server's own calendar.
    const FAR_MS: u64 = 200 * 365 * 86_400_000;
    let server = Clocked::start();
    let store = patient(&server.url());
    let ten = charge("10/s", b"k");
    let mut remaining = Vec::new();
    for ms in [1_000, 999, 0, FAR_MS, 0] {
        server.set_ms(START_MS + ms);
        remaining.push(ask(&store, ten).await.unwrap().remaining());
    }
    assert_eq!(remaining, [9, 8, 7, 9, 8]);
    server.set_ms(START_MS + 1_000);
    assert_eq!(passes(&store, ten, 10).await, 10);
}

#[tokio::test]
async fn br_139_the_wait_is_the_longest_of_those_that_deny() {
    let server = Clocked::start();
    let store = patient(&server.url());
    let (a, b) = (charge_under("a", quota("10/min"), b"user"), charge_under("b", quota("30/30min"), b"user"));
    for (i, charges) in [[a, b], [b, a]].into_iter().enumerate() {
        server.set_ms(START_MS + 7_200_000 * i as u64);
        let mut decisions = charges.map(|charge| Decision::unmade(&charge.quota));
        let mut passed = 0;
        for _ in 0..31 {
            let verdict = store.decide(&charges, &mut decisions).await.unwrap();
            passed += usize::from(verdict.allowed);
            if !verdict.allowed {
                let binding = verdict.binding.unwrap();
                assert_eq!(charges[binding].limit, a.limit);
                assert_eq!(decisions[binding].retry_after().unwrap().as_millis(), 6_000);
            }
        }
        assert_eq!((passed, left(&store, b).await), (10, 20));
    }
}

#[tokio::test]
async fn a_wait_that_was_told_is_true_to_the_microsecond() {
    let server = Clocked::start();
    let store = patient(&server.url());
    for (limit, cost) in [("7/s burst 3", 2), ("60/min burst 10", 10), ("1000000/s burst 5", 5), ("3/year", 2)] {
        let key = limit.as_bytes();
        server.set_us(0);
        assert!(ask(&store, of_cost(charge(limit, key), quota(limit).burst())).await.unwrap().is_allowed());
        let wait = ask(&store, of_cost(charge(limit, key), cost)).await.unwrap().retry_after().unwrap();
        // The clock shows whole microseconds.
        let wait_us = u64::try_from(wait.as_nanos().div_ceil(1_000)).unwrap();
        server.set_us(wait_us - 1);
        assert!(!ask(&store, of_cost(charge(limit, key), cost)).await.unwrap().is_allowed(), "{limit}");
        server.set_us(wait_us);
        assert!(ask(&store, of_cost(charge(limit, key), cost)).await.unwrap().is_allowed(), "{limit}");
    }
}
