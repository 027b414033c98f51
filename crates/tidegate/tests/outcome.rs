//! Counting by outcome, and keys that are held back, over policies and a clock that is driven.

#![cfg(feature = "policy")]

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::policy::{
    Attributes, ClientAddress, CostRule, Counting, Offence, Peer, Penalty, Policies, Policy, Statuses,
};
use tidegate::{
    Cause, Clock as _, Cost, Gate, ManualClock, Memory, Mode, Open, Quota, ResponseOutcome, TableOptions, Tally,
};

/// A request from a client of this number.
struct From(u8);

impl Attributes for From {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::from([192, 0, 2, self.0]))
    }

    fn method(&self) -> &str {
        "POST"
    }

    fn path(&self) -> &str {
        "/login"
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, _: &str, _: &mut dyn FnMut(&'a [u8])) {}
}

type Store = Memory<ManualClock>;

struct Fixture {
    gate: Arc<Gate<Store>>,
    clock: ManualClock,
}

/// What an answer said: why it was denied, the wait in milliseconds, and what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    cause: Option<Cause>,
    wait_ms: Option<u64>,
    left: Option<u64>,
}

const PASSED: Option<Cause> = None;
const LIMIT: Option<Cause> = Some(Cause::Limit);
const PENALTY: Option<Cause> = Some(Cause::Penalty);

impl Fixture {
    fn new(policies: Vec<Policy>) -> Self {
        Self::with_room_for(1_000, policies)
    }

    fn with_room_for(reservations: usize, policies: Vec<Policy>) -> Self {
        let clock = ManualClock::new();
        let policies = Policies::new(ClientAddress::default(), policies).unwrap();
        let store = Memory::new(TableOptions::with_keys(1_000), clock.clone()).with_room_for_reservations(reservations);
        Self { gate: Arc::new(Gate::new(policies, store)), clock }
    }

    fn at_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms) - self.clock.now().since(tidegate::Time::ZERO));
    }

    fn ask(&self, client: u8) -> (Said, Option<Open<Store>>) {
        at_once(self.gate.begin(&From(client), |answer| said(&answer.answer))).unwrap()
    }

    /// Asks, and if it passed, answers with this status.
    fn answered(&self, client: u8, status: u16) -> Said {
        let (said, open) = self.ask(client);
        open.into_iter().for_each(|open| assert_eq!(close(open, status).not_settled, 0));
        said
    }

    fn peek(&self, client: u8) -> Said {
        at_once(self.gate.peek(&From(client), |answer| said(&answer.answer))).unwrap()
    }
}

fn said(answer: &tidegate::Answer) -> Said {
    let wait_ms = answer.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap());
    Said { cause: answer.cause, wait_ms, left: answer.remaining() }
}

fn close(open: Open<Store>, status: u16) -> Tally {
    at_once(open.closing(Some(ResponseOutcome { status, field: &|_| None })))
}

/// A store in this process is never waited for.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is to be ready at once"),
    }
}

fn statuses(texts: &[&str]) -> Statuses {
    texts.iter().map(|text| text.parse().unwrap()).fold(Statuses::default(), Statuses::and)
}

fn quota(text: &str) -> Quota {
    text.parse::<tidegate::Limit>().unwrap().quota().unwrap()
}

fn policy(name: &str, limit: &str) -> Policy {
    Policy::new(name, "client".parse().unwrap()).with_limit("limit", limit.parse().unwrap(), Mode::Enforce)
}

fn penalty(of: Offence, after: &str, hold_s: u64) -> Penalty {
    Penalty { of, after: quota(after), hold: Duration::from_secs(hold_s) }
}

fn failures(texts: &[&str]) -> Offence {
    Offence::Responses(statuses(texts))
}

