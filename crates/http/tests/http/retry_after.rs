//! Retry-After: whole seconds, rounded up, at least 1, never early.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate::{ManualClock, Memory};
use tidegate_http::{ByKey, Dialect, LimitLayer, Reset};

use crate::given::{Body, Limited, Seen, at_ms, get, limiter, limiter_of, service};

fn retry(seen: &Seen) -> Option<u64> {
    assert_eq!(seen.status, 429);
    seen.number("retry-after")
}

/// A limit under which the path is the cost: `/3` takes three.
fn by_path(limit: &str) -> (Limited<ByKey<Memory<ManualClock>, Body>>, ManualClock) {
    let (limiter, clock) = limiter(limit);
    let cost = |request: &http::Request<Body>| request.uri().path()[1..].parse::<u64>().unwrap_or(1);
    (Limited::new(LimitLayer::new(limiter).cost(cost)), clock)
}

#[test]
fn br_051_whoever_waits_as_the_field_says_passes() {
    let (limited, clock) = service("3/min burst 1");
    assert_eq!(limited.get().status, 200);
    at_ms(&clock, 500);
    assert_eq!(retry(&limited.get()), Some(20));
    at_ms(&clock, 19_600);
    assert_eq!(retry(&limited.get()), Some(1), "0.4 s are left");
    at_ms(&clock, 20_500);
    assert_eq!(limited.get().status, 200);
}

/// Numbers that look random, the same in each run (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn br_051_property_the_rendered_wait_is_true_in_ten_thousand_states() {
    let mut numbers = Numbers(0x51);
    let mut denied = 0;
    for _ in 0..1_000 {
        let (count, period_ms) = (1 + numbers.below(50), 1 + numbers.below(100_000));
        let burst = 1 + numbers.below(20);
        let (limited, clock) = by_path(&format!("{count}/{period_ms}ms burst {burst}"));
        for _ in 0..10 {
            clock.advance(Duration::from_nanos(numbers.below(period_ms * 1_000_000 / count + 2)));
            let path = format!("/{}", 1 + numbers.below(burst));
            let mut seen = limited.send(get(&path));
            while seen.status == 200 {
                seen = limited.send(get(&path));
            }
            let (wait, t) = (retry(&seen).unwrap(), seen.parameter("ratelimit", "t").unwrap());
            assert!(wait >= 1 && i64::try_from(wait).unwrap() >= t, "Retry-After {wait} is not before t {t}");
            clock.advance(Duration::from_secs(wait));
            assert_eq!(limited.send(get(&path)).status, 200, "{count}/{period_ms}ms burst {burst}, {path}, {wait} s");
            denied += 1;
        }
    }
    assert_eq!(denied, 10_000);
}

#[test]
fn br_053_the_wait_is_not_the_time_until_all_is_full() {
    let (limiter, _) = limiter("1/s burst 5");
    let dialects =
        [Dialect::Draft10, Dialect::XRateLimit(Reset::Delta)].into_iter().collect::<tidegate_http::Dialects>();
    let limited = Limited::new(LimitLayer::new(limiter).dialects(dialects));
    assert_eq!(limited.passing(5), 5);
    let seen = limited.get();
    assert_eq!((retry(&seen), seen.number("x-ratelimit-reset")), (Some(1), Some(5)));
}

#[test]
fn br_055_retry_after_is_a_span_whatever_the_style_of_the_reset() {
    for reset in [Reset::Delta, Reset::Epoch, Reset::EpochMillis, Reset::Rfc3339] {
        let (limiter, clock) = limiter("20/min");
        at_ms(&clock, 1_771_404_500_000);
        let limited = Limited::new(LimitLayer::new(limiter).dialects(Dialect::XRateLimit(reset)));
        assert_eq!(limited.passing(20), 20);
        assert_eq!(limited.get().field("retry-after"), Some("3"), "{reset:?}");
    }
}

#[test]
fn br_056_retry_after_is_in_seconds() {
    let (limited, clock) = service("5/min");
    let seen: Vec<_> = [0, 400, 800, 1_200, 1_600, 2_000]
        .into_iter()
        .map(|ms| {
            at_ms(&clock, ms);
            limited.get()
        })
        .collect();
    assert!(seen[..5].iter().all(|seen| seen.status == 200));
    assert_eq!(retry(&seen[5]), Some(10));
}

#[test]
fn br_058_a_clock_that_goes_on_while_fields_are_written_makes_no_zero_and_no_negative() {
    for left_us in [1, 400, 1_000, 4_900] {
        for late_ms in 0..=5 {
            let (limiter, clock) = limiter("1/s");
            let late = clock.clone();
            // Called between the decision and the writing of the fields.
            let layer = LimitLayer::new(limiter).on_denied(move |_, _| {
                late.advance(Duration::from_millis(late_ms));
                Response::new(Bytes::new())
            });
            let limited = Limited::new(layer);
            let _ = limited.get();
            clock.advance(Duration::from_secs(1) - Duration::from_micros(left_us));
            let seen = limited.get();
            assert_eq!(seen.field("retry-after"), Some("1"), "{left_us} us left, {late_ms} ms late");
            assert_eq!(seen.parameter("ratelimit", "t"), Some(1));
        }
    }
}

#[test]
fn br_060_allowed_denied_and_never_are_three_answers() {
    let (limited, _) = by_path("1/300ms");
    let allowed = limited.get();
    assert_eq!((allowed.status.as_u16(), allowed.field("retry-after")), (200, None));
    assert_eq!(retry(&limited.get()), Some(1));
    let never = limited.send(get("/2"));
    assert_eq!((retry(&never), never.parameter("ratelimit", "t")), (None, None));
}

