//! A gateway whose store takes its time: what waits is counted, and a client that leaves waits no more.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tidegate::policy::{ClientAddress, Policies, Policy};
use tidegate::{
    Charge, Cost, Decision, Gate, Kept, LimitId, ManualClock, Memory, Mode, Quota, ReservationId, Settled, Store,
    TableOptions, Time, Verdict,
};
use tidegate_server::{DeskSetup, Drain, Gateway, GatewaySetup, OperationSetup, StoreLevel, bind};
use tokio::sync::Semaphore;

use crate::support::{Client, eventually, metric, one_each};

/// Decides once it has a permit.
struct Held(Memory<ManualClock>, Arc<Semaphore>);

impl Store for Held {
    type Error = Infallible;

    async fn decide(&self, charges: &[Charge<'_>], decisions: &mut [Decision]) -> Result<Verdict, Infallible> {
        self.1.acquire().await.unwrap().forget();
        Ok(self.0.decide_now(charges, decisions).unwrap())
    }

    async fn reset(&self, _: LimitId, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    async fn grant(&self, _: LimitId, _: &Quota, _: &[u8], _: u64) -> Result<(), Infallible> {
        Ok(())
    }

    async fn reserve(
        &self,
        charges: &[Charge<'_>],
        decisions: &mut [Decision],
        _: ReservationId,
        _: Duration,
    ) -> Result<Verdict, Infallible> {
        self.decide(charges, decisions).await
    }

    async fn settle(&self, _: ReservationId, _: &[Charge<'_>], _: &[Cost]) -> Result<Settled, Infallible> {
        Ok(Settled::Unknown)
    }

    async fn inspect(&self, _: LimitId, _: &Quota, _: &[u8]) -> Result<Option<Kept>, Infallible> {
        Ok(None)
    }
}

#[tokio::test]
async fn decisions_that_wait_are_counted_and_a_client_that_leaves_waits_no_more() {
    let policy = Policy::new("default", "global".parse().unwrap()).with_limits(["1/h".parse().unwrap()], Mode::Enforce);
    let permits = Arc::new(Semaphore::new(0));
    let store = Held(Memory::new(TableOptions::with_keys(10), ManualClock::new()), Arc::clone(&permits));
    let desk = DeskSetup::new(
        Gate::new(Policies::new(ClientAddress::default(), vec![policy]).unwrap(), store),
        |_| StoreLevel::Shared { is_up: true, leased: 0, failures: Vec::new() },
        Arc::new(|| Time::ZERO),
        OperationSetup::new(|_| true, |_, _| Ok(())),
    );
    let gateway = Gateway::new(GatewaySetup::new(desk));
    let metrics = Arc::clone(gateway.desk().metrics());
    let listeners = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap();
    let address = listeners[0].local_addr().unwrap();
    let drain = Drain::new();
    let until = drain.clone();
    let serving = std::thread::spawn(move || gateway.run(one_each(listeners), None, &until));

    let waiting = |count| metric(&metrics, "tidegate_store_waiting") == count;
    let mut first = Client::to(address).await;
    first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    eventually("one waits", || waiting(1)).await;
    drop(first);
    eventually("nobody waits", || waiting(0)).await;

    permits.add_permits(2);
    let mut second = Client::to(address).await;
    assert_eq!((second.get("/").await.status, second.get("/").await.status), (200, 429));
    assert!(waiting(0));
    assert_eq!(metric(&metrics, "tidegate_store_latency_seconds_count"), 2);
    assert_eq!(metric(&metrics, "tidegate_decision_seconds_count"), 2);
    assert_eq!(metric(&metrics, "tidegate_requests_total{decision=\"denied\"}"), 1);
    drop(second);
    drain.start();
    serving.join().unwrap().unwrap();
}
