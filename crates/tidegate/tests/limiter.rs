//! Limiters as their users meet them, on a clock that stands still unless it is moved.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tidegate::{AtBound, Cause, Clock, Cost, Limit, Limiter, ManualClock, Memory, Quota, ReplaceError, Time};

const SECOND: Duration = Duration::from_secs(1);

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

fn quota(text: &str) -> Quota {
    limit(text).quota().unwrap()
}

fn single(text: &str) -> (Limiter<Memory<ManualClock>>, ManualClock) {
    several(&[("limit", text)])
}

fn several(limits: &[(&str, &str)]) -> (Limiter<Memory<ManualClock>>, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().keys(1_000);
    let builder = limits.iter().fold(builder, |builder, (name, text)| builder.limit(name, limit(text)));
    (builder.clock(clock.clone()).build(), clock)
}

fn passed(limiter: &Limiter<Memory<ManualClock>>, key: &str, asked: usize) -> usize {
    (0..asked).filter(|_| limiter.check(key).is_allowed()).count()
}

#[test]
fn br_139_a_denied_request_costs_nothing_under_the_other_limits_in_either_order() {
    let (short, long) = (("a", "10/min"), ("b", "30/30min"));
    for limits in [[short, long], [long, short]] {
        let (limiter, _) = several(&limits);
        assert_eq!(passed(&limiter, "user", 31), 10);
        let denied = limiter.check("user");
        assert_eq!(denied.retry_after(), Some(6 * SECOND));
        assert_eq!(denied.binding.and_then(|place| limiter.limit_name(place)), Some("a"));
        let clock_left: Vec<_> = (0..2).map(|_| limiter.peek("user").remaining()).collect();
        assert_eq!(clock_left, [Some(0), Some(0)]);
    }
}

#[test]
fn br_067_two_limits_of_one_client_have_a_bucket_each() {
    let (limiter, clock) = several(&[("minute", "5/min"), ("day", "50/day")]);
    assert_eq!(passed(&limiter, "client-1", 5), 5);
    let sixth = limiter.check("client-1");
    assert_eq!((sixth.retry_after(), sixth.binding), (Some(12 * SECOND), Some(0)));
    for minute in 1..=9 {
        clock.set(Time::from_secs(60 * minute));
        assert_eq!(passed(&limiter, "client-1", 5), 5, "minute {minute}");
    }
    clock.set(Time::from_secs(600));
    for _ in 0..5 {
        let denied = limiter.check("client-1");
        assert_eq!((denied.retry_after(), denied.binding), (Some(1_128 * SECOND), Some(1)));
    }
}

#[test]
fn a_replaced_limit_keeps_what_is_owed_and_refills_nobody() {
    // br_078: lowered, and raised again.
    let (limiter, _) = single("10/s");
    assert_eq!(passed(&limiter, "k", 3), 3);
    limiter.replace("limit", limit("5/s")).unwrap();
    assert_eq!(passed(&limiter, "k", 10), 2);
    assert_eq!(limiter.check("k").retry_after(), Some(Duration::from_millis(200)));
    limiter.replace("limit", limit("10/s")).unwrap();
    assert_eq!(passed(&limiter, "k", 10), 5);

    // br_081: raised by two.
    let (limiter, _) = single("10/s");
    assert_eq!(passed(&limiter, "k", 10), 10);
    limiter.replace("limit", limit("12/s")).unwrap();
    assert_eq!(passed(&limiter, "k", 12), 2);
}

#[test]
fn br_074_br_084_a_raised_limit_lets_its_growth_pass_at_once() {
    let (limiter, clock) = single("5/h");
    assert_eq!(passed(&limiter, "k", 5), 5);
    clock.set(Time::from_secs(60));
    limiter.replace("limit", limit("50/h")).unwrap();
    let raised = limiter.check("k");
    assert_eq!((raised.is_allowed(), raised.remaining()), (true, Some(44)));

    let (limiter, clock) = single("10/h");
    assert_eq!(passed(&limiter, "k", 50), 10);
    clock.set(Time::from_secs(60));
    limiter.replace("limit", limit("20/h")).unwrap();
    assert_eq!(passed(&limiter, "k", 15), 10);
}

