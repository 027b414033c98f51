//! Reserving an estimate and settling with the true cost, through the library.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::scope;
use std::time::Duration;

use tidegate::{Clock, Limiter, LimiterBuilder, ManualClock, Memory, MemoryError, Reservation, Settled, Store};

const SECOND: Duration = Duration::from_secs(1);

fn limited(limit: &str) -> (Limiter<Memory<ManualClock>>, ManualClock) {
    let clock = ManualClock::new();
    (builder(limit).clock(clock.clone()).build(), clock)
}

fn builder(limit: &str) -> LimiterBuilder {
    Limiter::builder().limit("limit", limit.parse().unwrap())
}

fn reserve<C: Clock>(limiter: &Limiter<Memory<C>>, key: &str, estimate: u64) -> Reservation {
    limiter.reserve_now(key, estimate).unwrap()
}

#[test]
fn br_045_a_debt_is_kept_and_a_repeated_settle_changes_nothing() {
    let (limiter, clock) = limited("50/50s");
    let reservation = reserve(&limiter, "k", 50);
    assert!(reservation.is_allowed());
    for expected in [Settled::Settled, Settled::Unknown, Settled::Unknown] {
        assert_eq!(limiter.settle_now(&reservation, 60), Ok(expected));
        let look = limiter.peek("k");
        assert_eq!((look.remaining(), look.reset_after()), (Some(0), Some(60 * SECOND)));
    }
    assert_eq!(limiter.check("k").retry_after(), Some(11 * SECOND));
    clock.advance(11 * SECOND);
    assert!(limiter.check("k").is_allowed());
}

#[test]
fn a_debt_is_at_most_one_further_burst() {
    let (limiter, clock) = limited("50/50s");
    let reservation = reserve(&limiter, "k", 1);
    assert_eq!(limiter.settle_now(&reservation, u64::MAX), Ok(Settled::Settled));
    assert_eq!(limiter.peek("k").reset_after(), Some(100 * SECOND));
    clock.advance(51 * SECOND);
    assert!(limiter.check("k").is_allowed() && !limiter.check("k").is_allowed());
}

#[test]
fn br_099_what_is_given_back_late_never_fills_beyond_full() {
    let (limiter, clock) = limited("5/s");
    let reservations: Vec<_> = (0..5).map(|_| reserve(&limiter, "k", 1)).collect();
    clock.advance(Duration::from_millis(1_500));
    for expected in [Settled::Settled, Settled::Unknown] {
        assert!(reservations.iter().all(|one| limiter.settle_now(one, 0) == Ok(expected)));
    }
    assert_eq!((0..10).filter(|_| limiter.check("k").is_allowed()).count(), 5);
}

#[test]
fn what_is_denied_or_never_settled_gives_nothing_back() {
    let (limiter, clock) = limited("10/day");
    let open = reserve(&limiter, "k", 6);
    let denied = reserve(&limiter, "k", 6);
    assert!(!denied.is_allowed() && denied.answer.retry_after().is_some());
    assert!(reserve(&limiter, "k", 11).answer.is_never());
    assert_eq!(limiter.settle_now(&denied, 0), Ok(Settled::Unknown));
    assert_eq!(limiter.peek("k").remaining(), Some(4));
    assert_eq!(limiter.store().reservations().open_count_at(limiter.store().now()), 1);
    clock.advance(Duration::from_secs(3_700));
    assert_eq!(limiter.settle_now(&open, 0), Ok(Settled::Unknown), "an hour is over: it stays spent");
    assert_eq!(limiter.peek("k").remaining(), Some(4));
}

#[test]
fn a_reservation_stays_open_as_long_as_it_was_told() {
    let clock = ManualClock::new();
    let limiter = builder("10/day").open_for(60 * SECOND).clock(clock.clone()).build();
    let (first, second) = (reserve(&limiter, "k", 2), reserve(&limiter, "k", 2));
    clock.advance(60 * SECOND);
    assert_eq!(limiter.settle_now(&first, 0), Ok(Settled::Settled));
    clock.advance(SECOND);
    assert_eq!(limiter.settle_now(&second, 0), Ok(Settled::Unknown));
}