#[test]
fn br_071_a_look_shows_the_hold_and_a_request_during_it_does_not_extend_it() {
    let held = Fixture::new(vec![policy("p", "2/10s").with_penalty(penalty(Offence::Denials, "1/10s", 600))]);
    assert_eq!([held.ask(1).0.cause, held.ask(1).0.cause], [PASSED; 2]);
    let trips = held.ask(1).0;
    assert_eq!((trips.cause, trips.wait_ms), (PENALTY, Some(600_000)));
    for (at_ms, rest_ms) in [(0, 600_000), (11_000, 589_000), (400_000, 200_000), (599_999, 1)] {
        held.at_ms(at_ms);
        let looked = held.peek(1);
        assert_eq!((looked.cause, looked.wait_ms, looked.left), (PENALTY, Some(rest_ms), Some(0)), "at {at_ms}");
        assert_eq!(held.ask(1).0, looked, "at {at_ms}");
        assert_eq!(held.ask(2).0.cause, PASSED, "another key");
    }
    held.at_ms(600_000);
    assert_eq!((held.peek(1).cause, held.ask(1).0.cause), (PASSED, PASSED));
}

#[test]
fn only_chosen_responses_are_charged_and_the_limit_holds_whatever_is_under_way() {
    let counted =
        Fixture::new(vec![policy("log-in", "3/h").with_counting(Counting::Responses(statuses(&["401", "403"])))]);
    (0..20).for_each(|_| assert_eq!(counted.answered(1, 200).cause, PASSED));
    assert_eq!(counted.peek(1).left, Some(3));
    // Three at once; a fourth finds nothing until one of them has turned out well.
    let mut open: Vec<_> = (0..3).map(|_| counted.ask(1).1.unwrap()).collect();
    assert_eq!(counted.ask(1).0.cause, LIMIT);
    assert_eq!(close(open.pop().unwrap(), 200).settled, 1);
    assert_eq!(counted.answered(1, 403).cause, PASSED);
    open.into_iter().for_each(|open| assert_eq!(close(open, 401).settled, 1));
    assert_eq!((counted.peek(1).left, counted.ask(1).0.cause), (Some(0), LIMIT));
}

#[test]
fn a_response_that_never_came_counts_as_a_bad_gateway() {
    for (charged, left) in [("5xx", 9), ("401", 10)] {
        let counted = Fixture::new(vec![policy("p", "10/h").with_counting(Counting::Responses(statuses(&[charged])))]);
        let open = counted.ask(1).1.unwrap();
        assert_eq!(counted.peek(1).left, Some(9));
        assert_eq!(at_once(open.closing(None)).settled, 1);
        assert_eq!(counted.peek(1).left, Some(left), "{charged}");
    }
}

#[test]
fn br_045_a_cost_that_the_response_bears_is_settled_once_and_owed_up_to_one_burst() {
    let cost = CostRule::Response { name: "x-tokens".parse().unwrap(), estimate: Cost::new(50) };
    let settled = Fixture::new(vec![policy("p", "50/50s").with_cost(cost)]);
    let open = settled.ask(1).1.unwrap();
    let field = |name: &str| (name == "x-tokens").then_some(b"60".as_slice());
    assert_eq!(at_once(open.closing(Some(ResponseOutcome { status: 200, field: &field }))).settled, 1);
    assert_eq!(settled.peek(1).left, Some(0));
    let denied = settled.ask(1).0;
    assert_eq!((denied.cause, denied.wait_ms), (LIMIT, Some(60_000)));
}

#[test]
fn the_stated_number_of_failures_holds_a_key_back_however_they_interleave() {
    let policies = || vec![policy("log-in", "1000/h").with_penalty(penalty(failures(&["401"]), "5/15min", 3_600))];
    // One after the other: the fifth failure holds.
    let one_by_one = Fixture::new(policies());
    (0..5).for_each(|_| assert_eq!(one_by_one.answered(1, 401).cause, PASSED));
    let denied = one_by_one.ask(1).0;
    assert_eq!((denied.cause, denied.wait_ms), (PENALTY, Some(3_600_000)));
    // A hundred at once: five get in, and no more than five can fail.
    let at_once = Fixture::new(policies());
    let open: Vec<_> = (0..100).filter_map(|_| at_once.ask(1).1).collect();
    assert_eq!(open.len(), 5);
    let holds: Vec<_> = open.into_iter().map(|open| close(open, 401).holds).collect();
    assert_eq!(holds, [0, 0, 0, 0, 1]);
    assert_eq!(at_once.ask(1).0.wait_ms, Some(3_600_000));
    // Those that turn out well make room, however many there are, and count for nothing.
    let well = Fixture::new(policies());
    (0..100).for_each(|_| assert_eq!(well.answered(1, 200).cause, PASSED));
    (0..4).for_each(|_| assert_eq!(well.answered(1, 401).cause, PASSED));
    assert_eq!(
        (well.answered(1, 200).cause, well.answered(1, 401).cause, well.ask(1).0.cause),
        (PASSED, PASSED, PENALTY)
    );
}