#[test]
fn br_079_putting_the_same_limit_in_force_again_changes_nothing() {
    let (limiter, clock) = single("1/min burst 3");
    assert_eq!(passed(&limiter, "k", 3), 3);
    for second in 1..=10 {
        limiter.replace("limit", limit("1/min burst 3")).unwrap();
        clock.set(Time::from_secs(second));
        assert_eq!(limiter.check("k").retry_after(), Some(Duration::from_secs(60 - second)));
    }
    clock.set(Time::from_secs(11));
    assert_eq!(limiter.check("k").retry_after(), Some(49 * SECOND));
}

#[test]
fn the_old_rate_counts_until_the_limit_was_replaced_and_no_longer() {
    let (limiter, clock) = single("1000/s");
    assert_eq!(passed(&limiter, "k", 1_000), 1_000);
    clock.advance(Duration::from_millis(3));
    limiter.replace("limit", limit("1/h burst 1000")).unwrap();
    clock.advance(SECOND);
    assert_eq!(passed(&limiter, "k", 1_000), 3);
}

#[test]
fn replacing_what_is_not_there_is_an_error() {
    let (limiter, _) = single("1/s");
    assert_eq!(limiter.replace("other", limit("2/s")), Err(ReplaceError::UnknownLimit));
}

#[test]
fn a_limit_can_become_unlimited_and_come_back() {
    let (limiter, _) = single("1/min");
    assert_eq!(passed(&limiter, "k", 2), 1);
    limiter.replace("limit", Limit::Unlimited).unwrap();
    let free = limiter.check_cost("k", 1_000_000);
    assert_eq!((free.is_allowed(), free.decision), (true, None));
    limiter.replace("limit", limit("2/min")).unwrap();
    assert_eq!(passed(&limiter, "k", 5), 1, "what was owed before is owed still");
}

#[test]
fn br_040_a_zero_limit_denies_the_first_request_and_for_ever() {
    let (limiter, _) = single("0/h");
    let answer = limiter.check("k");
    assert!(!answer.is_allowed() && answer.is_never());
    assert_eq!((answer.retry_after(), answer.remaining()), (None, Some(0)));
    let look = limiter.peek("k");
    assert_eq!((look.is_allowed(), look.remaining()), (true, Some(0)));
}

#[test]
fn br_043_br_069_a_cost_above_the_burst_is_never_and_takes_nothing() {
    let (limiter, _) = single("300/min");
    let never = limiter.check_cost("k", 301);
    assert_eq!((never.is_allowed(), never.is_never(), never.remaining()), (false, true, Some(300)));
    assert_eq!(limiter.check("k").remaining(), Some(299));
    let (limiter, _) = single("10/min");
    assert!(limiter.check_cost("project", 20).is_never());
    assert_eq!(passed(&limiter, "project", 11), 10);
}

#[test]
fn br_046_a_look_takes_nothing_and_makes_no_key() {
    let (limiter, clock) = single("10/min");
    assert_eq!(limiter.peek("unknown").remaining(), Some(10));
    assert_eq!(limiter.store().table().live_keys_at(clock.now()), 0);
    assert_eq!(passed(&limiter, "k", 11), 10);
    for _ in 0..3 {
        let look = limiter.check_cost("k", Cost::ZERO);
        assert_eq!((look.is_allowed(), look.remaining()), (true, Some(0)));
    }
}

#[test]
fn br_050_the_largest_burst_is_there_in_full_and_a_larger_one_is_refused() {
    let (limiter, _) = single("1/s burst 4294967296");
    assert!(limiter.check_cost("k", 1 << 32).is_allowed());
    assert!(!limiter.check("k").is_allowed());
    let refused = "1/s burst 4294967297".parse::<Limit>().unwrap_err().to_string();
    assert!(refused.contains("burst") && refused.contains("4294967296"), "{refused}");
}

#[test]
fn a_plan_for_each_key_is_one_limit_whose_numbers_change() {
    let (limiter, _) = single("10/min");
    let (free, pro) = (quota("10/min"), quota("600/min"));
    assert_eq!(limiter.check_quota("ann", &free, 10).unwrap().remaining(), Some(0));
    assert!(!limiter.check_quota("ann", &free, 1).unwrap().is_allowed());
    assert_eq!(limiter.check_quota("ann", &pro, 1).unwrap().remaining(), Some(589));
    assert_eq!(limiter.check_quota("bob", &free, 1).unwrap().remaining(), Some(9));
    assert_eq!(
        limiter.check_quota("ann", &free, 1).unwrap().remaining(),
        Some(0),
        "the deficit is cut to the new burst"
    );
}

