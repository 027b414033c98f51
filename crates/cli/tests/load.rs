//! `tidegate load` before services that are real.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::nginx::Nginx;
use support::program::{Proxy, Run, command, run};

fn loaded(arguments: &[&str]) -> Value {
    let Run { code, out, err } = run(&[&["load", "--json"], arguments].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}: {out}");
    serde_json::from_str(&out).unwrap()
}

/// Answers one call after the other, each after so long, on however many connections.
fn slow_service(each: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let (mut read, mut head) = ([0; 4096], Vec::new());
            while let Ok(1..) = socket.read(&mut read).inspect(|n| head.extend_from_slice(&read[..*n])) {
                if head.ends_with(b"\r\n\r\n") {
                    head.clear();
                    thread::sleep(each);
                    let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
                }
            }
        }
    });
    address
}

#[test]
fn as_many_are_sent_as_the_pattern_plans_and_each_is_accounted_for() {
    let nginx = Nginx::start();
    let report = loaded(&[&nginx.url(), "--pattern", "steady:rate=100/s", "--duration", "2s"]);
    assert_eq!((&report["requests"], &report["passed"], &report["failed"]), (&200.into(), &200.into(), &0.into()));
    assert_eq!((nginx.requests(), &report["statuses"]["200"]), (200, &200.into()));
    let took = report["took"].as_f64().unwrap();
    assert!((1.98..5.0).contains(&took), "the last is planned at 1.99 s: {report:#}");
}

#[test]
fn what_a_limit_lets_pass_is_seen() {
    let proxy = Proxy::start(&["--limit", "1/h burst 25"]);
    let report = loaded(&[&proxy.url(), "--duration", "1s"]);
    assert_eq!((&report["passed"], &report["denied"], &report["worst_minute"]), (&25.into(), &25.into(), &25.into()));
    assert_eq!((&report["statuses"]["200"], &report["statuses"]["429"]), (&25.into(), &25.into()));
}

#[test]
fn clients_are_told_apart_by_a_header_or_by_their_addresses() {
    let steady = ["--pattern", "steady:rate=10/s,clients=5", "--duration", "2s"];
    let by_key = Proxy::start(&["--limit", "1/h burst 3", "--key", "header:x-api-key"]);
    let report = loaded(&[&[&*by_key.url(), "--key-header", "x-api-key"], &steady[..]].concat());
    assert_eq!((&report["clients"], &report["passed"], &report["requests"]), (&5.into(), &15.into(), &100.into()));
    let by_address = Proxy::start(&["--limit", "1/h burst 3"]);
    let report = loaded(&[&[&*by_address.url(), "--client-addresses"], &steady[..]].concat());
    assert_eq!((&report["passed"], &report["requests"]), (&15.into(), &100.into()));
}

#[test]
fn a_herd_that_obeys_comes_back_when_it_was_told_to() {
    let proxy = Proxy::start(&["--limit", "5/s"]);
    let herd = ["--pattern", "retry-herd:clients=1,count=15", "--duration", "8s"];
    let report = loaded(&[&[&*proxy.url()], &herd[..]].concat());
    // All fifteen ask at once, and those that were denied ask again a second later, until all have passed: 10 and 5
    // denials, and a few less or more where a token came back while they were being sent.
    assert_eq!(report["passed"], 15, "{report:#}");
    assert!((10..=25).contains(&report["denied"].as_u64().unwrap()), "{report:#}");
    assert!(report["took"].as_f64().unwrap() > 1.9, "{report:#}");
}

#[test]
fn a_service_that_stalls_is_charged_with_the_waiting_that_it_causes() {
    // It answers 20 a second, and 40 a second are planned for two seconds: the last waits for two more.
    let service = slow_service(Duration::from_millis(50));
    let url = format!("http://{service}/");
    let report = loaded(&[&url, "--pattern", "steady:rate=40/s", "--duration", "2s", "--at-once", "1"]);
    assert_eq!(report["passed"], 80);
    let (p50, longest) = (report["latency"]["p50"].as_f64().unwrap(), report["latency"]["longest"].as_f64().unwrap());
    assert!(p50 > 0.9 && longest > 1.9, "{report:#}");
    assert!(report["late"]["requests"].as_u64().unwrap() > 60, "{report:#}");
}

#[test]
fn an_interrupted_run_tells_what_is_known() {
    let nginx = Nginx::start();
    let mut load = command(&["load", &nginx.url(), "--pattern", "steady:rate=100/s", "--duration", "1h"]);
    let child = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while nginx.requests() < 50 {
        thread::sleep(Duration::from_millis(10));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), err.as_str()), (Some(130), "error: it was interrupted\n"));
    assert!(out.contains("early, by a signal") && out.contains("latency, from the planned instant"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colours where no terminal is");
}

#[test]
fn what_fails_is_told_and_a_service_that_never_answers_is_an_error() {
    let failing = Nginx::serving("location / { return 500; }");
    let report = loaded(&[&failing.url(), "--duration", "1s"]);
    assert_eq!((&report["failed"], &report["statuses"]["500"]), (&50.into(), &50.into()));
    let address = support::free_address().to_string();
    let Run { code, out, err } = run(&["load", &format!("http://{address}/"), "--duration", "1s"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("50 times: cannot connect: ") && err.contains("cannot connect: "), "{out}{err}");
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_sent() {
    let refused = |arguments: &[&str], why: &str| {
        let Run { code, err, .. } = run(&[&["load"], arguments].concat());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(why), "{err}");
    };
    refused(&["http://192.0.2.1/"], "--i-own-this-host");
    refused(&["http://127.0.0.1/", "--pattern", "stready"], "steady");
    refused(&["http://127.0.0.1/", "--header", "accept"], "a name, a colon and a value");
    refused(&["http://127.0.0.1/", "--limit", "unlimited"], "a limit with a rate");
    refused(&["http://[::1]:1/", "--client-addresses"], "only on the loopback");
}
