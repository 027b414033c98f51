//! Edges of windows, end to end.

use tidegate::{Algorithm, Limit, Limiter, ManualClock};
use tidegate_http::LimitLayer;

use crate::given::{Limited, at_ms};
use std::sync::Arc;

#[track_caller]
fn check(algorithm: Algorithm, expect: usize) {
    let clock = ManualClock::new();
    let quota = "59/min".parse::<Limit>().unwrap().quota().unwrap().with_algorithm(algorithm).unwrap();
    let limiter = Limiter::builder().limit("default", quota.into()).clock(clock.clone()).build();
    let limited = Limited::new(LimitLayer::new(Arc::new(limiter)));
    at_ms(&clock, 59_000);
    let before = limited.passing(59);
    at_ms(&clock, 61_000);
    let after = limited.passing(59);
    assert_eq!((before, before + after), (59, expect), "{algorithm}");
    assert_eq!(limited.hello.count(), expect, "a denied request never reaches the service");
}

#[test]
fn around_the_edge_a_fixed_window_passes_118_and_a_token_bucket_60() {
    check(Algorithm::FixedWindow, 118);
    check(Algorithm::TokenBucket, 60);
}