#[test]
fn reserving_beyond_the_bound_is_refused_by_name_and_takes_nothing() {
    let clock = ManualClock::new();
    let limiter = builder("1000000/day").reservations(50).clock(clock.clone()).build();
    let mut open = Vec::new();
    let refused = loop {
        match limiter.reserve_now("k", 1) {
            Ok(reservation) => open.push(reservation),
            Err(error) => break error,
        }
        assert!(open.len() <= 100, "the bound is not kept");
    };
    assert!(open.len() >= 50, "only {}", open.len());
    assert_eq!(refused, MemoryError::TooManyReservations);
    assert!(refused.to_string().contains("too many reservations are open"));
    assert_eq!(limiter.peek("k").remaining(), Some(1_000_000 - open.len() as u64));
    assert!(open.iter().all(|one| limiter.settle_now(one, 0) == Ok(Settled::Settled)));
    assert_eq!(limiter.peek("k").remaining(), Some(1_000_000));
    assert!(reserve(&limiter, "k", 1).is_allowed());
}

#[test]
fn several_limits_are_settled_together_and_a_shadow_that_took_nothing_owes_nothing() {
    let limiter = Limiter::builder()
        .limit("minute", "100/min".parse().unwrap())
        .limit("day", "1000/day".parse().unwrap())
        .shadow("tight", "5/day".parse().unwrap())
        .limit("free", "unlimited".parse().unwrap())
        .clock(ManualClock::new())
        .build();
    let small = reserve(&limiter, "k", 2);
    let large = reserve(&limiter, "k", 20);
    assert_eq!(limiter.settle_now(&large, 50), Ok(Settled::Settled));
    assert_eq!(limiter.settle_now(&small, 3), Ok(Settled::Settled));
    let left = |policy: &str| {
        let store = limiter.store();
        let id = tidegate::LimitId::of("default", policy);
        store.table().inspect_at(id, &b"k"[..], store.now()).map(|kept| kept.state.deficit())
    };
    assert_eq!([left("minute"), left("day"), left("tight"), left("free")], [Some(53), Some(53), Some(3), None]);
}

#[test]
fn nothing_is_kept_of_what_nothing_limits() {
    let limiter = builder("unlimited").build();
    let reservation = reserve(&limiter, "k", 5);
    assert!(reservation.is_allowed());
    assert_eq!(limiter.settle_now(&reservation, 9), Ok(Settled::Unknown));
    assert_eq!(limiter.store().reservations().open_count_at(limiter.store().now()), 0);
}

#[test]
fn of_many_who_settle_at_once_one_has_effect() {
    let (limiter, _) = limited("1000000/day");
    for _ in 0..200 {
        let reservation = reserve(&limiter, "k", 100);
        let settled = AtomicU32::new(0);
        scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let one = limiter.settle_now(&reservation, 60).unwrap() == Settled::Settled;
                    settled.fetch_add(u32::from(one), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(settled.into_inner(), 1);
    }
    assert_eq!(limiter.peek("k").remaining(), Some(1_000_000 - 200 * 60));
}

#[tokio::test]
async fn over_any_store_it_is_the_same_as_a_future() {
    async fn through<S: Store>(limiter: &Limiter<S>) -> (bool, Settled, Settled) {
        let reservation = limiter.reserve("k", 20).await.unwrap();
        let settled = limiter.settle(&reservation, 4).await.unwrap();
        (reservation.is_allowed(), settled, limiter.settle(&reservation, 4).await.unwrap())
    }
    let (limiter, _) = limited("100/day");
    assert_eq!(through(&limiter).await, (true, Settled::Settled, Settled::Unknown));
    assert_eq!(limiter.peek("k").remaining(), Some(96));
    let ids: std::collections::HashSet<_> = (0..1_000).map(|_| reserve(&limiter, "other", 0).id()).collect();
    assert_eq!(ids.len(), 1_000);
}
