//! Buckets that requests ask about and take nothing from.

use std::time::Duration;

use tidegate_core::{Charge, Cost, LimitId, Mode, OPEN_FOR, ReservationId, Settled, Store as _};

use super::server::{Kind, Server};
use super::sharing::{charge, patient};
use super::vectors::Driven;

const S: u64 = 1_000_000;

fn hold<'a>(key: &'a [u8]) -> Charge<'a> {
    Charge { limit: LimitId::of("test", "hold"), ..charge("1/10min", key) }
}

#[test]
fn br_071_a_guard_denies_in_the_same_call_and_takes_nothing() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let mut driven = Driven::new(&server);
        let both = [charge("5/h", b"k"), hold(b"k").with_mode(Mode::Guard)];
        let mut ask = |at_us| {
            let (verdict, decisions) = driven.decide(&both, at_us);
            (verdict.allowed, decisions[0].remaining(), decisions[1].retry_after())
        };
        assert_eq!([ask(0), ask(0)], [(true, 4, None), (true, 3, None)]);
        assert!(driven.decide(&[hold(b"k")], 0).0.allowed, "the hold begins");
        for minute in 0..10 {
            let (verdict, decisions) = driven.decide(&both, minute * 60 * S);
            let rest = Some(Duration::from_secs(600 - minute * 60));
            let left = (verdict.allowed, verdict.binding, decisions[0].remaining(), decisions[1].retry_after());
            assert_eq!(left, (false, Some(1), 3, rest), "{kind:?}");
            let again = driven.decide(&[hold(b"k")], minute * 60 * S).1[0];
            assert_eq!(again.retry_after(), rest, "it does not become longer");
        }
        let (verdict, decisions) = driven.decide(&both, 600 * S);
        assert_eq!((verdict.allowed, decisions[0].remaining(), decisions[1].remaining()), (true, 2, 1), "{kind:?}");
    }
}

#[test]
fn a_guard_denies_also_where_the_other_bucket_is_empty_and_alone() {
    let server = Server::start(Kind::Redis7);
    let mut driven = Driven::new(&server);
    let alone = hold(b"k").with_mode(Mode::Guard);
    assert!(driven.decide(&[alone], 0).0.allowed && driven.decide(&[alone], 0).0.allowed);
    assert!(driven.decide(&[hold(b"k")], 0).0.allowed);
    assert!(!driven.decide(&[alone], 599 * S).0.allowed);
    // Several tokens are asked for, and none is taken.
    let many = charge("10/h", b"m").with_cost(Cost::new(10)).with_mode(Mode::Guard);
    assert!(driven.decide(&[many], 0).0.allowed && driven.decide(&[many], 0).0.allowed);
    assert!(driven.decide(&[charge("10/h", b"m")], 0).0.allowed);
    assert!(!driven.decide(&[many], 0).0.allowed);
}

#[tokio::test]
async fn a_reservation_is_guarded_too_and_settled_without_the_guard() {
    let server = Server::start(Kind::Redis7);
    let store = patient(&server);
    let all = [charge("5/day", b"k"), hold(b"k").with_mode(Mode::Guard)];
    let mut decisions = all.map(|charge| tidegate_core::Decision::unmade(&charge.quota));
    let id = ReservationId::new(7);
    assert!(store.reserve(&all, &mut decisions, id, OPEN_FOR).await.unwrap().allowed);
    let taken = [all[0], all[1].with_cost(Cost::ZERO)];
    assert_eq!(store.settle(id, &taken, &[Cost::ZERO; 2]).await, Ok(Settled::Settled));
    assert_eq!(store.settle(id, &taken, &[Cost::ZERO; 2]).await, Ok(Settled::Unknown));
    assert!(store.decide(&[hold(b"k")], &mut decisions[..1]).await.unwrap().allowed);
    assert!(!store.reserve(&all, &mut decisions, id, OPEN_FOR).await.unwrap().allowed);
    assert_eq!(decisions[0].remaining(), 5, "what was denied took nothing");
}
