//! The gateway: what is denied never gets to the upstream, and what is passed on is counted.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tidegate::policy::{ClientAddress, Policies, Policy};
use tidegate::{Clock as _, Gate, ManualClock, Memory, Mode, TableOptions};
use tidegate_server::{DeskSetup, Drain, Gateway, GatewaySetup, Metrics, OperationSetup, StoreLevel, Upstream, bind};

use crate::support::{Client, metric, one_each, upstream};

/// A gateway that serves on a thread of its own until it is dropped.
struct Running {
    address: SocketAddr,
    admin: SocketAddr,
    metrics: Arc<Metrics>,
    clock: ManualClock,
    notices: Arc<Mutex<Vec<String>>>,
    drain: Drain,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn start(limit: &str, key: &str, mode: Mode, upstream: Option<SocketAddr>) -> Self {
        let policy = Policy::new("default", key.parse().unwrap()).with_limits([limit.parse().unwrap()], mode);
        let policies = Policies::new(ClientAddress::default(), vec![policy]).unwrap();
        let (clock, notices, drain) = (ManualClock::new(), Arc::new(Mutex::new(Vec::new())), Drain::new());
        let heard = Arc::clone(&notices);
        let desk = DeskSetup::new(
            Gate::new(policies, Memory::new(TableOptions::with_keys(4096), clock.clone())),
            StoreLevel::of_memory,
            {
                let clock = clock.clone();
                Arc::new(move || clock.now())
            },
            OperationSetup::of_memory(),
        );
        let desk =
            DeskSetup { notice: Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned())), ..desk };
        let gateway = Gateway::new(GatewaySetup {
            upstreams: upstream.map(|address| format!("http://{address}").parse::<Upstream>().unwrap().into()),
            ..GatewaySetup::new(desk)
        });
        let metrics = Arc::clone(gateway.desk().metrics());
        let port_0 = "127.0.0.1:0".parse().unwrap();
        let listeners = bind(port_0, NonZeroUsize::new(2).unwrap()).unwrap();
        let admin_listener = bind(port_0, NonZeroUsize::MIN).unwrap().remove(0);
        let (address, admin) = (listeners[0].local_addr().unwrap(), admin_listener.local_addr().unwrap());
        let until = drain.clone();
        let thread = std::thread::spawn(move || gateway.run(one_each(listeners), Some(admin_listener), &until));
        Self { address, admin, metrics, clock, notices, drain, thread: Some(thread) }
    }

    fn decisions(&self, mode: &str, outcome: &str) -> u64 {
        let labels = format!("policy=\"default\",limit=\"limit-1\",mode=\"{mode}\",outcome=\"{outcome}\"");
        metric(&self.metrics, &format!("tidegate_decisions_total{{{labels}}}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain.start();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(Ok(())))));
    }
}

#[tokio::test]
async fn three_pass_the_fourth_is_denied_and_one_more_passes_after_its_wait() {
    let gateway = Running::start("3/min", "client", Mode::Enforce, None);
    let mut client = Client::to(gateway.address).await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.status, 200);
    }
    for _ in 0..2 {
        let denied = client.get("/").await;
        assert_eq!((denied.status, denied.field("retry-after")), (429, Some("20")));
        denied.problem();
    }
    gateway.clock.advance(Duration::from_secs(20));
    assert_eq!((client.get("/").await.status, client.get("/").await.status), (200, 429));
    assert_eq!((gateway.decisions("enforce", "allowed"), gateway.decisions("enforce", "denied")), (4, 3));
    assert_eq!(metric(&gateway.metrics, "tidegate_requests_total{decision=\"denied\"}"), 3);
    assert_eq!(metric(&gateway.metrics, "tidegate_decision_seconds_count"), 7);
    assert_eq!(metric(&gateway.metrics, "tidegate_keys"), 1);
    assert_eq!(metric(&gateway.metrics, "tidegate_answers_total{source=\"store\"}"), 7);
    assert_eq!(metric(&gateway.metrics, "tidegate_store_latency_seconds_count"), 0, "nothing had to wait");
    assert_eq!(Client::to(gateway.admin).await.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_denied_request_never_reaches_the_upstream_and_its_body_is_not_asked_for() {
    let (upstream, log) = upstream(|_| async { Response::new(Full::<Bytes>::from("ok")) }).await;
    let gateway = Running::start("1/min", "client", Mode::Enforce, Some(upstream));
    assert_eq!(Client::to(gateway.address).await.get("/").await.status, 200);

    let mut polite = Client::to(gateway.address).await;
    polite.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1000000000\r\n\r\n").await;
    // Not 100 first.
    assert_eq!(polite.answer().await.status, 429);
    assert_eq!(polite.rest().await, "");

    let mut pushing = Client::to(gateway.address).await;
    pushing.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n").await;
    pushing.send(vec![b'x'; 100_000]).await;
    assert_eq!(pushing.answer().await.status, 429);
    assert_eq!(pushing.rest().await, "");
    assert_eq!(log.requests(), 1);
}

#[tokio::test]
async fn a_limit_in_shadow_counts_and_denies_nothing() {
    let gateway = Running::start("1/min", "client", Mode::Shadow, None);
    let mut client = Client::to(gateway.address).await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.status, 200);
    }
    assert_eq!((gateway.decisions("shadow", "allowed"), gateway.decisions("shadow", "denied")), (1, 2));
    assert_eq!(metric(&gateway.metrics, "tidegate_requests_total{decision=\"denied\"}"), 0);
}

#[tokio::test]
async fn workers_share_the_buckets_of_keys() {
    let gateway = Running::start("5/min", "header:x-api-key", Mode::Enforce, None);
    let (mut passed, before) = (0, gateway.metrics.text().unwrap().lines().count());
    for i in 0..24 {
        // A connection each, so that both workers get some.
        let mut client = Client::to(gateway.address).await;
        client.send(format!("GET / HTTP/1.1\r\nhost: a\r\nx-api-key: {}\r\n\r\n", i % 2)).await;
        passed += u32::from(client.answer().await.status == 200);
    }
    assert_eq!(passed, 10);
    assert_eq!(gateway.metrics.text().unwrap().lines().count(), before);
}

#[tokio::test]
async fn br_126_everybody_behind_one_private_peer_is_noticed_once() {
    let gateway = Running::start("1000/min", "client", Mode::Enforce, None);
    let mut client = Client::to(gateway.address).await;
    for i in 0..200 {
        client.send(format!("GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 203.0.113.{i}\r\n\r\n")).await;
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!(gateway.notices.lock().unwrap().len(), 1);
}