#[test]
fn a_hold_takes_nothing_from_the_limits_and_other_policies() {
    let held = Fixture::new(vec![
        policy("all", "10/day"),
        policy("log-in", "10/day").with_penalty(penalty(failures(&["401"]), "1/h", 7_200)),
    ]);
    assert_eq!(held.answered(1, 401).left, Some(9));
    (0..5).for_each(|_| assert_eq!(held.ask(1).0.cause, PENALTY));
    held.at_ms(7_200_000);
    assert_eq!(held.answered(1, 200).left, Some(8));
}

#[test]
fn the_wait_is_true_where_a_limit_or_an_offence_lasts_longer_than_the_hold() {
    // The limit itself takes a day to give the next token.
    let limit = Fixture::new(vec![policy("p", "1/day").with_penalty(penalty(Offence::Denials, "1/s", 60))]);
    assert_eq!(limit.ask(1).0.cause, PASSED);
    assert_eq!((limit.ask(1).0.cause, limit.ask(1).0.wait_ms), (LIMIT, Some(86_400_000)));
    // The offence is forgiven after an hour, the hold after a minute.
    let offence = Fixture::new(vec![policy("p", "10/day").with_penalty(penalty(failures(&["401"]), "1/h", 60))]);
    assert_eq!(offence.answered(1, 401).cause, PASSED);
    let denied = offence.ask(1).0;
    assert_eq!((denied.cause, denied.wait_ms), (PENALTY, Some(3_600_000)));
    offence.at_ms(3_599_999);
    assert_eq!((offence.peek(1).cause, offence.ask(1).0.wait_ms), (PENALTY, Some(1)));
    offence.at_ms(3_600_000);
    assert_eq!(offence.ask(1).0.cause, PASSED);
}

#[test]
fn a_policy_in_shadow_holds_nobody_back_and_shows_that_it_would() {
    let shadow = Policy::new("p", "client".parse().unwrap()).with_limit("limit", "9/h".parse().unwrap(), Mode::Shadow);
    let watched = Fixture::new(vec![shadow.with_penalty(penalty(failures(&["401"]), "2/h", 3_600))]);
    let holds: Vec<_> = (0..4).map(|_| close(watched.ask(1).1.unwrap(), 401).holds).collect();
    assert_eq!(holds, [0, 1, 0, 0]);
    let would_hold = watched.gate.decide(&From(1), |answer| {
        let held = |held: Option<tidegate::HeldBy>| held == Some(tidegate::HeldBy::Penalty);
        (answer.answer.is_allowed(), answer.charges().all(|(_, _, decision)| held(decision.held_by())))
    });
    assert_eq!(at_once(would_hold).unwrap(), (true, true));
}

#[test]
fn where_nothing_can_be_reserved_the_failure_modes_decide_and_it_is_counted() {
    let counted = |mode: &str| {
        let handling = tidegate::Handling::default().with_on_failure(mode.parse().unwrap());
        let policy = policy("p", "5/h").with_handling(handling);
        let full = Fixture::with_room_for(1, vec![policy.with_counting(Counting::Responses(statuses(&["401"])))]);
        // There is room for one, and for a few more.
        let open: Vec<_> = (2..50).map(|client| full.ask(client)).collect();
        let said = full.ask(1).0;
        drop(open);
        (said.cause, full.peek(1).left)
    };
    assert_eq!(counted("allow"), (PASSED, Some(5)));
    assert_eq!(counted("local"), (PASSED, Some(4)));
    assert_eq!(counted("deny"), (Some(Cause::StoreDown), Some(5)));
}
