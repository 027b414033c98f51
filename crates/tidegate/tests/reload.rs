//! Policies that take the place of others over one store, on a clock that is driven: what keys owe goes on.

#![cfg(feature = "policy")]

use std::net::IpAddr;
use std::time::Duration;

use tidegate::policy::{Attributes, ClientAddress, Peer, Policies, Policy};
use tidegate::{Gate, ManualClock, Memory, Mode, TableOptions};

/// A request, which is like any other.
struct Request;

impl Attributes for Request {
    fn peer(&self) -> Peer {
        Peer::Ip(IpAddr::from([203, 0, 113, 7]))
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/"
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn header_lines<'a>(&'a self, _: &str, _: &mut dyn FnMut(&'a [u8])) {}
}

fn policies(limit: &str) -> Policies {
    let policy = Policy::new("api", "client".parse().unwrap()).with_limits([limit.parse().unwrap()], Mode::Enforce);
    Policies::new(ClientAddress::default(), vec![policy]).unwrap()
}

/// The gate of the moment, and the clock of its store.
struct Stage {
    gate: Gate<Memory<ManualClock>>,
    clock: ManualClock,
}

impl Stage {
    fn under(limit: &str) -> Self {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000));
        let store = Memory::new(TableOptions::with_keys(100), clock.clone());
        Self { gate: Gate::new(policies(limit), store), clock }
    }

    fn reload(&mut self, limit: &str) {
        self.gate = self.gate.with_policies(policies(limit), self.gate.store().now());
    }

    fn wait(&self, s: u64) {
        self.clock.advance(Duration::from_secs(s));
    }

    /// What is left, or how long to wait.
    async fn ask(&self) -> Result<u64, Duration> {
        let answer = self.gate.decide(&Request, |answer| answer.answer).await.unwrap();
        answer.retry_after().map_or_else(|| Ok(answer.remaining().unwrap()), Err)
    }

    /// How many of so many requests pass.
    async fn passed(&self, asked: usize) -> usize {
        let mut passed = 0;
        for _ in 0..asked {
            passed += usize::from(self.ask().await.is_ok());
        }
        passed
    }
}

#[tokio::test]
async fn br_074_a_raised_limit_counts_at_once_with_what_was_used() {
    let mut stage = Stage::under("5/h");
    assert_eq!(stage.passed(5).await, 5);
    stage.wait(60);
    stage.reload("50/h");
    assert_eq!(stage.ask().await, Ok(44));
}

#[tokio::test]
async fn br_078_a_lowered_limit_takes_its_room_at_once_and_raised_again_gives_no_more_than_it_took() {
    let mut stage = Stage::under("10/s");
    assert_eq!(stage.passed(3).await, 3);
    stage.reload("5/s");
    assert_eq!([stage.ask().await, stage.ask().await], [Ok(1), Ok(0)]);
    assert_eq!(stage.ask().await, Err(Duration::from_millis(200)));
    stage.reload("10/s");
    assert_eq!(stage.passed(10).await, 5);
}

#[tokio::test]
async fn br_079_the_same_file_again_and_again_refills_nobody() {
    let mut stage = Stage::under("1/min burst 3");
    assert_eq!(stage.passed(3).await, 3);
    for left_s in (50..60).rev() {
        stage.wait(1);
        stage.reload("1/min burst 3");
        assert_eq!(stage.ask().await, Err(Duration::from_secs(left_s)));
    }
}

#[tokio::test]
async fn br_081_a_changed_rate_hands_out_its_growth_and_no_burst() {
    let mut stage = Stage::under("10/s");
    assert_eq!(stage.passed(10).await, 10);
    stage.reload("12/s");
    assert_eq!(stage.passed(12).await, 2);
}

#[tokio::test]
async fn br_084_what_was_denied_was_not_used() {
    let mut stage = Stage::under("10/h");
    assert_eq!(stage.passed(50).await, 10);
    stage.wait(60);
    stage.reload("20/h");
    assert_eq!(stage.passed(15).await, 10);
}

#[tokio::test]
async fn what_was_owed_is_carried_over_as_it_stood_when_the_limit_changed() {
    let mut stage = Stage::under("20/s");
    assert_eq!(stage.passed(20).await, 20);
    stage.reload("20/h");
    // The key is away for a time in which the older rate would have paid back all of it, and the file is read again.
    stage.wait(10);
    stage.reload("20/h");
    assert_eq!(stage.passed(20).await, 0);
    stage.wait(170);
    assert_eq!(stage.passed(20).await, 1);
}

#[tokio::test]
async fn who_asks_the_older_gate_is_answered_by_the_older_policies() {
    let stage = Stage::under("3/h");
    let newer = stage.gate.with_policies(policies("5/h"), stage.gate.store().now());
    let burst =
        |gate: &Gate<Memory<ManualClock>>| gate.policies().as_slice()[0].limits()[0].limit.quota().unwrap().burst();
    assert_eq!((burst(&stage.gate), burst(&newer)), (3, 5));
    assert_eq!(stage.passed(9).await, 3);
}
