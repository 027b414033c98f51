//! Reservations that are open: as many as there is room for, each settled once.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;
use std::time::Duration;

use common::{limit, limit_id, ms, quota, table};
use tidegate_core::{AtBound, Charge, Cost, ReservationId, Time};
use tidegate_memory::{Reservations, ReserveError};

const SECOND: Duration = Duration::from_secs(1);

fn id(number: u64) -> ReservationId {
    ReservationId::new(u128::from(number))
}

#[test]
fn a_reservation_is_open_once_and_closed_once_and_over_in_time() {
    let open = Reservations::with_room_for(10);
    assert_eq!(open.open_at(id(1), SECOND, ms(5)), Ok(()));
    assert_eq!(open.open_at(id(1), SECOND, ms(6)), Err(ReserveError::AlreadyOpen));
    assert_eq!(open.open_count_at(ms(6)), 1);
    assert_eq!(open.close_at(id(1), ms(7)), Some(ms(5)));
    assert_eq!(open.close_at(id(1), ms(7)), None);
    assert_eq!(open.close_at(id(2), ms(7)), None);
    assert_eq!(open.open_at(id(1), SECOND, ms(10)), Ok(()));
    // A second, rounded up by less than a 64th.
    assert_eq!(open.open_count_at(ms(1_009)), 1);
    assert_eq!(open.close_at(id(1), ms(1_030)), None, "over");
}

#[test]
fn there_is_room_for_so_many_and_what_is_over_makes_room() {
    let open = Reservations::with_room_for(1_000);
    let mut number = 0;
    while open.open_at(id(number), SECOND, ms(number / 10)).is_ok() {
        number += 1;
        assert!(number <= 2_000, "the bound is not kept");
    }
    assert!(number >= 1_000, "only {number}");
    assert_eq!(open.open_at(id(number), SECOND, ms(number / 10)), Err(ReserveError::TooMany));
    // All of them stand: nothing that is open is displaced.
    assert!((0..number).all(|one| open.close_at(id(one), ms(500)) == Some(ms(one / 10))));
    let again = (0..900).filter(|one| open.open_at(id(10_000 + one), SECOND, ms(600)).is_ok()).count();
    assert_eq!(again, 900, "what was closed makes room");
    let later = (0..900).filter(|one| open.open_at(id(20_000 + one), SECOND, ms(2_000)).is_ok()).count();
    assert_eq!(later, 900, "what is over makes room");
}

#[test]
fn the_room_holds_under_threads_and_of_those_who_close_one_is_told() {
    let open = Reservations::with_room_for(5_000);
    let closed = AtomicU64::new(0);
    scope(|threads| {
        for thread in 0..4_u64 {
            let (open, closed) = (&open, &closed);
            threads.spawn(move || {
                for i in 0..4_000_u64 {
                    // Two threads open each, and all close it.
                    if thread % 2 == 0 {
                        let _ = open.open_at(id(i), SECOND, Time::ZERO);
                    }
                    closed.fetch_add(u64::from(open.close_at(id(i), ms(1)).is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    let still_open = open.open_count_at(ms(1)) as u64;
    let opened = closed.load(Ordering::Relaxed) + still_open;
    assert!((4_000..=8_000).contains(&opened), "{opened}");

    // What is opened before they race is closed by one of them.
    let open = Reservations::with_room_for(5_000);
    let closed = AtomicU64::new(0);
    let opened = (0..4_000).filter(|i| open.open_at(id(*i), SECOND, Time::ZERO).is_ok()).count() as u64;
    scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for i in 0..4_000_u64 {
                    closed.fetch_add(u64::from(open.close_at(id(i), ms(1)).is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(closed.load(Ordering::Relaxed), opened);
}

#[test]
fn a_debt_of_a_key_whose_bucket_is_gone_takes_a_seat() {
    for at_bound in [AtBound::Displace, AtBound::Deny, AtBound::Pool] {
        let table = table(1_000);
        let limit = limit(&table, "10/s", at_bound);
        let charge = Charge::new(limit_id(), quota("10/s"), b"k").with_cost(Cost::new(4));
        assert!(table.check_at(&limit, charge.key, charge.cost, ms(0)).is_allowed());
        // Long full again, and forgotten.
        table.settle_at(&charge, ms(0), Cost::new(9), ms(60_000)).unwrap();
        assert_eq!(table.peek_at(&limit, charge.key, ms(60_000)).remaining(), 5);
        table.settle_at(&charge, ms(0), Cost::new(400), ms(60_000)).unwrap();
        assert_eq!(table.peek_at(&limit, charge.key, ms(60_000)).reset_after(), 2 * SECOND);
        // Nothing is kept for a stranger to whom something is given back.
        let stranger = Charge { key: b"stranger", ..charge };
        table.settle_at(&stranger, ms(0), Cost::ZERO, ms(60_000)).unwrap();
        assert_eq!(table.inspect_at(limit_id(), stranger.key, ms(60_000)), None);
        assert_eq!(table.live_keys_at(ms(60_000)), 1);
    }
}

#[test]
fn a_debt_without_room_displaces_is_pooled_or_is_forgotten_as_its_limit_says() {
    for (at_bound, left) in [(AtBound::Displace, 3), (AtBound::Pool, 3)] {
        let table = table(5);
        let limit = limit(&table, "10/h", at_bound);
        for key in 0..8_u8 {
            let _ = table.check_at(&limit, &[key][..], Cost::new(1), ms(0));
        }
        let charge = Charge::new(limit_id(), quota("10/h"), b"late")
            .with_handling(tidegate_core::Handling::default().with_at_bound(at_bound));
        let before = table.peek_at(&limit, charge.key, ms(1)).remaining();
        table.settle_at(&charge, ms(0), Cost::new(1 + before - left), ms(1)).unwrap();
        assert_eq!(table.peek_at(&limit, charge.key, ms(1)).remaining(), left, "{at_bound:?}");
    }
}

#[test]
fn a_bucket_is_shown_as_it_is_kept() {
    let table = table(100);
    let limit = limit(&table, "60/min", AtBound::Deny);
    assert_eq!(table.inspect_at(limit_id(), "k", ms(0)), None);
    let _ = table.check_at(&limit, "k", Cost::new(7), ms(10));
    let kept = table.inspect_at(limit_id(), "k", ms(2_010)).unwrap();
    assert_eq!((kept.state.deficit(), kept.state.stamp(), kept.quota), (7, ms(10), quota("60/min")));
    assert_eq!(kept.expires_in, Some(5 * SECOND));
    assert_eq!(table.inspect_at(limit_id(), "k", ms(7_010)), None);
}
