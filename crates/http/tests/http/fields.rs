//! Header fields in every dialect, read back by a parser that is not ours.

use std::sync::Arc;

use http::HeaderMap;
use tidegate::{Limiter, ManualClock};
use tidegate_http::{Dialect, Dialects, LimitLayer, Reset};

use crate::given::{Hello, Limited, Seen, at_ms, limiter, limiter_of, list, name, parameter, service};

/// The answer to the first request under `limit`, in `dialects`.
fn answer(limit: &str, dialects: impl Into<Dialects>) -> Seen {
    Limited::new(LimitLayer::new(limiter(limit).0).dialects(dialects)).get()
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    headers.get_all(name).iter().map(|line| line.to_str().unwrap()).collect()
}

#[test]
fn draft_10_lists_names_with_their_numbers() {
    let (limited, clock) = service("60/min burst 10");
    let seen = limited.get();
    assert_eq!(seen.field("ratelimit-policy"), Some(r#""default";q=60;w=60;tidegate-burst=10"#));
    assert_eq!(seen.field("ratelimit"), Some(r#""default";r=9;t=1"#));
    assert_eq!(seen.field("retry-after"), None);
    assert_eq!(seen.field("cache-control"), None);
    assert_eq!(limited.passing(20), 9);
    at_ms(&clock, 500);
    let seen = limited.get();
    assert_eq!(seen.status, 429);
    assert_eq!(seen.field("ratelimit"), Some(r#""default";r=0;t=1"#));
    assert_eq!(seen.field("ratelimit-policy"), Some(r#""default";q=60;w=60;tidegate-burst=10"#));
    assert_eq!(seen.field("retry-after"), Some("1"));
    assert_eq!(seen.field("cache-control"), Some("no-store"));
}

#[test]
fn a_burst_that_is_the_count_is_not_said() {
    assert_eq!(answer("60/min", Dialect::Draft10).field("ratelimit-policy"), Some(r#""default";q=60;w=60"#));
}

#[test]
fn periods_that_are_no_whole_seconds_are_scaled_up() {
    for (limit, q, w) in [("10/100ms", 100, 1), ("1/2300ms", 10, 23), ("10/15min", 10, 900), ("3/7us", 3_000_000, 7)] {
        let seen = answer(limit, Dialect::Draft10);
        let read = (seen.parameter("ratelimit-policy", "q"), seen.parameter("ratelimit-policy", "w"));
        assert_eq!(read, (Some(q), Some(w)), "{limit}");
    }
}

#[test]
fn t_is_the_time_to_the_next_token_rounded_up() {
    let (limited, clock) = service("3/min");
    let t = |seen: &Seen| seen.parameter("ratelimit", "t");
    assert_eq!(t(&limited.get()), Some(20));
    at_ms(&clock, 1);
    assert_eq!(t(&limited.get()), Some(20), "19.999 s");
    at_ms(&clock, 1_000);
    assert_eq!(t(&limited.get()), Some(19));
}

#[test]
fn draft_7_is_a_dictionary() {
    let seen = answer("60/min burst 10", Dialect::Draft7);
    assert_eq!(seen.field("ratelimit-policy"), Some("60;w=60;tidegate-burst=10"));
    assert_eq!(seen.field("ratelimit"), Some("limit=10, remaining=9, reset=1"));
    let dictionary: sfv::Dictionary = sfv::Parser::new(seen.field("ratelimit").unwrap()).parse().unwrap();
    assert_eq!(dictionary.len(), 3);
}

#[test]
fn draft_6_has_a_field_per_number() {
    let seen = answer("60/min burst 10", Dialect::Draft6);
    assert_eq!(seen.field("ratelimit-policy"), Some("60;w=60;tidegate-burst=10"));
    let numbers = ["limit", "remaining", "reset"].map(|name| seen.number(&format!("ratelimit-{name}")));
    assert_eq!(numbers, [Some(10), Some(9), Some(1)]);
    assert_eq!(seen.field("ratelimit"), None);
}

#[test]
fn x_ratelimit_writes_its_reset_in_the_style_that_is_chosen() {
    for (reset, expect) in [
        (Reset::Delta, "3"),
        (Reset::Epoch, "1771404503"),
        (Reset::EpochMillis, "1771404503000"),
        (Reset::Rfc3339, "2026-02-18T08:48:23Z"),
    ] {
        let (limiter, clock) = limiter("20/min");
        at_ms(&clock, 1_771_404_500_000);
        let seen = Limited::new(LimitLayer::new(limiter).dialects(Dialect::XRateLimit(reset))).get();
        assert_eq!(seen.field("x-ratelimit-reset"), Some(expect), "{reset:?}");
        assert_eq!((seen.number("x-ratelimit-limit"), seen.number("x-ratelimit-remaining")), (Some(20), Some(19)));
        assert_eq!((seen.field("ratelimit"), seen.field("ratelimit-policy")), (None, None));
    }
}

#[test]
fn several_dialects_at_once_and_none() {
    let both = Dialects::default().with(Dialect::XRateLimit(Reset::Delta));
    let seen = answer("60/min", both);
    assert_eq!(seen.remaining(), 59);
    assert_eq!(seen.number("x-ratelimit-remaining"), Some(59));

    let limited = Limited::new(LimitLayer::new(limiter("1/min").0).dialects(Dialects::NONE));
    assert!(limited.get().headers.is_empty());
    let denied = limited.get();
    let names: Vec<_> = denied.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["content-type", "retry-after", "cache-control"]);
}

#[test]
fn all_enforced_limits_are_policies_and_the_one_that_binds_is_reported() {
    let (limiter, _) = limiter_of(&[("day", "50/day"), ("minute", "5/min"), ("free", "unlimited")]);
    let limited = Limited::new(LimitLayer::new(limiter));
    let seen = limited.get();
    assert_eq!(seen.field("ratelimit-policy"), Some(r#""day";q=50;w=86400, "minute";q=5;w=60"#));
    assert_eq!(seen.field("ratelimit"), Some(r#""minute";r=4;t=12"#));
}

#[test]
fn a_limit_in_shadow_denies_nothing_and_shows_nowhere() {
    let clock = ManualClock::new();
    let limiter = Limiter::builder()
        .shadow("trial", "1/min".parse().unwrap())
        .limit("real", "5/min".parse().unwrap())
        .clock(clock)
        .build();
    let limited = Limited::new(LimitLayer::new(Arc::new(limiter)));
    for left in (0..5).rev() {
        let seen = limited.get();
        assert_eq!(seen.field("ratelimit-policy"), Some(r#""real";q=5;w=60"#));
        assert_eq!((seen.status.as_u16(), seen.remaining()), (200, left));
    }
    assert_eq!(limited.get().json()["violated-policies"], serde_json::json!(["real"]));

    let only = Limiter::builder().shadow("trial", "1/min".parse().unwrap()).clock(ManualClock::new()).build();
    let limited = Limited::new(LimitLayer::new(Arc::new(only)));
    assert_eq!(limited.statuses(3), [200; 3]);
    assert!(limited.get().headers.is_empty());
}

#[test]
fn a_replaced_quota_is_shown_from_then_on() {
    let (limiter, _) = limiter("10/min");
    let limited = Limited::new(LimitLayer::new(Arc::clone(&limiter)));
    assert_eq!(limited.get().field("ratelimit-policy"), Some(r#""default";q=10;w=60"#));
    limiter.replace("default", "100/min".parse().unwrap()).unwrap();
    let seen = limited.get();
    assert_eq!(seen.field("ratelimit-policy"), Some(r#""default";q=100;w=60"#));
    assert_eq!(seen.remaining(), 98);
    limiter.replace("default", "unlimited".parse().unwrap()).unwrap();
    assert!(limited.get().headers.is_empty());
}

#[test]
fn names_are_escaped_and_never_raw() {
    let odd = "a \"b\"\\\r\nx\0\u{1b}[31m\u{e9}";
    let limited = Limited::new(LimitLayer::new(limiter_of(&[(odd, "1/min")]).0));
    for seen in [limited.get(), limited.get()] {
        for field in ["ratelimit", "ratelimit-policy"] {
            assert_eq!(name(&list(&seen.headers, field)[0]), "a \"b\"\\%0D%0Ax%00%1B[31m%C3%A9");
        }
    }
    let long = "x".repeat(1_000);
    let seen = Limited::new(LimitLayer::new(limiter_of(&[(&long, "1/min")]).0)).get();
    assert_eq!(name(&list(&seen.headers, "ratelimit")[0]), "x".repeat(tidegate_http::NAME_BYTES_MAX));
    assert_eq!(seen.remaining(), 0);
}

#[test]
fn lists_of_an_inner_service_are_added_to() {
    let hello = Hello::with("ratelimit", r#""upstream";r=3;t=1"#);
    let seen = Limited::around(LimitLayer::new(limiter("60/min").0), hello).get();
    assert_eq!(text(&seen.headers, "ratelimit"), [r#""upstream";r=3;t=1"#, r#""default";r=59;t=1"#]);
    let all = list(&seen.headers, "ratelimit");
    assert_eq!(all.iter().map(|item| parameter(item, "r").unwrap()).collect::<Vec<_>>(), [3, 59]);
}

#[test]
fn of_single_values_the_tighter_one_stands() {
    let single = |dialect, name: &'static str, value: &str, limit: &str| {
        Limited::around(LimitLayer::new(limiter(limit).0).dialects(dialect), Hello::with(name, value)).get()
    };
    let x = Dialect::XRateLimit(Reset::Delta);
    for (dialect, name) in [(x, "x-ratelimit-remaining"), (Dialect::Draft6, "ratelimit-remaining")] {
        let loose = single(dialect, name, "3", "60/min");
        assert_eq!(loose.number(name), Some(3));
        assert_eq!(loose.field(&name.replace("remaining", "limit")), None, "the three belong together");
        assert_eq!(single(dialect, name, "30", "5/min").number(name), Some(4));
        assert_eq!(single(dialect, name, "soon", "5/min").number(name), Some(4));
    }
    let tight = single(Dialect::Draft7, "ratelimit", "limit=5, remaining=3, reset=1", "60/min");
    assert_eq!(tight.field("ratelimit"), Some("limit=5, remaining=3, reset=1"));
    let ours = single(Dialect::Draft7, "ratelimit", "limit=500, remaining=300, reset=1", "60/min");
    assert_eq!(ours.field("ratelimit"), Some("limit=60, remaining=59, reset=1"));
}

#[test]
fn what_can_never_pass_has_no_reset_in_any_dialect() {
    for dialect in [Dialect::Draft10, Dialect::Draft7, Dialect::Draft6, Dialect::XRateLimit(Reset::Epoch)] {
        let limited = Limited::new(LimitLayer::new(limiter("0/min").0).dialects(dialect));
        let seen = limited.get();
        assert_eq!(seen.status, 429);
        for field in ["retry-after", "ratelimit-reset", "x-ratelimit-reset"] {
            assert_eq!(seen.field(field), None, "{dialect}");
        }
        let ratelimit = seen.field("ratelimit").unwrap_or_default();
        assert!(!ratelimit.contains(";t=") && !ratelimit.contains("reset"), "{dialect}: {ratelimit}");
    }
}

#[test]
fn a_look_at_a_full_bucket_has_nothing_to_wait_for() {
    let layer = LimitLayer::new(limiter("60/min").0).cost(|_| 0_u64);
    let seen = Limited::new(layer).get();
    assert_eq!(seen.field("ratelimit"), Some(r#""default";r=60"#));
}
