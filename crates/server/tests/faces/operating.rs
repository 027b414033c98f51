//! The admin face, the metrics, and the jokes.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Source;
use tidegate::redis::FailureKind;
use tidegate_core::{Cost, FailureMode, Limit, Mode, State, Time, decide};
use tidegate_server::{Admin, Bounds, Drain, Jokes, LimitName, Metrics, Setup, StoreLevel, bind, serve};

use crate::support::{Client, Stage, metric, nobody};

fn limit(policy: &str, limit: &str, mode: Mode) -> LimitName {
    LimitName { policy: policy.into(), limit: limit.into(), mode, on_failure: FailureMode::Deny }
}

fn admin(metrics: Metrics) -> (SocketAddr, Arc<Metrics>, Drain) {
    let (metrics, drain) = (Arc::new(metrics), Drain::new());
    let listener = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap().remove(0);
    let address = listener.local_addr().unwrap();
    let setup = Setup { bounds: Bounds::admin(), ..Setup::default() };
    let face = Admin::new(Arc::clone(&metrics), drain.clone());
    tokio::spawn(serve(listener, face, setup, std::future::pending()));
    (address, metrics, drain)
}

#[tokio::test]
async fn the_admin_face_tells_life_readiness_and_metrics() {
    let metrics = Metrics::new(&[]).with_store(|| StoreLevel::Memory { keys: 7, room: 64, displaced: 2 });
    let (address, _, drain) = admin(metrics);
    let mut client = Client::to(address).await;
    for path in ["/livez", "/readyz"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.text()), (200, "ok\n"), "{path}");
    }
    drain.start();
    assert_eq!(client.get("/livez").await.status, 200);
    let answer = client.get("/readyz").await;
    assert_eq!(answer.status, 503);
    answer.problem();
    let lines = ["tidegate_keys 7", "tidegate_keys_max 64", "tidegate_displaced_total 2", "tidegate_connections 0"];
    client.send("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    has_lines(answer.text(), &lines);
    has_lines(answer.text(), &["# TYPE tidegate_displaced_total counter", "# TYPE tidegate_keys gauge"]);
    assert!(!answer.text().contains("# EOF") && !answer.text().contains("# UNIT"));
    // As Prometheus asks.
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    client.send(format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n")).await;
    let answer = client.answer().await;
    assert_eq!(answer.field("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    has_lines(answer.text(), &lines);
    has_lines(answer.text(), &["# TYPE tidegate_displaced counter", "# EOF"]);
}

fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "no {line} in\n{text}");
    }
}

#[tokio::test]
async fn a_store_elsewhere_tells_how_it_stands() {
    let failures = || FailureKind::ALL.map(|kind| (kind, if kind == FailureKind::Deadline { 3 } else { 0 })).to_vec();
    let level = move || StoreLevel::Shared { is_up: false, leased: 40, failures: failures() };
    let metrics = Metrics::new(&[]).with_store(level);
    metrics.store.answered(Source::Fallback);
    for (series, value) in [
        ("tidegate_store_up", 0),
        ("tidegate_store_leased", 40),
        ("tidegate_store_failures_total{kind=\"deadline\"}", 3),
        ("tidegate_store_failures_total{kind=\"unavailable\"}", 0),
        ("tidegate_answers_total{source=\"fallback\"}", 1),
        ("tidegate_answers_total{source=\"denied-cache\"}", 0),
        ("tidegate_store_waiting", 0),
        ("tidegate_store_latency_seconds_count", 0),
    ] {
        assert_eq!(metric(&metrics, series), value, "{series}");
    }
    // Requests are ready to be answered all the same: the limits said what they do without their store.
    let (address, ..) = admin(metrics);
    assert_eq!(Client::to(address).await.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn the_admin_face_refuses_what_it_does_not_know() {
    let (address, ..) = admin(Metrics::new(&[]));
    let mut client = Client::to(address).await;
    client.send("GET /metric HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.problem().starts_with("there are /livez, /readyz, /metrics, ")), (404, true));
    client.send("POST /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")));
    client.send("HEAD /livez HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-length: 3\r\n"), "{head}");
    assert_eq!(client.get("/livez?verbose").await.status, 200);
}