#[test]
fn br_040_a_limit_of_zero_denies_from_the_first_request() {
    let (limited, clock) = service("0/h");
    for ms in [0, 3_600_000] {
        at_ms(&clock, ms);
        let seen = limited.get();
        assert_eq!((retry(&seen), seen.parameter("ratelimit", "t")), (None, None));
        assert_eq!(seen.field("ratelimit-policy"), Some(r#""default";q=0;w=3600"#));
        assert_eq!(seen.remaining(), 0);
        assert_eq!(seen.detail(), r#"limit "default" (0/h) lets nothing pass, so waiting does not help"#);
    }
    assert_eq!(limited.hello.count(), 0);
}

#[test]
fn br_041_unlimited_never_denies_and_says_nothing() {
    let (limited, _) = by_path("unlimited");
    let seen = limited.send(get("/1000000"));
    assert_eq!((seen.status.as_u16(), seen.headers.len()), (200, 0));
}

#[test]
fn br_043_a_cost_above_the_burst_is_told_that_waiting_does_not_help() {
    let (limited, _) = by_path("300/min");
    let never = limited.send(get("/301"));
    assert_eq!((retry(&never), never.parameter("ratelimit", "t"), never.remaining()), (None, None, 300));
    assert_eq!(
        never.detail(),
        r#"the request costs 301, and limit "default" (300/min) lets at most 300 pass at once, so waiting does not help"#
    );
    assert_eq!(limited.send(get("/1")).remaining(), 299);
}

#[test]
fn br_036_a_bucket_that_idled_for_long_is_full_and_no_more() {
    let (limited, clock) = by_path("1000000/s");
    assert_eq!(limited.send(get("/1000000")).status, 200);
    for idle_s in [43_200, 31_536_000, 3_153_600_000] {
        clock.advance(Duration::from_secs(idle_s));
        assert_eq!(limited.send(get("/1000000")).status, 200);
        assert_eq!(retry(&limited.send(get("/1"))), Some(1));
    }
}

#[test]
fn br_062_the_remaining_of_each_answer_is_exact_to_the_nanosecond() {
    for start_ns in [1, 7, 999_999_937] {
        let (limited, clock) = service("1/90ms burst 2");
        clock.advance(Duration::from_nanos(start_ns));
        let left = |after_us: u64| {
            clock.set(tidegate::Time::from_nanos(start_ns + after_us * 1_000));
            let seen = limited.get();
            (seen.status.as_u16(), seen.remaining())
        };
        assert_eq!([0, 1_700, 3_400, 90_000].map(left), [(200, 1), (200, 0), (429, 0), (200, 0)], "{start_ns}");
    }
}

#[test]
fn br_067_of_two_limits_the_short_one_denies_first_and_the_long_one_counts_what_passed() {
    let (limiter, clock) = limiter_of(&[("minute", "5/min"), ("day", "50/day")]);
    let limited = Limited::new(LimitLayer::new(limiter));
    assert_eq!(limited.passing(5), 5);
    let sixth = limited.get();
    assert_eq!((retry(&sixth), &sixth.json()["violated-policies"]), (Some(12), &serde_json::json!(["minute"])));
    for k in 1..=9 {
        at_ms(&clock, 60_000 * k);
        assert_eq!(limited.passing(5), 5, "minute {k}");
    }
    at_ms(&clock, 600_000);
    for _ in 0..5 {
        let seen = limited.get();
        assert_eq!((retry(&seen), &seen.json()["violated-policies"]), (Some(1_128), &serde_json::json!(["day"])));
    }
}

#[test]
fn br_069_a_refused_call_that_is_too_large_takes_nothing() {
    let (limited, _) = by_path("10/min");
    let never = limited.send(get("/20"));
    assert_eq!((retry(&never), never.remaining()), (None, 10));
    assert_eq!(limited.passing(10), 10);
}

#[test]
fn br_074_after_a_raise_the_new_limit_is_in_force_and_in_the_words() {
    let (limiter, clock) = limiter("5/h");
    let limited = Limited::new(LimitLayer::new(std::sync::Arc::clone(&limiter)));
    assert_eq!(limited.passing(6), 5);
    at_ms(&clock, 60_000);
    limiter.replace("default", "50/h".parse().unwrap()).unwrap();
    assert_eq!(limited.get().remaining(), 44);
    assert_eq!(limited.passing(44), 44);
    assert!(limited.get().detail().starts_with(r#"limit "default" (50/h) is used up; try again in "#));
}

#[test]
fn br_139_when_one_limit_denies_the_other_is_not_charged() {
    let limits = [("a", "10/min"), ("b", "30/30min")];
    for limits in [limits, [limits[1], limits[0]]] {
        let (limiter, _) = limiter_of(&limits);
        let limited = Limited::new(LimitLayer::new(std::sync::Arc::clone(&limiter)));
        assert_eq!(limited.passing(10), 10);
        for _ in 0..21 {
            let seen = limited.get();
            assert_eq!((retry(&seen), &seen.json()["violated-policies"]), (Some(6), &serde_json::json!(["a"])));
        }
        limiter.replace("a", "unlimited".parse().unwrap()).unwrap();
        assert_eq!(limited.get().remaining(), 19, "b had 20 left");
    }
}