#[test]
fn reset_and_grant_give_back_and_never_more_than_full() {
    let (limiter, _) = single("10/min");
    assert_eq!(passed(&limiter, "k", 10), 10);
    limiter.grant("k", 4);
    assert_eq!(limiter.peek("k").remaining(), Some(4));
    limiter.grant("k", 400);
    assert_eq!(limiter.peek("k").remaining(), Some(10));
    limiter.grant("stranger", 5);
    assert_eq!(limiter.peek("stranger").remaining(), Some(10));
    assert_eq!(passed(&limiter, "k", 10), 10);
    limiter.reset("k");
    assert_eq!(limiter.peek("k").remaining(), Some(10));
}

#[test]
fn a_limit_in_shadow_denies_nothing_and_binds_nothing() {
    let clock = ManualClock::new();
    let builder = Limiter::builder().limit("real", limit("5/min")).shadow("tight", limit("2/min"));
    let limiter = builder.keys(100).clock(clock).build();
    assert_eq!(passed(&limiter, "k", 6), 5);
    assert_eq!(limiter.check("k").binding, Some(0));

    let only_shadow = Limiter::builder().shadow("tight", limit("2/min")).keys(100).clock(ManualClock::new()).build();
    assert_eq!(passed(&only_shadow, "k", 10), 10);
}

#[test]
fn br_112_br_111_any_bytes_are_a_key_like_any_other() {
    let (limiter, _) = single("1/min");
    let keys: [&[u8]; 8] =
        [b"203.0.113.5, 198.51.100.7", b"\t", "\u{2028}".as_bytes(), b"", b"a", b"a\0b", b"\r\n\x1b[31m", b"\xff\xfe"];
    for key in keys {
        assert!(limiter.check(key).is_allowed() && !limiter.check(key).is_allowed(), "{key:?}");
    }
    assert_eq!(
        passed(&limiter, "USER@example.org", 1) + passed(&limiter, "user@example.org", 1),
        2,
        "bytes, not words"
    );
}

#[test]
fn br_114_keys_that_collide_under_md5_are_different_keys() {
    // The two halves of a published pair of blocks with one MD5 sum.
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    };
    let one = hex(
        "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70",
    );
    let other = hex(
        "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f8955ad340609f4b30283e4888325f1415a085125e8f7cdc99fd91dbd7280373c5bd8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70",
    );
    assert_ne!(one, other);
    let (limiter, _) = single("1/min");
    assert!(limiter.check(&one).is_allowed() && limiter.check(&other).is_allowed());
}

#[test]
fn at_the_bound_the_answer_says_that_memory_is_the_cause() {
    let builder = Limiter::builder().limit("limit", limit("1/min")).keys(5).at_bound(AtBound::Deny);
    let limiter = builder.clock(ManualClock::new()).build();
    let answers: Vec<_> = (0..20_u64).map(|key| limiter.check(&key)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_allowed()).count(), 5);
    for denied in &answers[5..] {
        assert_eq!(
            (denied.cause, denied.retry_after(), denied.remaining()),
            (Some(Cause::MemoryBound), Some(60 * SECOND), Some(0))
        );
    }
    assert_eq!(limiter.check(&0_u64).cause, Some(Cause::Limit));
}

#[test]
fn br_072_of_many_threads_released_at_once_exactly_the_burst_passes() {
    let limiter = Limiter::builder().limit("limit", limit("10/min")).keys(10_000).build();
    for round in 0..50_u64 {
        let barrier = Barrier::new(40);
        let passed: usize = thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                (0..5).filter(|_| limiter.check(&round).is_allowed()).count()
            };
            let threads: Vec<_> = (0..40).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 10, "round {round}");
    }
}

#[test]
fn br_193_two_processes_of_their_own_admit_the_limit_each() {
    let (one, _) = single("10/min");
    let (other, _) = single("10/min");
    assert_eq!(passed(&one, "k", 10) + passed(&other, "k", 10), 20);
}

#[tokio::test]
async fn the_future_and_the_call_draw_on_one_bucket() {
    let (limiter, _) = single("3/min");
    assert!(limiter.check("k").is_allowed());
    assert!(limiter.decide("k", Cost::ONE).await.unwrap().is_allowed());
    assert_eq!(limiter.decide("k", Cost::ONE).await.unwrap().remaining(), Some(0));
    assert!(!limiter.check("k").is_allowed());
}