#[tokio::test]
async fn decisions_are_counted_by_limit_mode_and_outcome() {
    let names = [limit("", "limit-1", Mode::Enforce), limit("login", "burst", Mode::Shadow)];
    let metrics = Metrics::new(&names);
    let quota = "2/min".parse::<Limit>().unwrap().quota().unwrap();
    let decided = |used, cost| decide(&quota, State::from_parts(used, Time::ZERO), Cost::new(cost), Time::ZERO).0;
    metrics.limits.at(0).unwrap().count(&decided(0, 1), Source::Store);
    metrics.limits.at(0).unwrap().count(&decided(1, 1), Source::Fallback);
    metrics.limits.at(1).unwrap().count(&decided(2, 1), Source::Store);
    metrics.limits.at(1).unwrap().count(&decided(0, 3), Source::Store);
    metrics.decision.observe(Duration::from_nanos(300));
    assert!(metrics.limits.at(2).is_none());
    for (series, count) in [
        ("tidegate_decisions_total{policy=\"\",limit=\"limit-1\",mode=\"enforce\",outcome=\"allowed\"}", 2),
        ("tidegate_decisions_total{policy=\"\",limit=\"limit-1\",mode=\"enforce\",outcome=\"denied\"}", 0),
        ("tidegate_decisions_total{policy=\"login\",limit=\"burst\",mode=\"shadow\",outcome=\"denied\"}", 1),
        ("tidegate_decisions_total{policy=\"login\",limit=\"burst\",mode=\"shadow\",outcome=\"never\"}", 1),
        ("tidegate_near_limit_total{policy=\"\",limit=\"limit-1\",mode=\"enforce\"}", 1),
        ("tidegate_near_limit_total{policy=\"login\",limit=\"burst\",mode=\"shadow\"}", 0),
        ("tidegate_fallback_decisions_total{policy=\"\",limit=\"limit-1\",on_failure=\"deny\"}", 1),
        ("tidegate_decision_seconds_bucket{le=\"5e-7\"}", 1),
        ("tidegate_decision_seconds_count", 1),
    ] {
        assert_eq!(metric(&metrics, series), count, "{series}");
    }
}

#[tokio::test]
async fn br_163_denied_counts_up_and_only_denials() {
    let metrics = Metrics::new(&[limit("", "limit-1", Mode::Enforce)]);
    let series = "tidegate_decisions_total{policy=\"\",limit=\"limit-1\",mode=\"enforce\",outcome=\"denied\"}";
    let quota = "5/min".parse::<Limit>().unwrap().quota().unwrap();
    let mut state = State::FULL;
    for denied in [0, 0, 0, 0, 0, 1] {
        let (decision, next) = decide(&quota, state, Cost::ONE, Time::ZERO);
        state = next;
        metrics.limits.at(0).unwrap().count(&decision, Source::Store);
        assert_eq!(metric(&metrics, series), denied);
    }
}

#[tokio::test]
async fn br_161_no_series_comes_of_a_request() {
    let stage = Stage::before(nobody().await);
    let series = |stage: &Stage| stage.metrics.text().unwrap().lines().count();
    let before = series(&stage);
    let mut client = Client::to(stage.address).await;
    for i in 0..1000 {
        let request = format!("GET /{i} HTTP/1.1\r\nhost: host-{i}\r\nx-api-key: key-{i}\r\n\r\n");
        client.send(request).await;
        assert_eq!(client.answer().await.status, 502);
    }
    assert_eq!(series(&stage), before);
    assert!(stage.metrics.text().unwrap().len() < 100_000);
}

async fn jokes() -> Client {
    let listener = bind("127.0.0.1:0".parse().unwrap(), NonZeroUsize::MIN).unwrap().remove(0);
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, Jokes::new(|| 4), Setup::default(), std::future::pending()));
    Client::to(address).await
}

#[tokio::test]
async fn the_joke_of_the_day_is_the_same_all_day() {
    let mut client = jokes().await;
    let (first, second) = (client.get("/").await, client.get("/joke").await);
    assert_eq!((first.status, first.field("content-type")), (200, Some("application/json")));
    assert_eq!(first.body, second.body);
    let parsed: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    assert!(parsed["joke"].as_str().unwrap().len() > 10);
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.contains(&format!("content-length: {}\r\n", first.body.len())), "{head}");
    let lost = client.get("/laugh").await;
    assert_eq!((lost.status, lost.problem().as_str()), (404, "there is no joke here; try /joke"));
}

#[tokio::test]
async fn a_short_body_is_read_away_and_a_long_one_ends_the_connection() {
    let mut client = jokes().await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
    assert_eq!(client.answer().await.status, 405);
    assert_eq!(client.get("/").await.status, 200);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n").await;
    client.send(vec![b'x'; 200_000]).await;
    assert_eq!(client.answer().await.status, 405);
    assert_eq!(client.rest().await, "");
}
