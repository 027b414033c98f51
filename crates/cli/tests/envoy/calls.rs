//! The service asked over gRPC by a client that is made from the published files, with a model of its own.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::python;
use crate::server::Asked;
use crate::support::PATIENCE;

const AGREED: &str = "200 calls agree\nhealth is told\nreflection tells what is published\n";

fn asked(flags: &[&str]) -> Asked {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/envoy/calls.yaml");
    Asked::by(&rules, flags)
}

#[test]
fn a_client_of_the_published_files_agrees_on_every_field() {
    for algorithm in ["fixed-window", "token-bucket"] {
        let asked = asked(&["--ratelimit-algorithm", algorithm, "--ratelimit-headers", "ratelimit"]);
        let arguments = [asked.grpc.to_string(), algorithm.to_owned()];
        assert_eq!(python::run("../envoy/calls.py", &arguments), AGREED);
    }
}

#[test]
fn the_access_log_tells_of_each_call() {
    let folder = tempfile::TempDir::new().unwrap();
    let log = folder.path().join("access.log");
    let mut asked = asked(&["--access-log", log.to_str().unwrap(), "--ratelimit-headers", "ratelimit"]);
    python::run("../envoy/calls.py", &[asked.grpc.to_string(), "fixed-window".to_owned()]);
    asked.server.signal("TERM");
    assert!(asked.server.ended().success());
    let told = std::fs::read_to_string(&log).unwrap();
    let call = "\"POST /envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit HTTP/2.0\" 200";
    assert!(told.matches(call).count() >= 200, "{told}");
}

#[test]
fn a_connection_that_is_old_ends_after_its_calls() {
    let asked = asked(&["--grpc-connection-age", "1s"]);
    let client = python::Server::start("../envoy/aging.py", &[asked.grpc.to_string()]);
    let (mut connections, since) = (std::collections::BTreeSet::new(), Instant::now());
    while connections.len() < 3 {
        assert!(since.elapsed() < PATIENCE, "{connections:?}");
        let port: u16 = client.line().parse().unwrap();
        connections.insert(port);
        thread::sleep(Duration::from_millis(1));
    }
    // Three connections, so two of them have ended, each after four fifths of a second at least.
    assert!(since.elapsed() >= Duration::from_millis(1_500), "{:?}", since.elapsed());
}

#[test]
fn who_gives_up_on_many_calls_at_a_standstill_keeps_the_connection() {
    let asked = asked(&[]);
    let arguments = [asked.grpc.to_string(), asked.server.id().to_string(), "100".to_owned()];
    assert_eq!(python::run("../envoy/giving_up.py", &arguments), "served again\n");
    assert_eq!(asked.server.metrics().value("tidegate_connections_accepted_total"), 1);
}
